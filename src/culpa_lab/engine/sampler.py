"""The choice of the next token from logits."""

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.steps import Sampling, TokenLogprobs


def choose(logits: npt.NDArray[np.float32], sampling: Sampling, output: int) -> int:
    """Token number `output` of an answer. The same seed and place give the same draw, whatever ran meanwhile."""
    if sampling.temperature == 0:
        return int(logits.argmax())
    scaled = logits.astype(np.float64) / sampling.temperature
    order = np.argsort(-scaled, kind="stable")
    weights = np.exp(scaled[order] - scaled[order[0]])
    if sampling.top_k > 0:
        weights[sampling.top_k :] = 0
    weights /= weights.sum()
    if sampling.top_p < 1:
        # The token that crosses the bound still counts.
        weights[np.cumsum(weights) - weights >= sampling.top_p] = 0
        weights /= weights.sum()
    drawn = np.random.default_rng((sampling.seed, output)).random()
    place = int(np.searchsorted(np.cumsum(weights), drawn, side="right"))
    return int(order[min(place, int(np.flatnonzero(weights)[-1]))]) if weights.any() else 0


def report(logits: npt.NDArray[np.float32], token: int, alternatives: int) -> TokenLogprobs:
    """Natural log-probabilities before temperature, as OpenAI's API has them."""
    shifted = logits.astype(np.float64) - float(logits.max())
    normal = shifted - np.log(np.exp(shifted).sum())
    best = np.argsort(-normal, kind="stable")[:alternatives]
    return TokenLogprobs(float(normal[token]), tuple((int(one), float(normal[one])) for one in best))
