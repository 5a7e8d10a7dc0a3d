"""From the trials to what may be claimed: findings with their level, and what stays open."""

from collections.abc import Iterator

from culpa.model import Conclusion, ExperimentOutcome, Finding, Level, Member
from culpa.search.confirm import Confirmation
from culpa.search.descent import Straddle, own_certainty, straddles
from culpa.search.evidence import Cell
from culpa.search.exposure import excluded_rate
from culpa.search.hypotheses import LARGEST, NEVER
from culpa.search.options import Options
from culpa.search.posterior import own_rate
from culpa.search.rates import rate_held
from culpa.search.refine import Refinement
from culpa.search.situation import Cause, Situation
from culpa.search.statuses import factor_statuses
from culpa.search.wording import listed, percent, trials

_WORTH_NAMING = 0.005  # sets below this probability are not listed
_MOST_NAMED = 5
_WORTH_A_CONTRAST = 0.05  # probability below which a change that flips the outcome once accuses nobody
_AGAIN = 2  # failures of a configuration from which on they are no stray ones
_BEYOND_THE_FACTORS = (
    "the engine's version",
    "the model's files",
    "the hardware and its driver",
    "the kernel libraries",
    "the requests themselves",
)


def conclude(situation: Situation, outcome: ExperimentOutcome, options: Options, why: str = "") -> Conclusion:
    """The conclusion of a search that ends in `outcome`; `why` says what ended it before it was done."""
    findings = tuple(_confirmed(situation, cause, options) for cause in situation.known)
    findings += tuple(_beside(situation, cell) for cell in unexplained(situation))
    if findings and all(finding.level is Level.CONTRAST for finding in findings):
        outcome = ExperimentOutcome.INCONCLUSIVE
    if outcome is ExperimentOutcome.INCONCLUSIVE and not findings:
        findings = tuple(_likeliest_contrast(situation))
    statuses = factor_statuses(situation, options)
    untested = [row.name for row in statuses if row.status == "untested"]
    return Conclusion(
        outcome=outcome,
        findings=findings,
        statuses=statuses,
        not_excluded=tuple(_open(situation, outcome, why, untested)),
    )


def _confirmed(situation: Situation, cause: Cause, options: Options) -> Finding:
    """A set whose arms are all in: isolated as long as no later trial took the probability away again."""
    space = situation.space
    probability = situation.probability(cause)
    confirmation = situation.confirmation_of(cause)
    return Finding(
        members=_members(situation, cause.mask),
        level=Level.ISOLATED if probability >= options.asked else Level.CONTRAST,
        probability=probability,
        sufficient=confirmation.sufficient.count,
        necessary=tuple((space.factor(bit).name, cell.count) for bit, cell in confirmation.necessary()),
        conditions=(*Refinement(situation, cause, options).conditions(), *_grounds(situation, cause)),
    )


def unexplained(situation: Situation) -> tuple[Cell, ...]:
    """Configurations that failed again and again although no set that was found is suspect in them, and that are
    minimal: with any one of their suspects safe they pass. Whatever a model of all trials makes of it, by their own
    trials they show a further cause, which may be one that other settings keep away.

    None where nothing was found: then the sets that are left are told with their probabilities.
    """
    space = situation.space
    found = []
    for cell in situation.evidence.cells if situation.known else ():
        mask = cell.reading.low
        if not cell.reading.exact or len(cell.failed) < _AGAIN or cell.passed:
            continue
        if any(mask & cause.mask == cause.mask for cause in situation.known):
            continue
        members = mask & ~situation.held
        without = [situation.evidence.at(mask & ~bit) for bit in space.members(members)]
        if members and all(other.passed and not other.failed for other in without):
            found.append(cell)
    return tuple(found)


