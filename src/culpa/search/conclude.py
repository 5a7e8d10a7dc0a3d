"""From the trials to what may be claimed: findings, what each factor is, what is not excluded."""

from culpa.model import Conclusion, ExperimentOutcome, FactorStatus, Finding, Level, Member, Status
from culpa.search.situation import Cause, Situation
from culpa.search.wording import trials


def conclude(situation: Situation, outcome: ExperimentOutcome, confidence: float, why: str) -> Conclusion:
    """The conclusion of a search that ends in `outcome`; `why` says what ended it (empty if it was done)."""
    findings = tuple(_finding(situation, cause) for cause in situation.known)
    return Conclusion(
        outcome=outcome,
        findings=findings,
        statuses=tuple(_statuses(situation, outcome, confidence)),
        not_excluded=tuple(_open_questions(situation, outcome, why)),
    )


def _finding(situation: Situation, cause: Cause) -> Finding:
    space = situation.space
    confirmation = situation.confirmation(cause.mask)
    return Finding(
        members=tuple(
            Member(space.factor(bit).name, space.factor(bit).suspect, space.safe_level(bit))
            for bit in space.members(cause.mask)
        ),
        level=Level.ISOLATED,
        probability=cause.probability,
        sufficient=confirmation.sufficient.count,
        necessary=tuple((space.factor(bit).name, cell.count) for bit, cell in confirmation.necessary()),
    )


def _statuses(situation: Situation, outcome: ExperimentOutcome, confidence: float) -> list[FactorStatus]:
    space = situation.space
    rows = []
    for factor in space.factors:
        if factor.instrument:
            rows.append(FactorStatus(factor.name, factor.suspect, factor.safe[0], "untested", "not varied"))
            continue
        bit = space.mask([factor.name])
        status, reason = _status(situation, bit, outcome, confidence)
        rows.append(FactorStatus(factor.name, factor.suspect, space.safe_level(bit), status, reason))
    return rows


def _status(
    situation: Situation, bit: int, outcome: ExperimentOutcome, confidence: float
) -> tuple[Status, str]:
    for cause in situation.known:
        if cause.mask & bit:
            return "in", _necessity(situation, cause, bit)
    failed = situation.evidence.failed_without(bit)
    if failed:
        return "out", f"failed with it safe ({trials(failed)})"
    return "untested", "the trials do not tell"


def _necessity(situation: Situation, cause: Cause, bit: int) -> str:
    cell = dict(situation.confirmation(cause.mask).necessary())[bit]
    return f"passes with it safe and all else of the set suspect ({trials(cell.passed)})"


def _open_questions(situation: Situation, outcome: ExperimentOutcome, why: str) -> list[str]:
    return [why] if why else []
