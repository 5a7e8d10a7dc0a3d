"""A peer on a simulated engine, from the user's launch to a confirmed verdict, as culpa's search is measured.

Every method sees the user's launch fail first. Its set counts as confirmed when the arms that culpa asks of itself
are in: it fails with all else safe, and passes with each member made safe; arms that the method ran itself aren't run
again. Afterwards the user's launch without the members is tried: where it still fails, the method searches again
among the rest, as Go's bisect does. Peers know no instruments: they vary every factor.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.peers import PEERS, Answer, Oracle, OutOfTrials, Suspects
from benchmarks.peers.repeats import Repeats
from benchmarks.search.simulate import Case, Engine
from culpa.model import Configuration, Outcome

_MOST_CAUSES = 3
_ANSWERS = {Outcome.FAIL: Answer.FAIL, Outcome.PASS: Answer.PASS}


@dataclass(frozen=True, slots=True)
class PeerRun:
    """What a peer came to: confirmed sets in the order in which they were found.

    `own` counts its trials without the confirming arms that it had not run itself, `to_verdict` those up to the
    first confirmed set, `in_all` also those for further causes. `spent` says that the budget ended it.
    """

    found: tuple[Suspects, ...]
    own: int
    to_verdict: int
    verdict_cost: float
    in_all: int
    all_cost: float
    spent: bool


def run_peer(case: Case, method: str, *, repeats: Repeats, budget: int) -> PeerRun:
    """Run one method with so many repeats of each configuration."""
    engine = Engine(case)
    oracle = Oracle(_trial(case, engine), repeats=repeats, budget=budget, size=len(case.causes[0]))
    names = _order(case)
    found: list[Suspects] = []
    own, verdict = 0, (0, 0.0)
    spent = False
    try:
        oracle.see_it_fail(names)
        while len(found) < _MOST_CAUSES:
            members = PEERS[method](oracle, names)
            own = own or engine.trials
            if not members or not _confirmed(oracle, members):
                break
            found.append(members)
            if len(found) == 1:
                verdict = engine.trials, engine.cost
            names = [name for name in names if name not in members]
            if not names or not oracle.fails(names):
                break
    except OutOfTrials:
        spent = True
    if not found:
        verdict = engine.trials, engine.cost
    return PeerRun(
        found=tuple(found),
        own=own or engine.trials,
        to_verdict=verdict[0],
        verdict_cost=verdict[1],
        in_all=engine.trials,
        all_cost=engine.cost,
        spent=spent,
    )


def _trial(case: Case, engine: Engine) -> Callable[[Suspects], Answer]:
    def trial(suspects: Suspects) -> Answer:
        levels = {
            factor.name: factor.suspect if factor.name in suspects else factor.safe[0]
            for factor in case.factors
        }
        return _ANSWERS.get(engine.run(Configuration.of(levels)), Answer.UNRESOLVED)

    return trial


def _order(case: Case) -> list[str]:
    """The factors, the likeliest last: halves that are tried first are then the likeliest to be harmless. With
    equal priors it is the order in which they were given."""
    return [factor.name for factor in sorted(case.factors, key=lambda factor: factor.prior)]


def _confirmed(oracle: Oracle, members: Suspects) -> bool:
    return oracle.fails(members) and not any(oracle.fails(members - {one}) for one in members)
