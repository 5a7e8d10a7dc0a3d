"""Spread and paired ratios of repeated measurements. Pure."""

from collections.abc import Mapping, Sequence
from math import exp, isfinite, log, sqrt
from statistics import fmean, median, stdev

from culpa.model.mitigation import METRICS, MORE_IS_BETTER, Measured, Metric

#: What one launch of a configuration told of each metric; a metric that it could not tell is not there.
Sample = Mapping[Metric, float]
_CONFIDENCE = 0.95


def measured(samples: Sequence[Sample | None], failing: Sequence[Sample | None] = ()) -> tuple[Measured, ...]:
    """Each metric over the repeats, with its ratio to the failing launch of the same repeat.

    Repeat i of one stands beside repeat i of the other; None where a launch told nothing. The interval is that of the
    mean of the logarithms of the ratios (Student's t), so that twice as fast and half as fast are equally far from 1.
    """
    return tuple(found for metric in METRICS if (found := _one(metric, samples, failing)) is not None)


def _one(
    metric: Metric, samples: Sequence[Sample | None], failing: Sequence[Sample | None]
) -> Measured | None:
    values = [value for sample in samples if (value := _value(metric, sample)) is not None]
    if not values:
        return None
    logarithms = [
        log(ours / theirs)
        for sample, other in zip(samples, failing, strict=False)
        if (ours := _value(metric, sample)) is not None and (theirs := _value(metric, other)) is not None
    ]
    ratio, low, high = _interval(logarithms)
    return Measured(metric, median(values), min(values), max(values), len(values), ratio, low, high)


def _value(metric: Metric, sample: Sample | None) -> float | None:
    value = sample.get(metric) if sample is not None else None
    return value if value is not None and isfinite(value) and value > 0 else None


def _interval(logarithms: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    if not logarithms:
        return None, None, None
    mean = fmean(logarithms)
    if len(logarithms) < 2:
        return exp(mean), None, None
    from scipy.stats import t

    half = (
        float(t.ppf((1 + _CONFIDENCE) / 2, len(logarithms) - 1)) * stdev(logarithms) / sqrt(len(logarithms))
    )
    return exp(mean), exp(mean - half), exp(mean + half)


def cost(found: Sequence[Measured]) -> float | None:
    """How many times worse than the failing launch, as the geometric mean over the metrics that have a ratio."""
    worse = [
        -log(one.ratio) if one.metric in MORE_IS_BETTER else log(one.ratio)
        for one in found
        if one.ratio is not None
    ]
    return exp(fmean(worse)) if worse else None
