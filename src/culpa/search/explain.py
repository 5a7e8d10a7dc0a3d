"""What a trial was expected to tell, and what it told, in bits about the failing set."""

import numpy as np

from culpa.model import Configuration
from culpa.model.told import Beliefs, Told
from culpa.search.choose import Predictor
from culpa.search.evidence import Evidence
from culpa.search.posterior import Posterior, posterior
from culpa.search.situation import Situation


def account(before: Situation, after: Situation, beliefs: tuple[Beliefs, Beliefs]) -> Told:
    """The account of the last trial of `after`; `before` is the situation in which it was chosen."""
    number, trial = list(after.evidence.trials.items())[-1]
    failing, expected = _predicted(before, trial.configuration)
    then = before.posterior
    # The same hypotheses, weighed again: new ones that only this outcome brought up have no weight to compare.
    now = posterior(then.hypotheses, Evidence(before.space, after.evidence.history))
    return Told(number, failing, expected, divergence(now, then), *beliefs)


def _predicted(situation: Situation, configuration: Configuration) -> tuple[float | None, float]:
    reading = situation.space.read(configuration)
    if not reading.exact:
        return None, 0.0
    failing, bits = Predictor(situation.posterior, situation.evidence).predict([reading.low])
    return float(failing[0]), float(bits[0])


def divergence(now: Posterior, then: Posterior) -> float:
    """Kullback-Leibler divergence in bits of one posterior from another over the same hypotheses."""
    new, old = np.append(now.weight, now.misfit), np.append(then.weight, then.misfit)
    some = (new > 0.0) & (old > 0.0)
    return max(float(new[some] @ np.log2(new[some] / old[some])), 0.0)
