"""The hypotheses as arrays of masks with prior weights.

A term is a set of factors that fails when all of it is suspect; the empty term fails whatever is varied. A
hypothesis is one term of up to four factors, or a disjunction of two terms of up to two, so that two
independent causes do not break the model. Where the trials leave little of these, two wider kinds are
enumerated as far as the trials make them possible: larger sets within what all failures have in common, and
disjunctions with terms of three. Failures that are not monotone are left to "none of these" (see
`culpa.search.posterior`).
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

Masks = NDArray[np.uint64]
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NEVER = 1 << 63  # a mask that no configuration contains: the term that never holds
# Larger sets are rarer, but not so rare that one that is there is believed only after many more trials.
SIZE_PRIOR = {1: 0.40, 0: 0.04, 2: 0.33, 3: 0.20, 4: 0.03}
ALIKE = 0.25  # of a size's share, what goes to all sets alike, whatever the priors of their factors
DISJUNCTION_PRIOR = 0.03
WIDE_DISJUNCTION_PRIOR = 0.01
LARGER_PRIOR = 0.01  # of sets with more factors than SIZE_PRIOR lists; halved with every further factor
MORE_CAUSES_PRIOR = 0.10  # that a second cause exists, once the first one is confirmed
LARGEST = max(SIZE_PRIOR)
_MOST_OF_A_SIZE = 60_000
_MOST_DISJUNCTIONS = 160_000
_WIDE_TERMS = 400  # terms that are paired in wide disjunctions, the likeliest ones


@dataclass(frozen=True)
class Hypotheses:
    """`terms` are the single-term hypotheses; then come the disjunctions, as pairs of indices into `terms`.

    `first` and `second` hold the term masks of every hypothesis (`second` is NEVER for a single term),
    `prior` the weights, which sum to about 1. `known` are causes that are taken as given: every hypothesis
    includes them.
    """

    terms: Masks
    pairs: tuple[Indices, Indices]
    first: Masks
    second: Masks
    prior: Floats
    known: tuple[int, ...] = ()


def _terms_by_size(size: int) -> dict[int, Indices]:
    sizes: dict[int, Indices] = {}
    for length in sorted(SIZE_PRIOR):
        if length <= size and comb(size, length) <= _MOST_OF_A_SIZE:
            rows = list(combinations(range(size), length))
            sizes[length] = np.array(rows, dtype=np.intp).reshape(len(rows), length)
    return sizes


def _single_terms(priors: tuple[float, ...]) -> tuple[Masks, Floats]:
    """All terms with their prior weights: the product of prior odds, normalised within the size's share, for the
    most part; the rest alike, so that priors that are wrong cost two bits at most."""
    odds = np.array([prior / (1.0 - prior) for prior in priors], dtype=np.float64)
    bits = np.array([1 << index for index in range(len(priors))], dtype=np.uint64)
    masks: list[Masks] = []
    weights: list[Floats] = []
    for length, rows in _terms_by_size(len(priors)).items():
        if length == 0:
            masks.append(np.zeros(1, dtype=np.uint64))
            weights.append(np.array([SIZE_PRIOR[0]]))
            continue
        masks.append(np.bitwise_or.reduce(bits[rows], axis=1))
        weight = np.prod(odds[rows], axis=1)
        informed = (1.0 - ALIKE) * weight / weight.sum()
        weights.append(SIZE_PRIOR[length] * (informed + ALIKE / weight.size))
    prior = np.concatenate(weights)
    return np.concatenate(masks), prior / prior.sum()


def _disjunctions(terms: Masks, prior: Floats, size: int) -> tuple[Indices, Indices, Floats]:
    largest = 2 if comb(size * (size + 1) // 2, 2) <= _MOST_DISJUNCTIONS else 1
    usable = 1 + sum(comb(size, length) for length in range(1, largest + 1))  # terms come sorted by size
    left, right = np.triu_indices(usable - 1, k=1)
    left, right = left + 1, right + 1  # the empty term at index 0 takes no part
    both = terms[left] & terms[right]
    kept = (both != terms[left]) & (both != terms[right])
    left, right = left[kept], right[kept]
    weight = prior[left] * prior[right]
    return left, right, weight / weight.sum() if weight.size else weight


@lru_cache(maxsize=4)
def _first_cause(priors: tuple[float, ...]) -> Hypotheses:
    terms, prior = _single_terms(priors)
    left, right, weight = _disjunctions(terms, prior, len(priors))
    share = DISJUNCTION_PRIOR if weight.size else 0.0
    return Hypotheses(
        terms=terms,
        pairs=(left, right),
        first=np.concatenate([terms, terms[left]]),
        second=np.concatenate([_nevers(terms.size), terms[right]]),
        prior=np.concatenate([prior * (1.0 - share), weight * share]),
    )


def hypotheses(priors: tuple[float, ...], known: tuple[int, ...] = (), core: int = 0) -> Hypotheses:
    """All hypotheses about the next cause, given the factors' priors and the causes that are known.

    With known causes the first term is NEVER ("there is no further cause"), and a term that contains a known
    cause is left out, since it would explain nothing. `core` masks what all unexplained failures have in
    common: larger sets are enumerated only there, as any other would contradict a failure.
    """
    base = _further_causes(priors, known) if known else _first_cause(priors)
    masks, weight = _larger_sets(core, len(priors), known)
    if not masks.size:
        return base
    share = MORE_CAUSES_PRIOR if known else 1.0
    total = base.terms.size
    return replace(
        base,
        terms=np.concatenate([base.terms, masks]),
        first=np.concatenate([base.first[:total], masks, base.first[total:]]),
        second=np.concatenate([base.second[:total], _nevers(masks.size), base.second[total:]]),
        prior=np.concatenate([base.prior[:total], weight * share, base.prior[total:]]),
    )


def widened(base: Hypotheses, likelihood: Floats) -> Hypotheses:
    """`base` with disjunctions of its likeliest terms added, at least one of them of three factors.

    `likelihood` holds the log-likelihood of each term alone, with failures outside of it not counted.
    """
    sizes = np.array([int(mask).bit_count() for mask in base.terms])
    usable = np.flatnonzero((sizes >= 1) & (sizes <= 3))
    total = base.prior[: base.terms.size]
    rank = np.argsort(-(likelihood[usable] + np.log(total[usable])), kind="stable")[:_WIDE_TERMS]
    chosen = np.sort(usable[rank])
    places = np.triu_indices(chosen.size, k=1)
    left, right = chosen[places[0]], chosen[places[1]]
    both = base.terms[left] & base.terms[right]
    kept = (both != base.terms[left]) & (both != base.terms[right])
    kept &= (sizes[left] == 3) | (sizes[right] == 3)
    left, right = left[kept], right[kept]
    all_pairs = float(total[usable].sum()) ** 2 / 2.0
    return replace(
        base,
        pairs=(np.concatenate([base.pairs[0], left]), np.concatenate([base.pairs[1], right])),
        first=np.concatenate([base.first, base.terms[left]]),
        second=np.concatenate([base.second, base.terms[right]]),
        prior=np.concatenate([base.prior, WIDE_DISJUNCTION_PRIOR * total[left] * total[right] / all_pairs]),
    )


def _further_causes(priors: tuple[float, ...], known: tuple[int, ...]) -> Hypotheses:
    terms, prior = _single_terms(priors)
    kept = terms != 0
    for mask in known:
        kept &= (terms & np.uint64(mask)) != np.uint64(mask)
    terms, prior = terms[kept], prior[kept]
    share = MORE_CAUSES_PRIOR if terms.size else 0.0
    prior = prior / prior.sum() * share if terms.size else prior
    terms = np.concatenate([_nevers(1), terms])
    empty = np.zeros(0, dtype=np.intp)
    return Hypotheses(
        terms=terms,
        pairs=(empty, empty),
        first=terms,
        second=_nevers(terms.size),
        prior=np.concatenate([np.array([1.0 - share]), prior]),
        known=known,
    )


def _larger_sets(core: int, size: int, known: tuple[int, ...]) -> tuple[Masks, Floats]:
    """`core` itself and what is left of it without one or two factors, as far as that is a larger set.

    The weights are those of all sets of that size, so that the look at the trials gives them no head start.
    """
    members = [1 << index for index in range(size) if core >> index & 1]
    dropped = [0, *members, *(one | other for one, other in combinations(members, 2))]
    masks = [
        mask
        for mask in dict.fromkeys(core & ~bits for bits in dropped)
        if mask.bit_count() > LARGEST and not any(mask & cause == cause for cause in known)
    ]
    weights = [
        LARGER_PRIOR * 0.5 ** (mask.bit_count() - LARGEST) / comb(size, mask.bit_count()) for mask in masks
    ]
    return np.array(masks, dtype=np.uint64), np.array(weights, dtype=np.float64)


def _nevers(count: int) -> Masks:
    return np.full(count, NEVER, dtype=np.uint64)
