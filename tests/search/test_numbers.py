"""Thresholds of numbers, whatever the number."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.search.simulated import flat, solve

from culpa.model import Factor

FEW = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow])


def sentence(suspect: int, safe: int, fault: str) -> str:
    factors = [Factor("seqs", str(suspect), (str(safe),), numeric=True), *flat(3)]
    run = solve(factors, fault)
    assert run.found == [{"seqs", "f1"}]
    (told,) = [one for one in run.conclusion.findings[0].conditions if one.startswith("seqs: ")]
    return told


@given(st.integers(3, 5000), st.data())
@FEW
def test_the_interval_holds_the_threshold(suspect: int, data: st.DataObject) -> None:
    least = data.draw(st.integers(2, suspect))
    told = sentence(suspect, 1, f"seqs>={least} && f1")
    found = re.fullmatch(r"seqs: fails at (\d+) \(.*?\), passes at (\d+) \(.*?\)(; the flip lies .*)?", told)
    assert found is not None, told
    assert int(found[2]) < least <= int(found[1])


@given(st.integers(1, 200), st.data())
@FEW
def test_a_threshold_from_below_is_found_too(suspect: int, data: st.DataObject) -> None:
    most = data.draw(st.integers(suspect, 4095))
    told = sentence(suspect, 4096, f"seqs<={most} && f1")
    found = re.match(r"seqs: fails at (\d+) \(.*?\), passes at (\d+) ", told)
    assert found is not None, told
    assert int(found[1]) <= most < int(found[2])


@given(st.integers(8, 2000))
@FEW
def test_what_fails_at_one_value_alone_has_no_threshold(suspect: int) -> None:
    assert sentence(suspect, 1, f"seqs=={suspect} && f1").startswith("seqs: no threshold: it fails at ")
