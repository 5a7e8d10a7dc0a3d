"""The next configuration by expected information: which trial splits the hypotheses best for its cost."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from culpa.search.evidence import Evidence
from culpa.search.hypotheses import NEVER, Floats, Indices, Masks
from culpa.search.posterior import Posterior, own_rate

KEPT = 3000  # hypotheses that the choice looks at: all where there are no more, else a weighted sample
_DENSITIES = (0.35, 0.5, 0.65, 0.8, 0.9)
_PER_DENSITY = 30
_CLIMBERS = 6
_CLIMBS = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """A configuration, the chance that it fails, the bits that it is expected to tell, and its score."""

    mask: int
    failing: float
    bits: float
    score: float


def entropy(rate: Floats) -> Floats:
    """Entropy of yes-or-no outcomes with these rates, in bits."""
    inside = np.clip(rate, 1e-12, 1.0 - 1e-12)
    return np.asarray(-inside * np.log2(inside) - (1.0 - inside) * np.log2(1.0 - inside))


def sampled(weight: Floats, most: int = KEPT) -> tuple[Indices, Floats, float]:
    """At most about `most` places of a weight vector that stand for all of it, their weights, and the error.

    Where no more than `most` weights count, all of them are taken and the error is 0. Else every weight above
    a threshold is kept as it is, and the others are drawn in equal strata with a chance that is proportional to
    their weight, so that sums over the sample are unbiased (threshold sampling: Duffield, Lund, Thorup, "Priority
    sampling for estimation of arbitrary subset sums", 2007). The error is the largest standard error that the
    estimated share of any subset can have, as if the draws were independent; strata only make it smaller.
    """
    places = np.flatnonzero(weight > 0.0)
    if places.size <= most:
        return places, weight[places], 0.0
    light = np.ones(places.size, dtype=np.bool_)
    while True:
        mass = weight[places[light]]
        draws = most - (places.size - mass.size)
        threshold = float(mass.sum()) / draws
        if not (mass >= threshold).any():
            break
        light &= weight[places] < threshold
    edges = np.cumsum(mass) / threshold
    # The same draw for the same weights: a resumed search chooses as the uninterrupted one did.
    spots = np.arange(draws) + np.random.default_rng(draws).random(draws)
    hit, times = np.unique(np.searchsorted(edges, spots[spots < edges[-1]]), return_counts=True)
    kept = np.concatenate([places[~light], places[light][hit]])
    weights = np.concatenate([weight[places[~light]], threshold * times])
    order = np.argsort(kept)
    total = float(weight.sum())
    return kept[order], weights[order], float(mass.sum()) / total * 0.5 / float(np.sqrt(draws))


class Predicts(Protocol):
    """What `choose` asks: the chance that each configuration fails, and the bits that its trial tells."""

    def predict(self, masks: Sequence[int]) -> tuple[Floats, Floats]: ...


class Predictor:
    """Predicts outcomes from a posterior, and the information that each would give.

    `error` is the standard error of a predicted failure chance: 0 where all hypotheses are looked at.
    """

    def __init__(self, posterior: Posterior, evidence: Evidence) -> None:
        self._evidence = evidence
        kept, weight, self.error = sampled(posterior.weight)
        total = float(weight.sum()) + posterior.misfit
        self._weight = weight / total
        self._misfit = posterior.misfit / total
        self._first = posterior.hypotheses.first[kept]
        self._second = posterior.hypotheses.second[kept]
        self._paired = bool((self._second != np.uint64(NEVER)).any())
        self._known = [np.uint64(mask) for mask in posterior.hypotheses.known]
        rate, false_rate = posterior.rate[kept], posterior.false_rate[kept]
        self._rate, self._false_rate = rate, false_rate
        self._outside = float(self._weight @ false_rate)
        self._outside_entropy = float(self._weight @ entropy(false_rate))
        # By hypothesis: what covering a configuration adds to its failure rate and to the entropy left.
        self._gain = np.stack(
            [self._weight * (rate - false_rate), self._weight * (entropy(rate) - entropy(false_rate))], axis=1
        )

    def predict(self, masks: Sequence[int]) -> tuple[Floats, Floats]:
        """The chance that each configuration fails, and the expected information in bits."""
        added = self._covered(masks).astype(np.float64) @ self._gain
        own = self._own(masks)
        failing = self._outside + added[:, 0] + self._misfit * own
        left = self._outside_entropy + added[:, 1] + self._misfit * entropy(own)
        return failing, np.maximum(entropy(failing) - left, 0.0)

    @property
    def weights(self) -> Floats:
        """The weights of the hypotheses that are looked at, "none of these" as the last; they sum to 1."""
        return np.append(self._weight, self._misfit)

    def rates(self, masks: Sequence[int]) -> Floats:
        """How often each configuration (column) is expected to fail by each hypothesis (row, as in `weights`)."""
        covered = self._covered(masks).T
        by_model = np.where(covered, self._rate[:, None], self._false_rate[:, None])
        return np.concatenate([by_model, self._own(masks)[None, :]], axis=0)

    def _covered(self, masks: Sequence[int]) -> NDArray[np.bool_]:
        """By configuration (row) and hypothesis (column): is a whole term suspect there?"""
        columns: Masks = np.array(list(masks), dtype=np.uint64)[:, None]
        covered: NDArray[np.bool_] = (columns & self._first) == self._first
        if self._paired:
            covered |= (columns & self._second) == self._second
        for mask in self._known:
            covered |= (columns & mask) == mask
        return covered

    def _own(self, masks: Sequence[int]) -> Floats:
        seen = (self._evidence.by_mask.get(mask) for mask in masks)
        return np.array([0.5 if cell is None else own_rate(cell) for cell in seen])


def candidates(
    random: np.random.Generator, full: int, held: int, likely: Iterable[int], evidence: Evidence
) -> list[int]:
    """Masks worth a look: mixtures of several densities, around likely sets, within failures, and repeats."""
    size = full.bit_length()
    bits = np.array([1 << index for index in range(size)], dtype=np.uint64)

    def mixtures(density: float, count: int) -> list[int]:
        drawn = random.random((count, size)) < density
        return [int(mask) for mask in (drawn * bits).sum(axis=1, dtype=np.uint64)]

    found = [mask for density in _DENSITIES for mask in mixtures(density, _PER_DENSITY)]
    for mask in likely:
        found += [mask, full & ~mask]
        found += [mask & ~(1 << index) for index in range(size) if mask >> index & 1]
        found += [mask | other for other in mixtures(0.4, 2)]
    for cell in evidence.cells:
        if cell.reading.exact:
            found.append(cell.reading.low)
            if cell.failed:
                found += [cell.reading.low & other for other in mixtures(0.6, 6)]
    found += [full & ~(1 << index) for index in range(size)]
    return list(dict.fromkeys(mask | held for mask in found))


def choose(
    predictor: Predicts,
    start: list[int],
    movable: int,
    score: Callable[[Sequence[int], Floats], Floats],
) -> list[Choice]:
    """The candidates and what a climb by single changes finds near the best ones, best first.

    `movable` masks the factors that may be changed, `score` weighs the information of each mask by its cost.
    """
    seen: dict[int, Choice] = {}

    def look(masks: list[int]) -> None:
        if masks:
            failing, bits = predictor.predict(masks)
            scores = score(masks, bits)
            for place, mask in enumerate(masks):
                seen[mask] = Choice(mask, float(failing[place]), float(bits[place]), float(scores[place]))

    look(start)
    single = [1 << index for index in range(movable.bit_length()) if movable >> index & 1]
    for _ in range(_CLIMBS):
        best = sorted(seen.values(), key=_order)[:_CLIMBERS]
        new = {choice.mask ^ bit for choice in best for bit in single} - seen.keys()
        if not new:
            break
        look(sorted(new))
    return sorted(seen.values(), key=_order)


def _order(choice: Choice) -> tuple[float, int, int]:
    """Best score first; of equals the one nearest to the user's launch, then by mask for a firm order."""
    return (-round(choice.score, 9), -choice.mask.bit_count(), choice.mask)
