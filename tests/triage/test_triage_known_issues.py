"""Known issues: a match needs the signature and a configuration that can reach it; near matches say what differs."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.triage.known_issues import Evidence, issue_ids, matching, sign_literals
from culpa.triage.releases import parse_range, release_key, within

INCIDENT = "https://github.com/vllm-project/vllm/issues/63505"
FRAME = 'File "vllm/model_executor/models/qwen3_next.py", line 698, in forward'
REACHABLE: Mapping[str, str | int | float | bool] = {"pp": 3, "prefix_caching": True, "eager": False}
EVIDENCE = Evidence(
    engine="vllm",
    version="0.32.0",
    symptom="cuda_illegal_access",
    lines=("RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered", FRAME),
    configuration=REACHABLE,
    xids=frozenset({31}),
)


def found(evidence: Evidence, url: str = INCIDENT) -> tuple[bool | None, tuple[str, ...]]:
    """Whether an issue matches, None if it is not even near; and what differs."""
    for issue in matching(evidence):
        if issue.url == url:
            return issue.match, issue.differs
    return None, ()


def test_there_are_many_issues_each_with_an_address_of_its_own() -> None:
    assert len(issue_ids()) >= 60
    assert len({url for _, url in issue_ids()}) == len(issue_ids())
    assert all(url.startswith("https://github.com/") for _, url in issue_ids())


def test_the_incident_is_recognised() -> None:
    assert found(EVIDENCE) == (True, ())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"pp": 1}, "pipeline-parallel size: 1 here, >1 there"),
        ({"eager": True}, "eager execution: on here, off there"),
        ({"prefix_caching": False}, "prefix caching: off here, on there"),
    ],
)
def test_the_same_signature_in_a_configuration_that_cannot_reach_it_is_near(
    change: dict[str, int | bool], told: str
) -> None:
    match, differs = found(replace(EVIDENCE, configuration={**REACHABLE, **change}))
    assert match is False
    assert told in differs


def test_an_older_release_than_the_regression_is_near() -> None:
    assert found(replace(EVIDENCE, version="0.28.0")) == (False, ("release 0.28.0 here, >0.28.0 there",))
    assert found(replace(EVIDENCE, version="0.28.1"))[0] is True


def test_what_a_log_does_not_show_is_no_match() -> None:
    assert found(replace(EVIDENCE, version=None))[0] is False
    match, differs = found(replace(EVIDENCE, configuration={"eager": False}))
    assert match is False
    assert differs == ("pipeline-parallel size is not shown by this log",)


def test_what_is_on_by_default_need_not_be_shown() -> None:
    assert found(replace(EVIDENCE, configuration={"pp": 3}))[0] is True


@pytest.mark.parametrize(
    "other",
    [
        replace(EVIDENCE, symptom="cuda_oom"),
        replace(EVIDENCE, engine="sglang"),
        replace(EVIDENCE, lines=("CUDA error: an illegal memory access was encountered",)),
    ],
    ids=["symptom", "engine", "no signature"],
)
def test_another_failure_is_not_even_near(other: Evidence) -> None:
    assert found(other) == (None, ())


def test_failing_hardware_excludes_reports_of_software() -> None:
    match, differs = found(replace(EVIDENCE, hardware=True))
    assert match is False
    assert any("hardware" in text for text in differs)


def test_speculative_tokens_make_the_difference_they_made_in_the_report() -> None:
    url = "https://github.com/vllm-project/vllm/issues/37035"
    evidence = replace(
        EVIDENCE,
        lines=('File "/x/vllm/v1/attention/backends/gdn_attn.py", line 237, in build',),
        configuration={"spec_decode": "qwen3_next_mtp", "spec_tokens": 5},
    )
    assert found(evidence, url)[0] is True
    four = replace(evidence, configuration={"spec_decode": "qwen3_next_mtp", "spec_tokens": 4})
    assert found(four, url) == (False, ("speculative tokens: 4 here, >4 there",))
    assert found(replace(evidence, configuration={"spec_decode": False}), url)[0] is False


def test_an_issue_of_failing_parts_needs_its_xid() -> None:
    url = "https://github.com/wtdcode/vllm-backport/issues/62"
    evidence = replace(
        EVIDENCE,
        symptom="hang_timeout",
        lines=("TimeoutError: RPC call to sample_tokens timed out.",),
        xids=frozenset({48, 94}),
        hardware=True,
    )
    assert found(evidence, url)[0] is True
    assert found(replace(evidence, xids=frozenset()), url)[0] is None


@pytest.mark.parametrize(
    ("version", "terms", "inside"),
    [
        ("0.32.0", ">0.28.0", True),
        ("0.28.0", ">0.28.0", False),
        ("v0.10.2", ">=0.10,<0.12", True),
        ("0.8.5.post1", ">=0.8.5,<0.8.6", True),
        ("0.23.1rc1.dev1133+g647213129", ">=0.23.1", False),
        ("0.23.1rc1.dev1133+g647213129", ">=0.23", True),
        ("10525", ">=10523", True),
        ("1.0", "==1.0.0", True),
        ("main", ">=0.1", None),
    ],
)
def test_releases_are_compared_as_numbers(version: str, terms: str, inside: bool | None) -> None:
    assert within(version, parse_range(terms)) is inside


@pytest.mark.parametrize("text", ["", "0.10", ">=", ">=x", ">=0.1,,<2", "~0.1"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="range of releases"):
        parse_range(text)


@given(st.text(max_size=60))
def test_no_text_makes_a_release_raise(text: str) -> None:
    release_key(text)
    within(text, parse_range(">=0.1"))


@given(
    st.lists(st.one_of(st.text(max_size=100), st.sampled_from(sign_literals())), max_size=20),
    st.sampled_from(["cuda_illegal_access", "hang_timeout", "exception", ""]),
    st.dictionaries(
        st.sampled_from(["pp", "tp", "model", "eager", "spec_decode"]),
        st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=True), st.text(max_size=20)),
        max_size=5,
    ),
)
def test_no_evidence_makes_matching_raise(
    lines: list[str], symptom: str, configuration: dict[str, bool | int | float | str]
) -> None:
    matching(Evidence("vllm", "0.1", symptom, lines, configuration, frozenset()))
