"""What passes exclude: exact binomial bounds."""


def excluded_rate(passes: int, confidence: float = 0.95) -> float:
    """The failure rate that `passes` passes without a failure exclude: any rate above it.

    The one-sided Clopper-Pearson bound for no failures in n trials, 1 - (1 - confidence)^(1/n). Without a
    pass nothing is excluded and the answer is 1.
    """
    if passes <= 0:
        return 1.0
    return float(1.0 - (1.0 - confidence) ** (1.0 / passes))
