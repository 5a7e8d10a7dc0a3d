"""The searches that are compared: culpa's, git_bayesect's, and bisection that repeats every version k times.

Each is told whether a trial of a version failed, and nothing else; the good end stands at position 0. The ends are
given to all: culpa has seen the bad end fail once before its trials are counted, as its user has.
"""

from collections.abc import Callable
from dataclasses import dataclass

from culpa.model import Outcome
from culpa.search.change_point import ChangeFound, VersionSearch, VersionTrial

Fails = Callable[[int], bool]
MOST = 3000


@dataclass(frozen=True, slots=True)
class Answer:
    """The first bad version that a search names (None if it names none), and its trials; `hunt` came before these."""

    first: int | None
    trials: int
    hunt: int = 0


def culpa(count: int, fails: Fails, confidence: float) -> Answer:
    """`culpa bisect`; the trials until the bad end was seen to fail are `hunt`."""
    search = VersionSearch(count, confidence)
    history: list[VersionTrial] = []
    hunt = 0
    while len(history) < MOST:
        step = search.next(history)
        if isinstance(step, ChangeFound):
            only = step.first if step.found and step.first == step.last else None
            return Answer(only, len(history) - hunt, hunt)
        failed = fails(step.position)
        history.append(VersionTrial(step.position, Outcome.FAIL if failed else Outcome.PASS))
        if failed and not hunt:
            hunt = len(history)
    return Answer(None, len(history) - hunt, hunt)


def git_bayesect(count: int, fails: Fails, confidence: float) -> Answer:
    """git_bayesect 1.2 as `git bayesect run` uses it: https://github.com/hauntsaninja/git_bayesect

    Its own class chooses and judges; index 0 is the newest commit, all that it is told are passes and failures, and it
    stops when one commit is likely enough.
    """
    from git_bayesect import Bisector

    bisector = Bisector([1.0] * count)
    for trials in range(1, MOST + 1):
        index = bisector.select()
        bisector.record(index, fails(count - 1 - index))
        if bisector.distribution.max() >= confidence:
            return Answer(count - 1 - int(bisector.distribution.argmax()), trials)
    return Answer(None, MOST)


def repeating(times: int) -> Callable[[int, Fails, float], Answer]:
    """`git bisect` whose test runs a version up to `times` times and calls it bad at the first failure."""

    def search(count: int, fails: Fails, _confidence: float) -> Answer:
        low, high, trials = 0, count - 1, 0
        while high - low > 1:
            middle = (low + high) // 2
            bad = False
            for _ in range(times):
                trials += 1
                if fails(middle):
                    bad = True
                    break
            low, high = (low, middle) if bad else (middle, high)
        return Answer(high, trials)

    return search


def repeats_needed(count: int, rate: float, confidence: float) -> int:
    """The fewest repeats with which all of the bisection is right that often, the rate being known.

    Every bad version that is tried must fail once: at most log2(count) of them are.
    """
    steps = max(1, (count - 2).bit_length())
    times = 1
    while rate < 1.0 and (1.0 - (1.0 - rate) ** times) ** steps < confidence:
        times += 1
    return times
