"""What leads to trials that say nothing (OTHER, UNTESTABLE), so that the search can avoid it.

A small model of its own: each factor at safe, and each pair of levels of which at least one is safe, may
spoil a trial. Good trials clear whatever they contain; every spoiled trial must be blamed on something that
it contains, or on chance. It is a noisy-or (what one literal explains, the others need not), solved by a few
rounds of belief propagation, which is exact enough for its use: to tell how likely a configuration is to be
spoiled, and which factors can't be tested at all.
"""

import numpy as np
from numpy.typing import NDArray

from culpa.search.evidence import Cell, Evidence
from culpa.search.hypotheses import Floats

_SINGLE = 0.03
_SINGLE_AGAIN = 0.3  # of a factor that has spoiled trials at another of its safe levels
_PAIRS_OF_ONE = 0.004  # shared by all pairs that one factor is part of
_CHANCE = 0.01
_CLEARED = 0.02
_ROUNDS = 12
UNTESTABLE = 0.65  # blame above which a factor is held at its suspect level, an arm replaced
_SEEN_SPOILED, _SEEN_GOOD = 0.97, 0.01


def _good(cell: Cell) -> int:
    return len(cell.failed) + len(cell.passed)


class Hazard:
    """The chance that a configuration would be spoiled, and the factors that spoil nearly every trial."""

    def __init__(self, evidence: Evidence, suspicious: int = 0) -> None:
        """`suspicious` masks factors that spoiled trials at a safe level that now another stands in for."""
        self._size = evidence.space.size
        self._suspicious = suspicious
        self._left, self._right = np.triu_indices(self._size, k=1)
        exact = [cell for cell in evidence.cells if cell.reading.exact]
        self._seen = {
            cell.reading.low: _SEEN_SPOILED if len(cell.spoiled) > _good(cell) else _SEEN_GOOD
            for cell in exact
        }
        spoiled = [mask for mask, chance in self._seen.items() if chance == _SEEN_SPOILED]
        good = [mask for mask, chance in self._seen.items() if chance == _SEEN_GOOD]
        self.any = bool(spoiled) or bool(suspicious)
        self.held = 0
        if not self.any:
            return
        self._blame = self._learn(self._literals(good), self._literals(spoiled))
        for index in np.flatnonzero(self._blame[: self._size] >= UNTESTABLE):
            self.held |= 1 << int(index)
        # A safe level that was judged once can be tested, however often a fault beside it spoils the trial.
        for cell in exact:
            if _good(cell):
                self.held &= cell.reading.low

    def chances(self, masks: list[int]) -> Floats:
        """For every configuration the chance that its trial would say nothing."""
        if not self.any or not masks:
            return np.zeros(len(masks))
        literals = self._literals(masks)
        chance = np.asarray(1.0 - np.exp(literals @ np.log1p(-np.minimum(self._blame, 0.99))))
        for place, mask in enumerate(masks):
            chance[place] = self._seen.get(mask, chance[place])
        return chance

    def chance(self, mask: int) -> float:
        """The chance that one configuration's trial would say nothing."""
        return float(self.chances([mask])[0])

    def _literals(self, masks: list[int]) -> NDArray[np.float64]:
        """Which literals each configuration contains: safe singles, then the three kinds of pairs."""
        columns = np.array(masks, dtype=np.uint64)[:, None]
        safe = ((columns >> np.arange(self._size, dtype=np.uint64)) & np.uint64(1)) == 0
        left, right = safe[:, self._left], safe[:, self._right]
        return np.concatenate([safe, left & right, left & ~right, ~left & right], axis=1).astype(np.float64)

    def _learn(self, good: NDArray[np.float64], spoiled: NDArray[np.float64]) -> Floats:
        pairs = 3 * self._left.size
        single = [_SINGLE_AGAIN if self._suspicious >> index & 1 else _SINGLE for index in range(self._size)]
        prior = np.concatenate([single, np.full(pairs, _PAIRS_OF_ONE / max(self._size, 1))])
        start = prior * _CLEARED ** good.sum(axis=0)
        base = np.log(start / (1.0 - start))
        # What each spoiled trial says for each of its literals, as a log Bayes factor: loopy belief
        # propagation, where a literal is judged by all trials but the one that is asked.
        words = np.zeros_like(spoiled)
        for _ in range(_ROUNDS):
            elsewhere = base + words.sum(axis=0) - words
            clean = -np.logaddexp(0.0, elsewhere) * spoiled
            others = clean.sum(axis=1, keepdims=True) - clean + np.log1p(-_CHANCE)
            words = 0.5 * words - 0.5 * spoiled * np.log(-np.expm1(np.minimum(others, -1e-9)))
        return np.asarray(1.0 / (1.0 + np.exp(-(base + words.sum(axis=0)))))