def _beside(situation: Situation, cell: Cell) -> Finding:
    """A further cause that rests on its own trials: a contrast, with the probability that these alone give it."""
    confirmation = Confirmation(cell.reading.low & ~situation.held, situation.held, situation.evidence)
    return Finding(
        members=_members(situation, confirmation.cause),
        level=Level.CONTRAST,
        probability=own_certainty(confirmation),
        sufficient=confirmation.sufficient.count,
        necessary=tuple(
            (situation.space.factor(bit).name, other.count) for bit, other in confirmation.necessary()
        ),
        conditions=(
            "it rests on its own trials: together with other settings as they are, it need not show",
        ),
    )


def _grounds(situation: Situation, cause: Cause) -> Iterator[str]:
    held = rate_held(situation, cause)
    if held is not None and held.intermittent:
        yield held.sentence()
    if cause.by_descent:
        yield "found by delta debugging: no single hypothesis explains all trials, so it rests on its own"
    names = situation.space.names(cause.held)
    if names:
        yield f"{listed(names)} stayed at the user's level in these trials"


def _likeliest_contrast(situation: Situation) -> Iterator[Finding]:
    """The one change that flips the outcome and is the likeliest to be at fault; none if it hardly can be.

    Of an intermittent failure many a change seems to flip the outcome: without its probability it says nothing.
    """
    nearest: dict[int, Straddle] = {}  # of every single factor the pair nearest to the user's launch
    for straddle in straddles(situation.evidence):
        if straddle.difference.bit_count() == 1:
            nearest.setdefault(straddle.difference, straddle)
    found = [_contrast(situation, straddle) for straddle in nearest.values()]
    best = max(found, key=lambda finding: finding.probability, default=None)
    if best is not None and best.probability >= _WORTH_A_CONTRAST:
        yield best


def _contrast(situation: Situation, straddle: Straddle) -> Finding:
    """One change flips the outcome. The probability is that of the change being the whole failing set."""
    failing, passing = straddle.failing, straddle.passing
    others = situation.space.names(failing.reading.low & ~straddle.difference)
    safe = situation.space.names(situation.space.full & ~failing.reading.low & ~straddle.difference)
    rest = [f"{listed(others)} suspect" if others else "", f"{listed(safe)} safe" if safe else ""]
    flipped = straddle.difference & failing.reading.low
    conditions = [f"with {' and '.join(part for part in rest if part)}"] if any(rest) else []
    if not flipped:
        conditions.append("it fails at the safe level and passes at the suspect one")
    return Finding(
        members=_members(situation, straddle.difference),
        level=Level.CONTRAST,
        probability=_contrast_probability(situation, straddle),
        sufficient=failing.count,
        necessary=tuple((name, passing.count) for name in situation.space.names(straddle.difference)),
        conditions=tuple(conditions),
    )


def _contrast_probability(situation: Situation, straddle: Straddle) -> float:
    """The posterior of the set that the contrast names, and never more than that of the two rates really
    lying apart, each estimated from its own trials only.

    Where no set explains the trials, or the flip is the wrong way round for a failing set, only "none of
    these" can be right about it, and the two rates are all there is.
    """
    apart = own_rate(straddle.failing) * (1.0 - own_rate(straddle.passing))
    flipped = straddle.difference & straddle.failing.reading.low
    if situation.misfit or not flipped:
        return situation.posterior.misfit * apart
    return min(apart, situation.causes(situation.held & ~flipped).of(flipped))


def _members(situation: Situation, mask: int) -> tuple[Member, ...]:
    space = situation.space
    return tuple(
        Member(space.factor(bit).name, space.factor(bit).suspect, space.safe_level(bit))
        for bit in space.members(mask)
    )


def _open(situation: Situation, outcome: ExperimentOutcome, why: str, untested: list[str]) -> Iterator[str]:
    if why:
        yield why
    if outcome is ExperimentOutcome.NO_FAILURE:
        yield from _no_failure(situation)
        return
    if outcome is not ExperimentOutcome.ALL_SAFE_FAILS:
        yield from _other_sets(situation)
    yield from _all_safe_fails(situation)
    yield from _passes(situation)
    yield from _untested(situation, untested)
    if outcome is ExperimentOutcome.ISOLATED:
        names = [f"{{{', '.join(situation.space.names(cause.mask))}}}" for cause in situation.known]
        yield f"a cause of more than {LARGEST} factors, or one that shows only together with {listed(names)}"


