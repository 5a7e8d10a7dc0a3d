"""Trusted answers are compared only with answers to the same prompts; what would not be the same is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from culpa.hunt import Sizes
from culpa.model.options import IsolateOptions
from culpa.probes import Limits, Reference
from culpa.verify.golden import Asking, BadGolden, Golden, digest, read_golden, write_golden
from culpa.verify.run import _as_recorded
from culpa.verify.verifier import VerifyOptions

GOLDEN = Golden(
    Reference({}, 0.0, 0, 0.0),
    7,
    Limits("m"),
    Sizes(),
    "standard",
    Asking(600, ("What is 2+2?=4",), ("gate K7=48213",)),
)
PLAIN = VerifyOptions()


def test_what_was_asked_at_the_recording_is_asked_again() -> None:
    again = _as_recorded(PLAIN, GOLDEN)
    assert again.probes.probe_tokens == 600
    assert again.probes.questions == ("What is 2+2?=4",)
    assert again.probes.records == ("gate K7=48213",)
    assert again.probes.seed == 7


def test_the_suite_of_the_recording_holds_where_none_is_named() -> None:
    assert _as_recorded(PLAIN, replace(GOLDEN, suite="quick")).suite == "quick"


def test_another_suite_that_is_named_is_refused_and_not_passed_over() -> None:
    with pytest.raises(BadGolden, match="recorded with --suite quick, which --suite standard"):
        _as_recorded(replace(PLAIN, suite_given=True), replace(GOLDEN, suite="quick"))


def test_soak_asks_the_standard_suite_again_and_again() -> None:
    assert _as_recorded(VerifyOptions(suite="soak", suite_given=True), GOLDEN).suite == "soak"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (IsolateOptions(probe_tokens=900), "recorded with --probe-tokens 600"),
        (IsolateOptions(questions=("a?=b",)), "--question"),
        (IsolateOptions(records=("k=v",)), "--record"),
    ],
)
def test_other_prompts_than_those_of_the_recording_are_refused(options: IsolateOptions, said: str) -> None:
    with pytest.raises(BadGolden, match=said):
        _as_recorded(replace(PLAIN, probes=options), GOLDEN)


def test_the_same_prompts_may_be_asked_for_again() -> None:
    assert (
        _as_recorded(replace(PLAIN, probes=IsolateOptions(probe_tokens=600)), GOLDEN).probes.probe_tokens
        == 600
    )


def test_a_request_file_must_be_the_same_wherever_it_lies(tmp_path: Path) -> None:
    one, other, changed = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    one.write_text('{"prompt": "x"}')
    other.write_text('{"prompt": "x"}')
    changed.write_text('{"prompt": "y"}')
    golden = replace(GOLDEN, asking=Asking(requests=digest(str(one))))
    _as_recorded(replace(PLAIN, probes=IsolateOptions(request_file=str(other))), golden)
    for options in (IsolateOptions(), IsolateOptions(request_file=str(changed))):
        with pytest.raises(BadGolden, match="give the same file"):
            _as_recorded(replace(PLAIN, probes=options), golden)


def test_a_file_is_read_as_it_was_written_also_one_from_before(tmp_path: Path) -> None:
    path = tmp_path / "golden.json"
    write_golden(GOLDEN, path)
    assert read_golden(path) == GOLDEN
    import json

    content = json.loads(path.read_text())
    del content["golden"]["asking"]
    path.write_text(json.dumps(content))
    assert read_golden(path).asking == Asking()
