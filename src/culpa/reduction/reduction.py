"""From a failing sequence to a smallest part of it that still fails, one trial at a time.

The needed items are found from the front: the latest start of a tail that still fails is the first needed item; with
that one held, the next one is looked for behind it, until what is held fails by itself. A cause of k items among n
takes about k * log2(n) trials where the failure is deterministic, against k * n and more of plain delta debugging
(the scheme of QuickXplain, Junker 2004, for a sequence). At the end each item was left out once, and what is left
was seen to fail by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from culpa.reduction.latest import Belief, Cut, LatestStart
from culpa.reduction.rate import PRIOR, Floats, after, chance_of_half, chance_of_passes

Purpose = Literal["all", "search", "confirm", "necessary"]
# A start that is this sure is taken; what is wrong with it shows in the trials after it.
_SURE = 0.9
# With only these passes on record, an item counts as needed.
_MOST_CONFIRMING = 6


@dataclass(frozen=True, slots=True)
class Step:
    """The trial to run next: the items that are kept, by their place, and why."""

    kept: tuple[int, ...]
    purpose: Purpose
    reason: str


@dataclass(frozen=True, slots=True)
class Told:
    """How a trial ended. `failed` is None if it says nothing of the failure (another failure, no engine). `reached`
    counts the kept items that had their turn when the failure came, None if that is not known."""

    kept: tuple[int, ...]
    failed: bool | None
    reached: int | None = None


@dataclass(frozen=True, slots=True)
class Reduced:
    """What a reduction came to.

    `kept` is the smallest part that was seen to fail, empty if no failure was seen at all. `minimal` is True if
    each of its items was shown to be needed. `failed` of `trials` with exactly these items failed; `before` is the
    same of larger parts that hold them. `held` says whether the failure comes about as often as before (at least
    half of it, more likely than not).
    """

    kept: tuple[int, ...]
    minimal: bool
    failed: int
    trials: int
    before: tuple[int, int]
    held: bool


class Reduction:
    """One reduction of `count` items. Ask `next`, run the trial, `tell` it; all follows from what was told.

    `tries` is how often the whole is tried until it fails, `repeat` how often the smallest part must fail.
    """

    def __init__(self, count: int, *, confidence: float = 0.95, tries: int = 3, repeat: int = 2) -> None:
        self.history: list[Told] = []
        self._count = count
        self._confidence = confidence
        self._tries = tries
        self._repeat = repeat
        self._known: list[int] = []
        self._end = count
        self._rates: list[Floats] = []  # what was known of the rate when the search for each item began
        self._cuts: list[list[Cut]] = []
        self._barred: set[tuple[int, ...]] = set()
        self._complete = False

    # -- what was seen -------------------------------------------------------------------------------------

    def tell(self, step: Step, failed: bool | None, reached: int | None = None) -> None:
        """Take in how the trial of a step ended."""
        told = Told(step.kept, failed, reached)
        self.history.append(told)
        if failed is None:
            self._barred.add(step.kept)
            return
        if failed and reached is not None and 0 < reached <= len(step.kept):
            self._cut_after(step.kept[reached - 1])
        if step.purpose == "search":
            self._cuts[-1].append(Cut(self._start_of(step.kept), failed))
        elif step.purpose == "necessary" and failed:
            self._without(step.kept)
        self._advance()

    def _cut_after(self, last: int) -> None:
        """The failure came before anything after `last` had its turn: nothing of that is needed."""
        if last + 1 < self._end and last >= (self._known[-1] if self._known else 0):
            self._end = last + 1
            if self._cuts:
                self._cuts[-1] = [Cut(min(cut.start, self._end), cut.failed) for cut in self._cuts[-1]]

    def _without(self, kept: tuple[int, ...]) -> None:
        """An item that seemed to be needed is not: the smaller part is the one to go on from."""
        self._known = list(kept)
        self._complete = True

    # -- the way -------------------------------------------------------------------------------------------

    def next(self) -> Step | None:
        """The trial to run next; None at the end."""
        whole = tuple(range(self._count))
        if not self._seen:
            tried = sum(told.kept == whole for told in self.history)
            if tried >= self._tries or self._count == 0:
                return None
            return Step(whole, "all", f"all {self._count} together, to see the failure")
        if not self._cuts and not self._complete:
            self._begin()
            self._advance()
        if self._complete:
            return self._certify()
        return self._search()

    @property
    def _seen(self) -> bool:
        return any(told.failed for told in self.history)

    def _begin(self) -> None:
        """Look for the first needed item."""
        failed = sum(told.failed is True for told in self.history)
        self._rates.append(after(PRIOR, failed, sum(told.failed is False for told in self.history)))
        self._cuts.append([])

    def _latest(self) -> LatestStart:
        first = self._known[-1] + 1 if self._known else 0
        return LatestStart(min(first, self._end), self._end, self._rates[-1], alone=bool(self._known))

    def _advance(self) -> None:
        """Take what is sure by now."""
        while self._cuts and not self._complete:
            belief = self._latest().belief(self._cuts[-1])
            start, chance = belief.best
            if self._astray(belief):
                whole = [cut for cut in self._cuts[-1] if cut.start == belief.first]
                if not whole:
                    return
                # Not even the whole rest fails any more: the last item that was taken lies too late.
                self._rates.pop()
                self._cuts.pop()
                self._cuts[-1] += [Cut(self._known[-1], cut.failed) for cut in whole]
                self._known.pop()
                continue
            if chance < _SURE:
                return
            if start == self._end and self._known:
                if not self._count_of(tuple(self._known))[0]:
                    return  # it must be seen to fail by itself
                self._complete = True
                return
            if start >= self._end:
                return
            self._take(start)

    def _search(self) -> Step | None:
        """The tail to try next; None where none can be tried that would tell something."""
        while True:
            latest, cuts = self._latest(), self._cuts[-1]
            belief = latest.belief(cuts)
            start, chance = belief.best
            if self._astray(belief):
                cut: int | None = latest.first
            elif start == self._end and chance >= _SURE:
                cut = self._end
            else:
                barred = (
                    [t for t in range(latest.first, self._end + 1) if self._bars(t)] if self._barred else ()
                )
                cut = latest.next_cut(cuts, barred)
            if cut is not None and not self._bars(cut):
                return Step(self._kept(cut), "search", self._reason(cut))
            # No trial can tell the starts apart: the earliest is held, and left out at the end if it is not needed.
            earliest = latest.earliest(cuts)
            if cut is not None or earliest >= self._end:
                return None
            self._take(earliest)
            self._advance()
            if self._complete:
                return self._certify()

    def _take(self, start: int) -> None:
        """Hold an item, and look for the next one."""
        rates = self._latest().rates_after(self._cuts[-1])
        self._known.append(start)
        self._rates.append(rates)
        self._cuts.append([])

    def _astray(self, belief: Belief) -> bool:
        return bool(self._known) and belief.astray > max(belief.best[1], 0.5)

    def _bars(self, start: int) -> bool:
        return bool(self._barred) and self._kept(start) in self._barred

    def _kept(self, start: int) -> tuple[int, ...]:
        return (*self._known, *range(start, self._end))

    def _start_of(self, kept: tuple[int, ...]) -> int:
        """From where on a kept part is a tail."""
        tail = kept[len(self._known) :]
        return min(tail[0], self._end) if tail else self._end

    def _reason(self, start: int) -> str:
        tail = self._end - start
        held = f"{len(self._known)} held" if self._known else ""
        rest = f"the last {tail}" if tail else "nothing else"
        return f"{held} and {rest}" if held else rest

    # -- the end -------------------------------------------------------------------------------------------

    def _certify(self) -> Step | None:
        """Leave out each item where the trials so far don't show that it is needed; then the part itself again."""
        kept = tuple(self._known)
        for item in kept:
            rest = tuple(one for one in kept if one != item)
            if rest and rest not in self._barred and not self._needed(item):
                return Step(rest, "necessary", f"without request {item}, is it needed?")
        failed, trials = self._count_of(kept)
        wanted = self._repeat if failed == trials else max(self._repeat, 3)
        if failed < wanted and trials < _MOST_CONFIRMING * self._repeat and kept not in self._barred:
            return Step(kept, "confirm", "the smallest part again")
        return None

    def _needed(self, item: int) -> bool:
        """Whether passes without this item, with all the others there, are proof enough."""
        others = set(self._known) - {item}
        without = [told for told in self.history if item not in told.kept and others <= set(told.kept)]
        if any(told.failed for told in without):
            return False
        passed = sum(told.failed is False for told in without)
        missed = chance_of_passes(self._rates_of_cause(), passed)
        return missed / (1.0 + missed) <= 1.0 - self._confidence

    def _rates_of_cause(self) -> Floats:
        """The rate by all trials that held the whole of what is needed."""
        failed, trials = self._count_with(tuple(self._known))
        return after(PRIOR, failed, trials - failed)

    def _count_of(self, kept: tuple[int, ...]) -> tuple[int, int]:
        same = [told.failed for told in self.history if told.kept == kept and told.failed is not None]
        return sum(same), len(same)

    def _count_with(self, kept: Sequence[int]) -> tuple[int, int]:
        wanted = set(kept)
        found = [told.failed for told in self.history if told.failed is not None and wanted <= set(told.kept)]
        return sum(found), len(found)

    def smallest(self) -> tuple[int, ...]:
        """The smallest part that was seen to fail so far, cut where the failure came; empty if none was."""
        failing = [
            told.kept if told.reached is None else told.kept[: max(1, told.reached)]
            for told in self.history
            if told.failed
        ]
        return min(failing, key=len, default=())

    def result(self) -> Reduced:
        """What the trials so far come to, at the end or when they are stopped."""
        kept = tuple(self._known) if self._complete else self.smallest()
        failed, trials = self._count_of(kept)
        all_failed, all_trials = self._count_with(kept)
        before = (all_failed - failed, all_trials - trials)
        minimal = self._complete and bool(kept) and all(len(kept) == 1 or self._needed(item) for item in kept)
        held = not trials or chance_of_half((failed, trials), before) >= 0.5
        return Reduced(kept, minimal, failed, trials, before, held)
