"""QuickXplain: a minimal conflict by divide and conquer.

Junker, "QuickXplain: preferred explanations and relaxations for over-constrained problems", AAAI 2004, algorithm
QUICKXPLAIN. Constraints are factors at their suspect level, an inconsistent set of them is a failing configuration; the
background is empty, and the split is in halves.
"""

from collections.abc import Sequence

from benchmarks.peers.protocol import Oracle, Suspects


def quickxplain(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """The minimal failing set that is preferred by the order of the factors; all of them fail (seen before)."""
    if not factors:
        return frozenset()
    return _explain(oracle, frozenset(), frozenset(), list(factors))


def _explain(oracle: Oracle, background: Suspects, added: Suspects, constraints: list[str]) -> Suspects:
    if added and oracle.fails(background):
        return frozenset()
    if len(constraints) == 1:
        return frozenset(constraints)
    half = len(constraints) // 2
    first, second = constraints[:half], constraints[half:]
    of_second = _explain(oracle, background | set(first), frozenset(first), second)
    of_first = _explain(oracle, background | of_second, of_second, first)
    return of_first | of_second
