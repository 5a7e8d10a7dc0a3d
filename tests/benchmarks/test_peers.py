"""The peers do what their papers say, and find the set of every deterministic monotone fault."""

import random
from collections.abc import Sequence
from math import ceil, comb, log2

import pytest
from benchmarks.peers import PEERS, Answer, Oracle, OutOfTrials, Suspects
from benchmarks.peers.bisect import go_bisect
from benchmarks.peers.covering import (
    as_rows,
    component_suspiciousness,
    covering_array,
    covering_ben,
    ranked,
    suspicion,
)
from benchmarks.peers.ddmin import ddmin
from benchmarks.peers.hwang import hwang
from benchmarks.peers.one_factor import one_factor
from benchmarks.peers.probdd import best_removal, probdd
from benchmarks.peers.quickxplain import quickxplain
from benchmarks.peers.repeats import ONCE, Repeats, repeats_for
from numpy import array
from scipy.stats import binom


class Recording(Oracle):
    """An oracle of a monotone fault that remembers which sets were run."""

    def __init__(self, *causes: str, budget: int = 400, size: int | None = None) -> None:
        self.ran: list[str] = []
        self._causes = [frozenset(cause) for cause in causes]
        super().__init__(self._trial_of, budget=budget, size=size)

    def _trial_of(self, suspects: Suspects) -> Answer:
        self.ran.append("".join(sorted(suspects)))
        failing = any(cause <= suspects for cause in self._causes)
        return Answer.FAIL if failing else Answer.PASS


def names(count: int) -> list[str]:
    return [f"f{index}" for index in range(count)]


def monotone(cause: Suspects, factors: Sequence[str], size: int | None) -> Oracle:
    oracle = Oracle(
        lambda suspects: Answer.FAIL if cause <= suspects else Answer.PASS, budget=5000, size=size
    )
    oracle.see_it_fail(factors)
    return oracle


@pytest.mark.parametrize("method", PEERS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 12])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_peer_finds_the_set_of_a_deterministic_monotone_fault(
    method: str, count: int, size: int
) -> None:
    factors = names(count)
    for seed in range(20):
        cause = frozenset(random.Random(seed).sample(factors, min(size, count)))
        assert PEERS[method](monotone(cause, factors, len(cause)), factors) == cause


@pytest.mark.parametrize("method", ["ddmin", "quickxplain", "go bisect"])
def test_of_two_causes_one_is_found(method: str) -> None:
    factors = names(9)
    causes = [frozenset({"f1", "f5"}), frozenset({"f3", "f8"})]
    oracle = Oracle(lambda suspects: Answer.FAIL if any(one <= suspects for one in causes) else Answer.PASS)
    oracle.see_it_fail(factors)
    assert PEERS[method](oracle, factors) in causes


def test_one_factor_asks_once_for_each_factor() -> None:
    oracle = Recording("b")
    assert one_factor(oracle, "abc") == {"b"}
    assert oracle.ran == ["bc", "ac", "ab"]


def test_ddmin_goes_through_the_papers_example() -> None:
    """Figure 4 of the paper: changes 1, 7 and 8 of eight fail together."""
    oracle = Recording("178")
    oracle.see_it_fail("12345678")
    assert ddmin(oracle, "12345678") == set("178")
    # Halves, quarters, complements of quarters: without 3 and 4 it fails, then without 5 and 6, then as singles.
    assert oracle.ran[1:9] == ["", "1234", "5678", "12", "34", "56", "78", "345678"]
    assert oracle.ran[9:11] == ["125678", "1278"]
    assert oracle.ran[-1] in ("17", "18", "78", "178")


def test_ddmin_takes_unresolved_for_what_it_is() -> None:
    """Where all but the whole and the goal are unresolved, ddmin still ends at a failing set."""
    oracle = Oracle(
        lambda some: Answer.FAIL if len(some) in (2, 8) and some >= {"1", "2"} else Answer.UNRESOLVED
    )
    oracle.see_it_fail("12345678")
    assert ddmin(oracle, "12345678") == {"1", "2"}


def test_probdd_removes_most_where_the_expected_gain_is_largest() -> None:
    """With p = 0.1 for all, s * 0.9 ** s is largest at nine and ten; at 0.5 one is best."""
    assert len(best_removal({str(index): 0.1 for index in range(20)})) == 9
    assert len(best_removal({str(index): 0.5 for index in range(20)})) == 1
    assert best_removal({"a": 0.9, "b": 0.2, "c": 1.0}) == {"b"}


def test_probdd_raises_probabilities_by_bayes_until_single_removals_decide() -> None:
    oracle = Recording("3")
    oracle.see_it_fail("12345678")
    assert probdd(oracle, "12345678") == {"3"}
    # All eight go first (8 * 0.9 ** 8 is the largest gain): known to pass. Then p = 0.1 / (1 - 0.9 ** 8) = 0.176,
    # and five go: 5 * 0.824 ** 5 is the largest gain.
    assert oracle.ran[1:3] == ["", "678"]


def test_quickxplain_finds_the_preferred_conflict() -> None:
    """Two conflicts: of the two, the one whose least preferred member is preferred."""
    oracle = Recording("ab", "cd")
    oracle.see_it_fail("abcd")
    assert quickxplain(oracle, "abcd") == {"a", "b"}
    oracle.see_it_fail("cdab")
    assert quickxplain(oracle, "cdab") == {"c", "d"}


