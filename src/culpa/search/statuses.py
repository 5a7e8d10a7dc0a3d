"""What each factor turned out to be, with the trials that say so."""

from culpa.model import Factor, FactorStatus, Outcome, Status
from culpa.search.evidence import Cell
from culpa.search.options import Options
from culpa.search.refine import Refinement
from culpa.search.situation import Situation
from culpa.search.wording import listed, percent, trials


def factor_statuses(situation: Situation, options: Options) -> tuple[FactorStatus, ...]:
    """One status for every factor, in the order in which they were given."""
    return tuple(
        _instrument(situation, factor, options) if factor.instrument else _varied(situation, factor, options)
        for factor in situation.space.factors
    )


def _instrument(situation: Situation, factor: Factor, options: Options) -> FactorStatus:
    statuses = [Refinement(situation, cause, options).instrument_status(factor) for cause in situation.known]
    masking = next((status for status in statuses if status.status == "masking"), None)
    if masking or statuses:
        return masking or statuses[0]
    numbers = sorted(
        number
        for cell in situation.evidence.cells
        if factor.name in situation.space.changed_instruments(cell.configuration)
        for number in cell.failed
    )
    if numbers:
        return FactorStatus(
            factor.name, factor.suspect, factor.safe[0], "out", f"failed with it changed ({trials(numbers)})"
        )
    reason = "an instrument: tried only once a failing set is confirmed"
    return FactorStatus(factor.name, factor.suspect, factor.safe[0], "untested", reason)


def _varied(situation: Situation, factor: Factor, options: Options) -> FactorStatus:
    bit = situation.space.mask([factor.name])
    if not any(cause.mask & bit for cause in situation.known):
        refined = (Refinement(situation, cause, options).masking_status(bit) for cause in situation.known)
        masking = next((found for found in refined if found is not None), None)
        if masking is not None:
            return masking
    status, reason = _judged(situation, bit, options)
    return FactorStatus(factor.name, factor.suspect, situation.space.safe_level(bit), status, reason)


def _judged(situation: Situation, bit: int, options: Options) -> tuple[Status, str]:
    for cause in situation.known:
        if cause.mask & bit:
            cell = dict(situation.confirmation_of(cause).necessary())[bit]
            others = listed(situation.space.names(cause.mask & ~bit))
            stays = "stays" if cause.mask.bit_count() == 2 else "stay"
            rest = f"although {others} {stays} suspect" if others else "with everything else safe too"
            return "in", f"passes once it is safe, {rest} ({trials(cell.passed)})"
    if not situation.evidence.any_failed:
        return "untested", "no failure was seen"
    failed = situation.evidence.failed_without(bit)
    if failed:
        return "out", f"failed with it safe ({trials(failed)})"
    if situation.feasible.held & bit:
        return "untested", f"can't be made safe here: {situation.feasible.reasons[bit]}"
    spoiled = spoiled_by(situation, bit)
    if spoiled is not None:
        return "untested", spoiled
    mass = situation.membership(bit)
    if mass < 1.0 - options.confidence:
        return "out", f"the sets that contain it have {percent(mass)} together"
    return "untested", f"the trials do not tell: the sets that contain it have {percent(mass)} together"


def spoiled_by(situation: Situation, bit: int) -> str | None:
    """Why nothing can be said of a factor whose safe level spoils the trials; None if it does not."""
    if not situation.hazard.held & bit and not any(cause.held & bit for cause in situation.known):
        return None
    cells = [cell for cell in situation.evidence.cells if cell.spoiled and not cell.reading.high & bit]
    if not cells:
        return None
    return _spoiled_sentence(situation, min(cells, key=lambda cell: -cell.reading.low.bit_count()))


def _spoiled_sentence(situation: Situation, cell: Cell) -> str:
    number = cell.spoiled[0]
    trial = situation.evidence.trials[number]
    if trial.outcome is Outcome.OTHER:
        symptom = trial.signature.describe() if trial.signature else trial.reason or "another failure"
        return (
            f"making it safe shifts the symptom to {symptom} (trial {number}): no workaround, "
            "and not shown to be needed"
        )
    return f"could not be tested safe: {trial.reason or 'the trial was untestable'} (trial {number})"
