"""What the trials say of the hypotheses: exact Bayes, with the failure rates marginalised on a grid.

A covered configuration (one that contains a term of the hypothesis) fails with rate p, any other with the
small rate q of false failures; a configuration whose third levels decide whether it is covered fails with a
mixture of the two. p and q are unknown and integrated out for every hypothesis. "None of these" gives every
configuration a rate of its own, so that each new configuration costs it up to one bit and only data that
nothing else explains can raise it: this keeps the reported probabilities honest about the model itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culpa.search.evidence import Cell, Evidence
from culpa.search.hypotheses import Floats, Hypotheses, Indices, Masks

# The failure rate of a fault. Two thirds of all faults are taken to be deterministic; the others have a rate that is
# seldom near 1, since one that fails nearly always is as good as deterministic. What decides how many repeats a claim
# needs is the share of faults that fail half of the time: with less of it, a member too many is accused there
# (tests/quality), and a wrong accusation costs more than a trial.
DETERMINISTIC = 0.65
RATE = np.array([0.998, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05])
_OTHER_RATES = np.array([0.5, 1.0, 3.0, 5.0, 6.0, 7.0, 6.0, 5.0, 5.0, 3.0, 2.0])
RATE_PRIOR = np.concatenate([[DETERMINISTIC], (1.0 - DETERMINISTIC) * _OTHER_RATES / _OTHER_RATES.sum()])
# The rate of failures that have another cause but carry the hunted signature.
FALSE_RATE = np.array([0.001, 0.01, 0.05])
FALSE_RATE_PRIOR = np.array([0.7, 0.25, 0.05])
THIRD_LEVEL = 0.25  # how often a level that is neither suspect nor stand-in acts like the suspect one
MISFIT_PRIOR = 0.01
# "None of these": a configuration nearly always passes, nearly always fails, or is anything in between; the
# share of those that fail is unknown too (a row for each of the shares).
MISFIT_RATE = np.array([0.005, 0.25, 0.5, 0.75, 0.995])
_MISFIT_SHARE = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
_MISFIT_PRIOR = np.stack([[0.9 * (1.0 - share), 0.03, 0.04, 0.03, 0.9 * share] for share in _MISFIT_SHARE])
_TABLE = 1 << 22  # keys below this are told apart by a table, others by sorting
MOST_CERTAIN = 0.999  # no probability is reported above this

_P = np.repeat(RATE, FALSE_RATE.size)
_Q = np.tile(FALSE_RATE, RATE.size)
_MIXED = THIRD_LEVEL * _P + (1.0 - THIRD_LEVEL) * _Q
_GRID_PRIOR = np.log(np.repeat(RATE_PRIOR / RATE_PRIOR.sum(), FALSE_RATE.size)) + np.log(
    np.tile(FALSE_RATE_PRIOR, RATE.size)
)
# Rows: failed and passed when covered, failed and passed when undecided, failed and passed when not covered.
_LOGS = np.log(np.stack([_P, 1.0 - _P, _MIXED, 1.0 - _MIXED, _Q, 1.0 - _Q]))


def counted(cell: Cell) -> tuple[int, int]:
    """Failures and passes that are evidence: a pass under an instrument may be a hidden failure."""
    if cell.refining:
        return 0, 0
    return len(cell.failed), 0 if cell.reading.instrumented else len(cell.passed)


@dataclass(frozen=True)
class Posterior:
    """Weights of all hypotheses and of `misfit` ("none of these"), which together sum to 1.

    `rate` and `false_rate` are the expected p and q of every hypothesis.
    """

    hypotheses: Hypotheses
    weight: Floats
    misfit: float
    rate: Floats
    false_rate: Floats

    def causes(self) -> Floats:
        """For every term the probability that it is a cause, alone or as one of two."""
        total = self.hypotheses.terms.size
        single = self.weight[:total].copy()
        left, right = self.hypotheses.pairs
        pair = self.weight[total:]
        if pair.size:
            single += np.bincount(left, pair, minlength=total)
            single += np.bincount(right, pair, minlength=total)
        return single

    def expected_rate(self) -> float:
        """The failure rate of the fault, averaged over the hypotheses."""
        mass = float(self.weight.sum())
        return float(self.weight @ self.rate) / mass if mass > 0 else 0.5


def covers(terms: Masks, masks: Iterable[int]) -> NDArray[np.bool_]:
    """A matrix of terms by configurations: is the whole term suspect there?"""
    columns = np.array(list(masks), dtype=np.uint64)
    return np.asarray((terms[:, None] & columns[None, :]) == terms[:, None])


def own_rate(cell: Cell) -> float:
    """How often a configuration fails, by its own trials only."""
    failed, passed = counted(cell)
    weight = _MISFIT_PRIOR[2] * MISFIT_RATE**failed * (1.0 - MISFIT_RATE) ** passed
    return float(weight @ MISFIT_RATE / weight.sum())


def _misfit_likelihood(cells: list[Cell]) -> float:
    total = np.zeros(_MISFIT_SHARE.size)
    for cell in cells:
        failed, passed = counted(cell)
        total += np.log(_MISFIT_PRIOR @ (MISFIT_RATE**failed * (1.0 - MISFIT_RATE) ** passed))
    peak = float(total.max())
    return peak + float(np.log(np.exp(total - peak).mean()))


def pass_likelihood(hypotheses: Hypotheses, evidence: Evidence) -> Floats:
    """For every term the log-likelihood of the passes that it covers, if it nearly always fails."""
    cells = [cell for cell in evidence.cells if counted(cell)[1]]
    if not cells:
        return np.zeros(hypotheses.terms.size)
    passes = np.array([counted(cell)[1] for cell in cells], dtype=float)
    covered = covers(hypotheses.terms, [cell.reading.low for cell in cells])
    return np.asarray(covered @ passes * float(np.log(RATE_PRIOR @ (1.0 - RATE))))


def _counts(hypotheses: Hypotheses, cells: list[Cell]) -> NDArray[np.int64]:
    """For every hypothesis the failures and passes in configurations that it covers, and in those where a
    third level decides. Two terms together cover what each does, less what both do."""
    lows, highs = [cell.reading.low for cell in cells], [cell.reading.high for cell in cells]
    matrices = []
    for masks in (lows,) if lows == highs else (lows, highs):
        matrix = covers(hypotheses.terms, masks)
        for mask in hypotheses.known:
            matrix |= covers(np.array([mask], dtype=np.uint64), masks)
        matrices.append(matrix)
    weights = np.array([counted(cell) for cell in cells], dtype=np.float64)
    left, right = hypotheses.pairs
    used = np.zeros(hypotheses.terms.size, dtype=np.bool_)
    used[left] = used[right] = True
    paired, place = np.flatnonzero(used), np.cumsum(used) - 1
    first, second = place[left], place[right]
    columns = []
    for matrix in matrices:
        table = matrix.astype(np.float64)
        for weight in weights.T:
            alone = table @ weight
            both = (table[paired] * weight) @ table[paired].T
            columns.append(np.concatenate([alone, alone[left] + alone[right] - both[first, second]]))
    least_failed, least_passed, most_failed, most_passed = columns * (3 - len(matrices))
    pieces = [least_failed, least_passed, most_failed - least_failed, most_passed - least_passed]
    return np.asarray(np.rint(np.stack(pieces, axis=1)), dtype=np.int64)


def _kinds(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], Indices]:
    """The distinct rows of counts, and for every hypothesis the number of its kind."""
    base = int(counts.max(initial=0)) + 1
    key = ((counts[:, 2] * base + counts[:, 3]) * base + counts[:, 0]) * base + counts[:, 1]
    if int(key.max(initial=0)) >= _TABLE:
        _, index, inverse = np.unique(key, return_index=True, return_inverse=True)
        return counts[index], inverse
    present = np.zeros(int(key.max(initial=0)) + 1, dtype=np.bool_)  # the keys are small: no need to sort
    present[key] = True
    distinct = np.flatnonzero(present)
    index = np.empty(distinct.size, dtype=np.intp)
    inverse = (np.cumsum(present) - 1)[key]
    index[inverse] = np.arange(key.size)
    return counts[index], inverse


def posterior(hypotheses: Hypotheses, evidence: Evidence) -> Posterior:
    """Weigh the hypotheses by all trials that are evidence."""
    cells = [cell for cell in evidence.cells if sum(counted(cell))]
    if cells:
        rows, inverse = _kinds(_counts(hypotheses, cells))
    else:
        rows = np.zeros((1, 4), dtype=np.int64)
        inverse = np.zeros(hypotheses.first.size, dtype=np.intp)
    total = np.array([counted(cell) for cell in cells], dtype=np.int64).reshape(len(cells), 2).sum(axis=0)
    outside = total - rows[:, :2] - rows[:, 2:]
    grid = np.concatenate([rows, outside], axis=1) @ _LOGS + _GRID_PRIOR
    top = grid.max(axis=1, keepdims=True)
    scaled = np.exp(grid - top)
    mass = scaled.sum(axis=1)
    rate, false_rate = scaled @ _P / mass, scaled @ _Q / mass

    log_weight = np.log(hypotheses.prior) + np.log1p(-MISFIT_PRIOR) + (top[:, 0] + np.log(mass))[inverse]
    misfit = float(np.log(MISFIT_PRIOR)) + _misfit_likelihood(cells)
    peak = max(float(log_weight.max()), misfit)
    weight = np.exp(log_weight - peak)
    rest = float(np.exp(misfit - peak))
    whole = float(weight.sum()) + rest
    return Posterior(hypotheses, weight / whole, rest / whole, rate[inverse], false_rate[inverse])