def _no_failure(situation: Situation) -> Iterator[str]:
    passes = len(situation.evidence.at(situation.space.full).passed)
    yield f"with {_passes_text(passes)} and no failure, a failure rate of up to {percent(excluded_rate(passes))}"


def _all_safe_fails(situation: Situation) -> Iterator[str]:
    mask = situation.all_safe
    if mask is None or situation.known or not situation.evidence.at(mask).failed:
        return
    cell = situation.evidence.at(mask)
    if cell.passed:
        yield f"it failed with everything safe too, {len(cell.failed)} of {cell.count.trials} times"
        return
    told = f"it fails with everything safe too ({trials(cell.failed)})"
    if any(other.passed for other in situation.evidence.cells):
        yield f"{told}, though not everywhere: a safe level brings the failure as well, so no factor is accused"
    else:
        yield f"{told}: what was varied is not needed; what is left is {listed(_BEYOND_THE_FACTORS)}"
    if mask:
        yield f"{listed(situation.space.names(mask))} could not be made safe, and may be at fault"


def _other_sets(situation: Situation) -> Iterator[str]:
    """The sets that are left, beside the findings, with their probabilities."""
    space = situation.space
    if situation.known:
        chance = 1.0 - situation.no_more
        if chance >= _WORTH_NAMING and not unexplained(situation):
            yield f"a further cause beside what was found ({percent(chance)})"
    for mask, chance in situation.ranking.top(_MOST_NAMED) if not situation.known else ():
        if mask == NEVER or chance < _WORTH_NAMING:
            continue
        if mask == 0:
            held = listed(space.names(situation.held))
            rest = f" else is varied, as long as {held} stay as they are" if held else " is varied"
            yield f"it fails whatever{rest} ({percent(chance)})"
        else:
            yield f"the failing set {{{', '.join(space.names(mask))}}} ({percent(chance)})"
    for cause in situation.known if len(situation.known) == 1 else ():
        yield (
            f"a failing set other than {{{', '.join(space.names(cause.mask))}}} "
            f"({percent(1.0 - situation.probability(cause))})"
        )
    misfit = situation.posterior.misfit
    if misfit >= _WORTH_NAMING:
        yield f"none of the sets that were considered ({percent(misfit)})"


def _passes(situation: Situation) -> Iterator[str]:
    """What the passes with a member safe exclude, for the member that has the fewest of them."""
    evidence, space = situation.evidence, situation.space
    members = {bit for cause in situation.known for bit in space.members(cause.mask)}
    if members:
        fewest = min(sorted(members), key=lambda bit: len(evidence.passed_without(bit)))
        passes = len(evidence.passed_without(fewest))
        yield (
            f"with {space.factor(fewest).name} safe, {_passes_text(passes)} behind it: a failure rate there "
            f"of up to {percent(excluded_rate(passes))}"
        )


def _passes_text(passes: int) -> str:
    return f"{passes} {'pass' if passes == 1 else 'passes'}"


def _untested(situation: Situation, untested: list[str]) -> Iterator[str]:
    if untested:
        yield f"whether {listed(untested)} {'plays' if len(untested) == 1 else 'play'} a part was not shown"
    arms = {
        "workaround": "the user's launch without what was found",
        "all_safe": "everything safe at once",
    }
    for purpose, words in arms.items():
        spoiled = [
            number
            for number, trial in situation.evidence.trials.items()
            if trial.purpose == purpose and number in situation.evidence.of(trial.configuration).spoiled
        ]
        if spoiled:
            yield f"{words} could not be judged ({trials(spoiled)})"
