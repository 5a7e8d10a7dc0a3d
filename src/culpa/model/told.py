"""What one trial was expected to tell about the failing set, and what it told."""

from dataclasses import dataclass

Beliefs = tuple[tuple[tuple[str, ...], float], ...]


@dataclass(frozen=True, slots=True)
class Told:
    """The account of one trial, in bits about which set of factors is at fault.

    `failing` is the chance of a failure as it was predicted, None where the trial is outside of what the
    hypotheses speak of (an instrument, a level in between). `expected` is the information that was expected,
    `told` what came: how far the outcome moved the probabilities (Kullback-Leibler divergence of those after it
    from those before). A surprise tells more than was expected, the likelier outcome less; the mean of `told` over
    both outcomes is `expected`. `before` and `after` are the likeliest sets with their probabilities; the empty
    set stands for "none of these".
    """

    trial: int
    failing: float | None
    expected: float
    told: float
    before: Beliefs
    after: Beliefs