def test_quickxplain_needs_few_checks_for_a_conflict_in_one_half() -> None:
    """Junker: between log2(n / k) + 2k and 2k log2(n / k) + 2k checks for a conflict of k out of n."""
    for cause in ("a", "ab", "ap", "dhl"):
        oracle = Recording(cause)
        quickxplain(oracle, "abcdefghijklmnop")
        k = len(cause)
        assert len(oracle.ran) <= 2 * k * log2(16 / k) + 2 * k + 1  # and the whole, seen to fail before


def test_go_bisect_chases_a_failing_half_and_splits_a_pair() -> None:
    oracle = Recording("g")
    oracle.see_it_fail("abcdefgh")
    assert go_bisect(oracle, "abcdefgh") == {"g"}
    assert oracle.ran[1:] == ["", "abcd", "efgh", "ef", "gh", "g"]
    pair = Recording("ag")
    pair.see_it_fail("abcdefgh")
    assert go_bisect(pair, "abcdefgh") == {"a", "g"}
    assert pair.ran[1:] == ["", "abcd", "efgh", "abefgh", "aefgh", "aef", "agh", "ag"]


def test_go_bisect_accuses_nobody_if_the_safe_launch_fails() -> None:
    assert go_bisect(Recording(""), "abc") == frozenset()


def test_hwang_stays_within_its_bound() -> None:
    """Du and Hwang, theorem 2.2.2: at most ceil(log2 C(n, d)) + d - 1 tests for d >= 2."""
    for n, d in ((16, 2), (32, 2), (32, 3), (24, 3)):
        factors = names(n)
        for seed in range(60):
            cause = frozenset(random.Random(seed).sample(factors, d))
            oracle = monotone(cause, factors, d)
            before = oracle.trials
            assert hwang(oracle, factors) == cause
            assert oracle.trials - before <= ceil(log2(comb(n, d))) + d - 1


def test_hwang_needs_to_know_the_number() -> None:
    with pytest.raises(ValueError, match="number of members"):
        hwang(Recording("a"), "abc")


@pytest.mark.parametrize("count", [2, 3, 8, 16])
def test_the_covering_array_shows_every_pair_in_every_combination(count: int) -> None:
    factors = names(count)
    rows = covering_array(factors)
    for one in factors:
        for other in factors:
            if one < other:
                assert {(one in row, other in row) for row in rows} == {
                    (a, b) for a in (0, 1) for b in (0, 1)
                }
    assert len(rows) <= max(4, 2 * count)


def test_a_combination_in_a_passed_test_is_not_suspicious() -> None:
    failed, passed = as_rows([frozenset("abc"), frozenset("ab")], "abcd"), as_rows([frozenset("bc")], "abcd")
    table = array([[0, 1], [0, 2], [1, 2], [0, 3]])
    assert suspicion(table, failed, passed).tolist() == [True, True, False, False]


def test_the_combination_in_most_failures_and_fewest_passes_ranks_first() -> None:
    failed = as_rows([frozenset("abcd"), frozenset("ab"), frozenset("abc")], "abcd")
    passed = as_rows([frozenset("cd"), frozenset("bd"), frozenset("ac")], "abcd")
    table = array([[0, 1], [0, 3], [1, 2]])
    weight = component_suspiciousness(table, failed, passed)
    # a: in 3 of 3 failed tests, 3 of 4 tests with it failed, in 2 of 3 suspicious combinations.
    assert weight[0] == pytest.approx((1 + 3 / 4 + 2 / 3) / 3)
    assert table[ranked(table, failed, passed)[0]].tolist() == [0, 1]


def test_ben_finds_a_pair_that_the_array_has_seen_fail() -> None:
    oracle = Recording("bg")
    oracle.see_it_fail("abcdefgh")
    assert covering_ben(oracle, "abcdefgh") == {"b", "g"}


def test_what_was_run_once_is_not_run_again() -> None:
    oracle = Recording("a")
    assert [oracle.fails("ab"), oracle.fails("ba")] == [True, True]
    assert oracle.ran == ["ab"]


def test_the_oracle_stops_at_its_budget() -> None:
    oracle = Recording("a", budget=2)
    oracle.fails("a")
    oracle.fails("b")
    with pytest.raises(OutOfTrials, match="2 trials"):
        oracle.fails("c")


def test_repeats_stop_as_soon_as_the_answer_is_settled() -> None:
    answers = iter([Answer.PASS, Answer.FAIL, Answer.FAIL, Answer.PASS, Answer.PASS, Answer.PASS])
    oracle = Oracle(lambda _: next(answers), repeats=Repeats(4, 2))
    assert oracle.fails("a")
    assert oracle.trials == 3
    assert not oracle.fails("b")
    assert oracle.trials == 6


@pytest.mark.parametrize(
    ("rate", "false_rate", "error"),
    [(0.5, 0.0, 0.05), (0.3, 0.01, 0.01), (0.8, 0.05, 0.01), (0.1, 0.05, 0.1)],
)
def test_repeats_keep_both_errors_and_no_fewer_would(rate: float, false_rate: float, error: float) -> None:
    chosen = repeats_for(rate, false_rate, error)

    def kept(runs: int, failures: int) -> bool:
        missed = binom.cdf(failures - 1, runs, rate)
        invented = 1.0 - binom.cdf(failures - 1, runs, false_rate)
        return bool(missed <= error and invented <= error + 1e-12)

    assert kept(chosen.runs, chosen.failures)
    assert not any(kept(chosen.runs - 1, failures) for failures in range(1, chosen.runs))


def test_a_deterministic_fault_is_run_once() -> None:
    assert repeats_for(1.0, 0.0, 0.001) == ONCE


def test_rates_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(ValueError, match="must lie above"):
        repeats_for(0.1, 0.1, 0.05)
