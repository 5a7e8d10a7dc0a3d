"""Hwang's generalised binary splitting: group testing for a known number of defectives.

Hwang, "A method for detecting all defective members in a population by group testing", Journal of the American
Statistical Association 67 (1972); Du and Hwang, "Combinatorial group testing and its applications", 2000, section 2.2.
A group is contaminated if the failure goes away when all of it is made safe; the defectives are the members. It is
the only peer that is told how many there are.
"""

from collections.abc import Sequence
from math import floor, log2

from benchmarks.peers.protocol import Oracle, Suspects


def hwang(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """The members. `oracle.size` is their number; raises ValueError if it is not given."""
    if oracle.size is None:
        raise ValueError("generalised binary splitting needs to know the number of members")
    everything = frozenset(factors)

    def contaminated(group: Sequence[str]) -> bool:
        return not oracle.fails(everything - set(group))

    unknown, left = list(factors), oracle.size
    found: set[str] = set()
    while left and unknown:
        if len(unknown) == left:  # all that are left must be members
            found.update(unknown)
            break
        if len(unknown) <= 2 * left - 2:
            if contaminated(unknown[:1]):
                found.add(unknown[0])
                left -= 1
            unknown = unknown[1:]
            continue
        size = 2 ** floor(log2((len(unknown) - left + 1) / left))
        group = unknown[:size]
        if not contaminated(group):
            unknown = unknown[size:]
            continue
        rest = unknown[size:]
        while len(group) > 1:
            half = group[: len(group) // 2]
            if contaminated(half):
                rest, group = group[len(half) :] + rest, half
            else:
                group = group[len(half) :]
        found.add(group[0])
        left -= 1
        unknown = rest
    return frozenset(found)
