"""What a search is asked for: certainty, budget, costs."""

from dataclasses import dataclass

from culpa.search.posterior import MOST_CERTAIN

_LAST_RESORT = 400  # trials after which a search without a budget of its own ends


@dataclass(frozen=True, slots=True)
class Options:
    """`confidence` is asked of a finding, `max_trials` bounds all trials of the history (None: only the last
    resort does), every configuration is tried at least `repeat` times. Costs are relative to each other.
    `thresholds` asks for the boundaries of numeric members."""

    confidence: float = 0.95
    max_trials: int | None = None
    repeat: int = 1
    seed: int = 0
    relaunch_cost: float = 1.0
    request_cost: float = 0.1
    thresholds: bool = True

    @property
    def asked(self) -> float:
        """The confidence that can be reached at most: no model is sure of itself beyond a point."""
        return min(self.confidence, MOST_CERTAIN - 0.001)

    @property
    def budget(self) -> int:
        return _LAST_RESORT if self.max_trials is None else self.max_trials
