"""Several trials at once: configurations that are chosen for what their outcomes tell together.

Two trials that each halve the hypotheses tell little together if they halve them the same way. So each further one
is chosen by the information that it adds to those that are chosen already or still run. Given a hypothesis the
outcomes are independent, each with the hypothesis' expected rate; all patterns of outcomes are enumerated.
"""

from collections.abc import Sequence

import numpy as np

from culpa.search.choose import Predictor, entropy
from culpa.search.hypotheses import Floats

MOST_AT_ONCE = 10  # trials chosen and running together: their patterns of outcomes double with each


class Batch:
    """The trials that are chosen or running, and what others would add to them."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._weights = predictor.weights
        # The chance of every pattern of outcomes so far, by hypothesis, weighed by the hypothesis.
        self._patterns = self._weights[:, None]

    def add(self, mask: int) -> None:
        """Take a trial into the batch."""
        rates = self._predictor.rates([mask])
        self._patterns = np.concatenate([self._patterns * rates, self._patterns * (1.0 - rates)], axis=1)

    def predict(self, masks: Sequence[int]) -> tuple[Floats, Floats]:
        """The chance that each configuration fails, and the bits that it adds to what the batch tells."""
        rates = self._predictor.rates(masks)
        failing = self._patterns.T @ rates
        whole = self._patterns.sum(axis=0)[:, None]
        joint = _uncertainty(failing) + _uncertainty(np.maximum(whole - failing, 0.0)) - _uncertainty(whole)
        return failing.sum(axis=0), np.maximum(joint - self._weights @ entropy(rates), 0.0)


def _uncertainty(chances: Floats) -> Floats:
    """Minus the sum of p log2 p along the patterns."""
    safe = np.where(chances > 0.0, chances, 1.0)
    return np.asarray(-(safe * np.log2(safe)).sum(axis=0))
