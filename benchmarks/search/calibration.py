"""Are claimed probabilities right? Many searches on a stated mixture of faults, claimed against measured.

The mixture: 6, 8 or 10 factors and 1 to 3 members, equally often; half of the faults deterministic, the others with a
failure rate of 0.8 (20%), 0.5 (15%), 0.3 (10%) or 0.1 (5%); false failures at 0 (80%), 1% (15%), 5% (5%). Flat priors.
Each search gives two figures: its claim at the end, if it makes one, and the probability of the likeliest set at a
random moment before. The claims show whether the asked confidence is kept, the moments whether any probability is.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.search.figures import wilson
from benchmarks.search.measure import digest
from benchmarks.search.own import run_culpa
from benchmarks.search.simulate import Case, make_case

SIZES, MEMBERS = (6, 8, 10), (1, 2, 3)
RATES = {1.0: 0.5, 0.8: 0.2, 0.5: 0.15, 0.3: 0.1, 0.1: 0.05}
FALSE_RATES = {0.0: 0.8, 0.01: 0.15, 0.05: 0.05}
EDGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
BAND = (0.95, 0.98)  # of the claims at 0.95: less is too sure, more pays for certainty that nobody asked for


@dataclass(frozen=True, slots=True)
class Claim:
    """One search. `claimed` and `right` are of its first finding (None: it made no claim), `moment` the probability
    of the likeliest set at a random moment, and `moment_right` whether that set was a true one."""

    seed: int
    n: int
    k: int
    rate: float
    false_rate: float
    confidence: float
    trials: int
    claimed: float | None
    right: bool
    moment: float
    moment_right: bool
    digest: str


@dataclass(frozen=True, slots=True)
class Bin:
    """Searches with about the same claim: mean claim, how many were right, and the 95% interval of that share."""

    claimed: float
    right: int
    total: int

    @property
    def measured(self) -> float:
        return self.right / self.total

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, self.total)


def mixture_case(seed: int) -> Case:
    """One fault of the mixture."""
    chance = random.Random(f"calibration|{seed}")
    return make_case(
        "flat",
        chance.choice(SIZES),
        chance.choice(MEMBERS),
        rate=chance.choices(list(RATES), list(RATES.values()))[0],
        false_rate=chance.choices(list(FALSE_RATES), list(FALSE_RATES.values()))[0],
        seed=seed,
    )


def claims(runs: int, confidence: float, journal: Path | None = None) -> Iterator[Claim]:
    """`runs` searches; those that the journal has from the present sources are not run again."""
    known = {claim.seed: claim for claim in _read(journal) if claim.confidence == confidence}
    for seed in range(runs):
        claim = known.get(seed)
        if claim is None:
            claim = _search(seed, confidence)
            if journal is not None:
                with journal.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(asdict(claim)) + "\n")
        yield claim


def _search(seed: int, confidence: float) -> Claim:
    case = mixture_case(seed)
    search = run_culpa(case, confidence=confidence)
    moment, moment_right = random.Random(f"moment|{seed}").choice(search.beliefs or ((0.0, False),))
    found = search.found[0] if search.found else None
    return Claim(
        seed=seed,
        n=len(case.factors),
        k=len(case.causes[0]),
        rate=case.rate,
        false_rate=case.false_rate,
        confidence=confidence,
        trials=search.to_verdict,
        claimed=None if found is None else round(found[1], 5),
        right=found is not None and found[0] in case.causes,
        moment=round(moment, 5),
        moment_right=moment_right,
        digest=digest(),
    )


def _read(journal: Path | None) -> Iterator[Claim]:
    if journal is None or not journal.exists():
        return
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # torn by an interruption
            continue
        if entry["digest"] == digest():
            yield Claim(**entry)


def binned(pairs: Iterable[tuple[float, bool]]) -> list[Bin]:
    """Claimed probabilities with what came true, by the bins of EDGES; empty bins are left out."""
    found: dict[int, list[tuple[float, bool]]] = {}
    for claimed, right in pairs:
        place = next(place for place, edge in enumerate(EDGES[1:]) if claimed <= edge)
        found.setdefault(place, []).append((claimed, right))
    return [
        Bin(
            claimed=sum(claimed for claimed, _ in some) / len(some),
            right=sum(right for _, right in some),
            total=len(some),
        )
        for _, some in sorted(found.items())
    ]


def moments(some: Sequence[Claim]) -> list[Bin]:
    """The likeliest set at a random moment, claimed against measured."""
    return binned((claim.moment, claim.moment_right) for claim in some)


def ended(some: Sequence[Claim]) -> Bin | None:
    """The claims at the end as one bin; None if no search made any."""
    made = [(claim.claimed, claim.right) for claim in some if claim.claimed is not None]
    if not made:
        return None
    return Bin(sum(claimed for claimed, _ in made) / len(made), sum(right for _, right in made), len(made))


def report(some: Sequence[Claim], confidence: float) -> Iterator[str]:
    """The table of a calibration run, and whether its goal is met."""
    yield f"{len(some)} searches at --confidence {confidence:g}\n"
    yield "| claims at the end | searches | claims | right | 95% interval | claimed | trials |"
    yield "| ----------------- | -------: | -----: | ----: | -----------: | ------: | -----: |"
    yield _ended_line("all", some)
    for rate in RATES:
        yield _ended_line(f"rate {rate:g}", [claim for claim in some if claim.rate == rate])
    for false_rate in FALSE_RATES:
        yield _ended_line(
            f"false {false_rate:g}", [claim for claim in some if claim.false_rate == false_rate]
        )
    for k in MEMBERS:
        yield _ended_line(f"k={k}", [claim for claim in some if claim.k == k])
    yield ""
    yield "| likeliest set at a random moment: claimed | searches | right | 95% interval |"
    yield "| ----------------------------------------- | -------: | ----: | -----------: |"
    for one in moments(some):
        low, high = one.interval
        yield f"| {one.claimed:41.3f} | {one.total:8d} | {one.measured:5.1%} | {low:.1%} to {high:.1%} |"
    yield ""
    whole = ended(some)
    if whole is not None and confidence == BAND[0]:
        met = BAND[0] <= whole.measured <= BAND[1]
        low, high = whole.interval
        yield (
            f"{'met    ' if met else 'NOT MET'}  claims at {confidence:g} are right in {BAND[0]:.0%} to {BAND[1]:.0%}: "
            f"{whole.measured:.1%} ({low:.1%} to {high:.1%}) of {whole.total} claims in {len(some)} searches"
        )


def _ended_line(name: str, some: Sequence[Claim]) -> str:
    whole = ended(some)
    if whole is None:
        return f"| {name:17s} | {len(some):8d} | {0:6d} |     - |            - |       - |      - |"
    low, high = whole.interval
    trials = sum(claim.trials for claim in some) / len(some)
    return (
        f"| {name:17s} | {len(some):8d} | {whole.total:6d} | {whole.measured:5.1%} | {low:.1%} to {high:.1%} | "
        f"{whole.claimed:7.3f} | {trials:6.1f} |"
    )
