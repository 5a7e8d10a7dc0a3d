"""One factor at a time: from the user's launch, each factor is made safe alone.

The members of a conjunction are exactly the factors whose change makes the failure go away. The oldest design of
all; what is wrong with it is said in Czitrom, "One-factor-at-a-time versus designed experiments", The American
Statistician 53 (1999).
"""

from collections.abc import Sequence

from benchmarks.peers.protocol import Oracle, Suspects


def one_factor(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """The factors without which it passes."""
    everything = frozenset(factors)
    return frozenset(factor for factor in factors if not oracle.fails(everything - {factor}))
