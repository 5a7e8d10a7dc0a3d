"""Releases and machine settings against what public sources say of them."""

import pytest

from culpa.triage.known_issues import Value, known_issues
from culpa.triage.known_ranges import check, gib_of

INCIDENT: dict[str, Value] = {"pp": 3, "prefix_caching": True, "eager": False}
ISSUE = "https://github.com/vllm-project/vllm/issues/63505"


def standings(facts: dict[str, str], settings: dict[str, Value] | None = None) -> dict[str, str]:
    return {found.source: found.standing for found in check(facts, settings or {})}


@pytest.mark.parametrize(
    ("version", "changes", "standing"),
    [
        ("0.32.0", {}, "known_bad"),
        ("0.28.1", {}, "known_bad"),
        ("0.28.0", {}, "known_good"),
        ("0.32.0", {"eager": True}, None),
        ("0.32.0", {"pp": 1}, None),
        ("0.32.0", {"eager": None}, "may_apply"),
        ("main", {}, "may_apply"),
    ],
)
def test_a_known_issue_is_told_by_release_and_settings(
    version: str, changes: dict[str, Value | None], standing: str | None
) -> None:
    settings = {name: value for name, value in {**INCIDENT, **changes}.items() if value is not None}
    assert standings({"engine.name": "vllm", "engine.version": version}, settings).get(ISSUE) == standing


def test_a_report_of_another_engine_is_not_told() -> None:
    assert ISSUE not in standings({"engine.name": "sglang", "engine.version": "0.32.0"}, INCIDENT)


@pytest.mark.parametrize(
    ("facts", "settings", "key", "standing"),
    [
        ({"gpu.driver": "570.86.10", "torch.cuda": "13.0"}, {}, "gpu.driver", "known_bad"),
        ({"gpu.driver": "580.65.06", "torch.cuda": "13.0"}, {}, "gpu.driver", "known_good"),
        ({"gpu.driver": "570.86.10", "torch.cuda": "12.9"}, {}, "gpu.driver", "known_good"),
        ({"gpu.driver": "570.86.10"}, {}, "gpu.driver", None),
        ({"container.shm": "0.06 GiB"}, {"tp": 2}, "container.shm", "advice"),
        ({"container.shm": "64m"}, {}, "container.shm", "advice"),
        ({"container.shm": "0.06 GiB"}, {"tp": 1}, "container.shm", None),
        ({"container.shm": "16g"}, {"tp": 2}, "container.shm", None),
        (
            {"gpu.3.remapped_rows": "0 corrected, 2 uncorrected, REMAPPING FAILED"},
            {},
            "gpu.3.remapped_rows",
            "known_bad",
        ),
        ({"gpu.3.remapped_rows": "0 corrected, 2 uncorrected"}, {}, "gpu.3.remapped_rows", None),
        (
            {"gpu.0.ecc_errors": "9 corrected since boot, 10 uncorrected since boot"},
            {},
            "gpu.0.ecc_errors",
            "known_bad",
        ),
        (
            {"gpu.0.ecc_errors": "9 corrected since boot, 0 uncorrected since boot"},
            {},
            "gpu.0.ecc_errors",
            None,
        ),
        ({"package.triton": "2.3.1", "package.fla-core": "0.1"}, {}, "package.triton", "known_bad"),
        ({"package.triton": "2.3.1"}, {}, "package.triton", None),
        ({"variable.CUDA_LAUNCH_BLOCKING": "1"}, {}, "variable.CUDA_LAUNCH_BLOCKING", "advice"),
        ({"variable.CUDA_LAUNCH_BLOCKING": "0"}, {}, "variable.CUDA_LAUNCH_BLOCKING", None),
    ],
)
def test_an_item_is_judged_by_its_range(
    facts: dict[str, str], settings: dict[str, Value], key: str, standing: str | None
) -> None:
    found = [one.standing for one in check(facts, settings) if one.key == key]
    assert found == ([standing] if standing else [])


def test_what_is_known_bad_comes_first() -> None:
    facts = {"engine.name": "vllm", "engine.version": "0.32.0", "container.shm": "64m"}
    order = [one.standing for one in check(facts, INCIDENT)]
    assert order == sorted(order, key=["known_bad", "advice", "may_apply", "known_good"].index)
    assert order[0] == "known_bad"


def test_nothing_known_of_the_machine_says_nothing() -> None:
    assert check({}, {}) == ()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64 MiB", 0.0625),
        ("16g", 16.0),
        ("8gb", 8.0),
        ("1073741824", 1.0),
        ("host", None),
        ("23.54 GiB", 23.54),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: float | None) -> None:
    assert gib_of(text) == (pytest.approx(size) if size is not None else None)


def test_a_release_is_never_good_and_bad_in_the_same_report() -> None:
    from culpa.triage.releases import parse_range, within

    for issue in known_issues():
        if issue.good is None or issue.versions is None:
            continue
        for version in (
            "0.1",
            "0.12",
            "0.25.1",
            "0.28.0",
            "0.28.1",
            "0.32.0",
            "0.5",
            "0.6.4",
            "6841",
            "7621",
            "10523",
        ):
            both = within(version, parse_range(issue.good)) and within(version, parse_range(issue.versions))
            assert not both, (issue.id, version)
