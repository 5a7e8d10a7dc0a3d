"""culpa's own search on a simulated engine, to its end, with what it took on the way."""

from dataclasses import dataclass

from benchmarks.search.simulate import RELAUNCH, REQUEST, Case, Engine
from culpa.model import Conclusion, Level, Observation, Outcome, Signature
from culpa.search import Proposal, Strategy

_HUNTED = Signature(symptom="simulated", process="worker")
_ANOTHER = Signature(symptom="another", process="worker")
_CONFIRMING = ("sufficient", "necessary")


@dataclass(frozen=True, slots=True)
class Search:
    """A finished search.

    `found` are the sets that it claims, in the order in which they were found, each with the claimed
    probability. `to_verdict` and `verdict_cost` count up to the moment when the first set was claimed (all of
    it, if none ever was); `confirming` of these trials are its arms ("sufficient" and "necessary");
    `settled` is the number of trials after the baseline from which on a true set was the likeliest one until
    the verdict. `in_all` counts what was run to the end: the workaround, further causes, other levels.
    `masking` are the factors that it calls masking.
    """

    found: tuple[tuple[frozenset[str], float], ...]
    to_verdict: int
    verdict_cost: float
    confirming: int
    settled: int
    in_all: int
    all_cost: float
    masking: frozenset[str]
    conclusion: Conclusion
    history: tuple[Observation, ...]
    proposals: tuple[Proposal, ...]


def run_culpa(
    case: Case, *, confidence: float = 0.95, max_trials: int | None = None, to_the_end: bool = True
) -> Search:
    """Search for the fault of a case. With `to_the_end` false it stops at the first claim."""
    engine = Engine(case)
    strategy = Strategy(
        case.factors,
        confidence=confidence,
        max_trials=max_trials,
        seed=case.seed,
        relaunch_cost=RELAUNCH,
        request_cost=REQUEST,
    )
    history: list[Observation] = []
    proposals: list[Proposal] = []
    verdict: tuple[int, float] | None = None
    settled: int | None = None
    while True:
        if verdict is None and len(history) > 1:
            conclusion = strategy.conclude(history, "the first claim ended the search")
            settled = _settled(case, strategy, history, settled)
            if any(finding.level is Level.ISOLATED for finding in conclusion.findings):
                verdict = engine.trials, engine.cost
                if not to_the_end:
                    break
        step = strategy.next(history, engine.alive)
        if isinstance(step, Conclusion):
            conclusion = step
            break
        outcome = engine.run(step.configuration)
        failed = {Outcome.FAIL: _HUNTED, Outcome.OTHER: _ANOTHER}.get(outcome)
        reason = {Outcome.OTHER: "another failure", Outcome.UNTESTABLE: "can't be tested"}.get(outcome, "")
        proposals.append(step)
        history.append(Observation(step.configuration, outcome, step.purpose, failed, reason))
    to_verdict, cost = verdict or (engine.trials, engine.cost)
    return Search(
        found=tuple(
            (frozenset(member.name for member in finding.members), finding.probability)
            for finding in conclusion.findings
            if finding.level is Level.ISOLATED
        ),
        to_verdict=to_verdict,
        verdict_cost=cost,
        confirming=sum(step.purpose in _CONFIRMING for step in proposals[:to_verdict]),
        settled=to_verdict if settled is None else settled,
        in_all=engine.trials,
        all_cost=engine.cost,
        masking=frozenset(row.name for row in conclusion.statuses if row.status == "masking"),
        conclusion=conclusion,
        history=tuple(history),
        proposals=tuple(proposals),
    )


def _settled(case: Case, strategy: Strategy, history: list[Observation], before: int | None) -> int | None:
    """Trials after the baseline since which a true set is the likeliest; None while it is not."""
    sets = [frozenset(names) for names, _ in strategy.belief(history) if names]
    if not sets or sets[0] not in case.causes:
        return None
    return len(history) - 1 if before is None else before
