"""ProbDD, probabilistic delta debugging.

Wang, Shen, Chen, Xiong, Zhang, "Probabilistic delta debugging", ESEC/FSE 2021. Every element has a probability of
being needed, at first the same (0.1 in the paper's experiments). Each step removes the elements with the smallest
probabilities, as many as maximise the expected gain: their number times the chance that none of them is needed. If it
still fails, they are gone; else their probabilities rise by Bayes' rule. It ends when all that are left have
probability one.
"""

from collections.abc import Sequence
from math import prod

from benchmarks.peers.protocol import Oracle, Suspects

INITIAL = 0.1
_CERTAIN = 1.0 - 1e-9


def probdd(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """What is left when nothing more can be removed."""
    needed = dict.fromkeys(factors, INITIAL)
    if oracle.fails(()):
        return frozenset()
    while any(chance < _CERTAIN for chance in needed.values()):
        removed = best_removal(needed)
        if oracle.fails(needed.keys() - removed):
            needed = {name: chance for name, chance in needed.items() if name not in removed}
            continue
        none_needed = prod(1.0 - needed[name] for name in removed)
        for name in removed:
            needed[name] = min(needed[name] / (1.0 - none_needed), 1.0)
    return frozenset(needed)


def best_removal(needed: dict[str, float]) -> Suspects:
    """The elements whose removal gains most in expectation; of equal probabilities the earlier come first."""
    order = sorted((name for name in needed if needed[name] < _CERTAIN), key=needed.__getitem__)
    best, most, chance = 1, -1.0, 1.0
    for count, name in enumerate(order, start=1):
        chance *= 1.0 - needed[name]
        if count * chance > most + 1e-12:
            best, most = count, count * chance
    return frozenset(order[:best])
