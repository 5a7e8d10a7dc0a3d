"""A 2-way covering array, then BEN-style ranking of suspicious combinations.

The array comes from `covertable` (greedy pairwise, https://pypi.org/project/covertable/); the user's failing launch and
the all-safe one are added to it. The ranking is that of BEN: Ghandehari, Lei, Xie, Kuhn, Kacker, "Identifying
failure-inducing combinations in a combinatorial test set", ICST 2012. A combination is suspicious if it is in a failed
test and in no passed one. Components are weighed by how often they are in failed tests and in suspicious combinations,
combinations by their components and by the environment in which they failed; the top one is tried in the least
suspicious environment. If it fails there it is taken to be failure-inducing, else it is suspicious no more.

Two liberties, both in its favour: only suspect levels are components (the direction is known), and sizes go from one
upwards, so that a smaller combination needs no second look.
"""

from collections.abc import Sequence
from itertools import combinations

import covertable
import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.protocol import Answer, Oracle, Suspects

_LARGEST = 4
Rows = NDArray[np.bool_]  # one test a row: which factors are suspect
Combinations = NDArray[np.intp]  # one combination a row: the indices of its factors


def covering_array(factors: Sequence[str], strength: int = 2) -> list[Suspects]:
    """Rows in which every `strength` factors show every combination of suspect and safe."""
    if len(factors) <= strength:
        return [frozenset(some) for size in range(len(factors) + 1) for some in combinations(factors, size)]
    rows = covertable.make([[True, False]] * len(factors), strength=strength)
    return [frozenset(name for name, on in zip(factors, row, strict=True) if on) for row in rows]


def covering_ben(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """The first combination that fails in the least suspicious environment; empty if none of up to four does."""
    failed, passed = [frozenset(factors)], []
    for row in (frozenset[str](), *covering_array(factors)):
        answer = oracle.answer(row)
        if answer is Answer.FAIL and row not in failed:
            failed.append(row)
        elif answer is Answer.PASS:
            passed.append(row)
    failing = as_rows(failed, factors)
    for size in range(1, min(_LARGEST, len(factors)) + 1):
        table = np.array(list(combinations(range(len(factors)), size)), dtype=np.intp)
        suspicious = table[suspicion(table, failing, as_rows(passed, factors))]
        while len(suspicious):
            top = suspicious[ranked(suspicious, failing, as_rows(passed, factors))[0]]
            combination = frozenset(factors[place] for place in top)
            if oracle.fails(combination):  # the least suspicious environment: all else safe
                return combination
            passed.append(combination)
            suspicious = suspicious[suspicion(suspicious, failing, as_rows(passed, factors))]
    return frozenset()


def as_rows(tests: Sequence[Suspects], factors: Sequence[str]) -> Rows:
    """Tests as a matrix of suspect levels."""
    return np.array([[name in test for name in factors] for test in tests], dtype=np.bool_).reshape(
        len(tests), len(factors)
    )


def suspicion(table: Combinations, failed: Rows, passed: Rows) -> NDArray[np.bool_]:
    """Which combinations are in a failed test and in no passed one."""
    return np.asarray(_within(table, failed).any(axis=0) & ~_within(table, passed).any(axis=0))


def ranked(suspicious: Combinations, failed: Rows, passed: Rows) -> NDArray[np.intp]:
    """The order by the sum of two ranks: own suspiciousness, high first, and that of the environment, low first.
    The environment of a combination is the mildest one of the failed tests that contain it."""
    weight = component_suspiciousness(suspicious, failed, passed)
    size = suspicious.shape[1]
    total = weight[suspicious].sum(axis=1)
    around = (failed @ weight)[:, None] - total[None, :]
    others = np.maximum(failed.sum(axis=1) - size, 1)[:, None]
    environment = np.where(_within(suspicious, failed), around / others, np.inf).min(axis=0)
    _, own_rank = np.unique(-np.round(total / size, 12), return_inverse=True)
    _, environment_rank = np.unique(np.round(environment, 12), return_inverse=True)
    return np.argsort(own_rank + environment_rank, kind="stable")


def component_suspiciousness(suspicious: Combinations, failed: Rows, passed: Rows) -> NDArray[np.float64]:
    """For every factor the mean of three shares: of the failed tests that contain its suspect level, of the tests
    with it that failed, of the suspicious combinations that contain it."""
    in_failed, in_passed = failed.sum(axis=0), passed.sum(axis=0)
    in_suspicious = np.bincount(suspicious.ravel(), minlength=failed.shape[1])
    shares = (
        in_failed / len(failed),
        in_failed / np.maximum(in_failed + in_passed, 1),
        in_suspicious / len(suspicious),
    )
    return np.asarray(sum(shares) / 3.0, dtype=np.float64)


def _within(table: Combinations, rows: Rows) -> NDArray[np.bool_]:
    """A matrix of tests by combinations: is the whole combination in the test?"""
    return np.asarray(rows[:, table].all(axis=2))
