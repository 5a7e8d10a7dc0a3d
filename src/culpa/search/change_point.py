"""Which version to try next, and when the change point is known: the search of `culpa bisect`.

Pure: the next step follows from the trials so far and their costs, so that a resumed search goes on as if it had
never stopped. docs/bisect.md says why it does what it does, and benchmarks/bisect measures it.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from culpa.search.change_found import ChangeFound, Seen, conclusion, likeliest
from culpa.search.change_posterior import ChangePosterior, Floats, change_posterior, entropy
from culpa.search.change_step import VersionStep, VersionTrial

# A trial must tell at least this many bits, or nothing is left to be learned.
LEAST_BITS = 1e-4
# Trials that confirm an answer beside those that the halving takes.
CONFIRMING = 2
# The same for a fault that does not fail each time: the answer must stay for as many trials at its edges.
CONFIRMING_NOISY = 4
# As many failures in a row leave rates below 55% out (0.55^5 = 5%). Before that a second failure of the first bad
# version tells more about the answer than a second pass of the last good one, which a rare fault gives by itself.
FAILURES_IN_A_ROW = 5

Mode = Literal["unseen", "halving", "pinned", "noisy"]


class VersionSearch:
    """Chooses versions between a good and a bad end. `count` is the number of versions with both ends, at least 2."""

    def __init__(self, count: int, confidence: float = 0.95) -> None:
        if count < 2:
            raise ValueError(f"there is nothing between fewer than two versions ({count})")
        self.count = count
        self.confidence = confidence

    def next(self, history: Sequence[VersionTrial], costs: Floats | None = None) -> VersionStep | ChangeFound:
        """The next version, or the end. `costs` are those of a trial of each version, by default all alike."""
        seen = Seen.of(self.count, history)
        mode = _mode(seen)
        if mode == "unseen":
            return VersionStep(self.count - 1, "baseline", "the bad end, to see the failure")
        posterior = change_posterior(seen.failed, seen.passed)
        if mode == "halving":
            return _halving(seen, posterior, costs)
        if mode == "noisy" and likeliest(posterior, seen)[2] < self.confidence:
            step = self._most_told(seen, posterior, costs)
        else:
            step = self._confirmation(seen, posterior, history, mode)
        return step or conclusion(seen, posterior, self.confidence)

    def conclude(self, history: Sequence[VersionTrial]) -> ChangeFound:
        """What can be said now, no further trial granted."""
        seen = Seen.of(self.count, history)
        return conclusion(seen, change_posterior(seen.failed, seen.passed), self.confidence)

    def posterior(self, history: Sequence[VersionTrial]) -> ChangePosterior:
        """The probabilities of the change points after these trials."""
        seen = Seen.of(self.count, history)
        return change_posterior(seen.failed, seen.passed)

    def expected_remaining(self, history: Sequence[VersionTrial]) -> int:
        """About how many trials are still to come: the bits that are open over those of the best trial."""
        seen, posterior = Seen.of(self.count, history), self.posterior(history)
        confirming = max(0, CONFIRMING - seen.repeats)
        if likeliest(posterior, seen)[2] >= self.confidence:
            return confirming
        weight = posterior.weight[posterior.weight > 0]
        open_bits = float(-(weight * np.log2(weight)).sum())
        best = float(posterior.information().max())
        return int(np.ceil(open_bits / max(best, 0.05))) + confirming

    def _confirmation(
        self, seen: Seen, posterior: ChangePosterior, history: Sequence[VersionTrial], mode: Mode
    ) -> VersionStep | None:
        """The trial that an answer still owes; None where it owes none."""
        first, last, probability = likeliest(posterior, seen)
        sure = probability >= self.confidence
        failing = posterior.failing()
        again = self._second_chance(seen, first, last) if sure else None
        if again is not None:
            reason = "it could not be tried before, and the answer is an interval without it"
            return VersionStep(again, "again", reason, failing=float(failing[again]))
        if sure and (self._survived(history, first, last) if mode == "noisy" else seen.repeats >= CONFIRMING):
            return None
        position = _to_confirm(seen, first, last, mode)
        reason = "the first bad version" if position >= first else "the last good version"
        again_text = ", once more" if seen.failed[position] or seen.passed[position] else ""
        return VersionStep(position, "confirm", f"{reason}{again_text}", failing=float(failing[position]))

    def _second_chance(self, seen: Seen, first: int, last: int) -> int | None:
        """A version that could not be tried and widens the answer; it is asked once more before that stays."""
        for position in range(max(first - 1, 0), last + 1):
            if seen.spoilt[position] == 1 and not seen.told[position]:
                return position
        return None

    def _survived(self, history: Sequence[VersionTrial], first: int, last: int) -> bool:
        """Whether the answer was there before the last trials, which were to confirm it."""
        before = Seen.of(self.count, history[:-CONFIRMING_NOISY])
        held = likeliest(change_posterior(before.failed, before.passed), before)
        return held[:2] == (first, last) and held[2] >= self.confidence

    def _most_told(self, seen: Seen, posterior: ChangePosterior, costs: Floats | None) -> VersionStep | None:
        bits = np.where(seen.usable, posterior.information(), 0.0)
        worth = bits if costs is None else bits / costs
        # Of versions that tell the same, the one in the middle of what is open.
        best = np.flatnonzero(worth >= worth.max() * (1.0 - 1e-9))
        middle = float(posterior.weight @ np.arange(self.count))
        position = int(best[np.argmin(np.abs(best - middle))])
        return (
            None if bits[position] < LEAST_BITS else _search_step(posterior, position, float(bits[position]))
        )


def _mode(seen: Seen) -> Mode:
    """What the trials look like: a fault that fails each time and came in once, or one that needs statistics."""
    if not seen.failed.any():
        return "unseen"
    low, high = seen.last_passed, seen.first_failed
    if low > high or (seen.passed * seen.failed).any():
        return "noisy"
    return "halving" if seen.usable[low + 1 : high].any() else "pinned"


def _halving(seen: Seen, posterior: ChangePosterior, costs: Floats | None) -> VersionStep:
    """The version between the last that passed and the first that failed which halves best, for its cost."""
    low, high = seen.last_passed, seen.first_failed
    between = np.arange(low + 1, high)
    between = between[seen.usable[low + 1 : high]]
    # Were the fault certain, the outcome would tell in which of the two parts the change lies.
    bits = entropy((between - low) / (high - low))
    worth = bits if costs is None else bits / costs[between]
    best = between[worth >= worth.max() * (1.0 - 1e-9)]
    position = int(
        best[-1]
    )  # of two middles the later one: where all pass, there is a trial more to confirm with
    return _search_step(posterior, position, float(bits[np.searchsorted(between, position)]))


def _search_step(posterior: ChangePosterior, position: int, bits: float) -> VersionStep:
    failing = float(posterior.failing()[position])
    reason = f"expected to fail with probability {failing:.0%}: tells {bits:.2f} bits"
    return VersionStep(position, "search", reason, bits, failing)


def _to_confirm(seen: Seen, first: int, last: int, mode: Mode) -> int:
    """The side of the answer whose confirmation tells more; the user vouches for the good end, which passes once."""
    good = first - 1
    if good < 0:
        return 0
    if good == 0 and not seen.told[0] and seen.usable[0]:
        return 0
    if mode == "pinned" and seen.failed.sum() < FAILURES_IN_A_ROW and seen.usable[last]:
        return last
    if not seen.usable[good] or (mode == "pinned" and good == 0):
        return last
    return good


__all__ = ["ChangeFound", "VersionSearch", "VersionStep", "VersionTrial"]
