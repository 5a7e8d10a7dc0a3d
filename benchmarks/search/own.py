"""culpa's own search on a simulated engine, to its end, with what it took on the way."""

from dataclasses import dataclass

from benchmarks.search.simulate import RELAUNCH, REQUEST, Case, Engine
from culpa.model import Conclusion, Level, Observation, Outcome, Signature
from culpa.search import Proposal, Strategy

_HUNTED = Signature(symptom="simulated", process="worker")
_ANOTHER = Signature(symptom="another", process="worker")
_NEARLY = (
    0.05  # below the asked confidence by more than this, a conclusion would claim nothing: it is not drawn
)
_CONFIRMING = ("sufficient", "necessary")


@dataclass(frozen=True, slots=True)
class Search:
    """A finished search.

    `found` are the sets that it claims, in the order in which they were found, each with the claimed
    probability. `to_verdict` and `verdict_cost` count up to the moment when the first set was claimed (all of
    it, if none ever was); `confirming` of these trials are its arms ("sufficient" and "necessary");
    `settled` is the number of trials after the baseline from which on a true set was the likeliest one until
    the verdict. `beliefs` has for every moment up to the verdict, from the second trial on, the probability
    of the likeliest set and whether it is a true one. `in_all` counts what was run to the end: the
    workaround, further causes, other levels. `masking` are the factors that it calls masking.
    """

    found: tuple[tuple[frozenset[str], float], ...]
    to_verdict: int
    verdict_cost: float
    confirming: int
    settled: int
    beliefs: tuple[tuple[float, bool], ...]
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
    beliefs: list[tuple[float, bool]] = []
    while True:
        if verdict is None and len(history) > 1:
            beliefs.append(_likeliest(case, strategy, history))
            if beliefs[-1][0] > confidence - _NEARLY:
                conclusion = strategy.conclude(history, "the first claim ended the search")
                if any(finding.level is Level.ISOLATED for finding in conclusion.findings):
                    verdict = engine.trials, engine.cost
                    if not to_the_end:
                        break
        step = strategy.next(history, engine.alive)
        if isinstance(step, Conclusion):
            conclusion = step
            break
        proposals.append(step)
        history.append(observed(engine, step))
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
        settled=_settled(beliefs, to_verdict),
        beliefs=tuple(beliefs),
        in_all=engine.trials,
        all_cost=engine.cost,
        masking=frozenset(row.name for row in conclusion.statuses if row.status == "masking"),
        conclusion=conclusion,
        history=tuple(history),
        proposals=tuple(proposals),
    )


def observed(engine: Engine, step: Proposal) -> Observation:
    """One trial on the engine, as search may know of it."""
    outcome = engine.run(step.configuration)
    signature = {Outcome.FAIL: _HUNTED, Outcome.OTHER: _ANOTHER}.get(outcome)
    reason = {Outcome.OTHER: "another failure", Outcome.UNTESTABLE: "can't be tested"}.get(outcome, "")
    return Observation(step.configuration, outcome, step.purpose, signature, reason)


def _likeliest(case: Case, strategy: Strategy, history: list[Observation]) -> tuple[float, bool]:
    """The probability of the likeliest set, and whether it is a true one."""
    sets = [(chance, frozenset(names)) for names, chance in strategy.belief(history) if names]
    chance, likeliest = max(sets, key=lambda item: item[0], default=(0.0, frozenset[str]()))
    return chance, likeliest in case.causes


def _settled(beliefs: list[tuple[float, bool]], to_verdict: int) -> int:
    """Trials after the baseline since which a true set is the likeliest one; all of them, if it never is."""
    wrong = [place for place, (_, right) in enumerate(beliefs) if not right]
    if not beliefs or not beliefs[-1][1]:
        return to_verdict
    return (wrong[-1] + 1 if wrong else 0) + 1  # the first belief is that after the second trial
