"""ddmin, the minimising delta debugging algorithm.

Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE Transactions on Software
Engineering 28 (2002), figure 5: parts of the failing set alone, then all but a part, then smaller parts. The result
is 1-minimal: no single element can be left out.
"""

from collections.abc import Sequence
from itertools import pairwise

from benchmarks.peers.protocol import Oracle, Suspects


def ddmin(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """A 1-minimal failing set. The paper's preconditions: all fail (seen before), none pass."""
    if oracle.fails(()):
        return frozenset()
    failing, parts = list(factors), 2
    while len(failing) >= 2:
        subsets = _split(failing, parts)
        alone = next((part for part in subsets if oracle.fails(part)), None)
        if alone is not None:  # reduce to subset
            failing, parts = alone, 2
            continue
        rest = None
        if parts > 2:  # of two parts, each is the complement of the other
            complements = ([one for one in failing if one not in part] for part in subsets)
            rest = next((left for left in complements if oracle.fails(left)), None)
        if rest is not None:  # reduce to complement
            failing, parts = rest, max(parts - 1, 2)
        elif parts < len(failing):  # increase granularity
            parts = min(len(failing), 2 * parts)
        else:
            break
    return frozenset(failing)


def _split(elements: list[str], parts: int) -> list[list[str]]:
    """`parts` subsets of sizes as equal as can be."""
    cuts = [len(elements) * index // parts for index in range(parts + 1)]
    return [elements[start:end] for start, end in pairwise(cuts)]
