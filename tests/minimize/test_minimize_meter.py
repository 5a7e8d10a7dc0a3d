"""Whether a candidate still fails, by as few trials as its rate allows."""

import asyncio
from collections.abc import Iterator

import pytest

from culpa.minimize.case import Case
from culpa.minimize.meter import Meter, Tried
from culpa.model import Launch, Outcome
from culpa.model.minimization import Attempt

START, CANDIDATE = Case(Launch(("start",)), None), Case(Launch(("candidate",)), None)
LETTERS = {"F": Outcome.FAIL, "P": Outcome.PASS, "O": Outcome.OTHER, "U": Outcome.UNTESTABLE}


class Bench:
    """Gives outcomes from a text for each case, and counts them."""

    def __init__(self, **outcomes: str) -> None:
        self._left: dict[str, Iterator[str]] = {name: iter(text) for name, text in outcomes.items()}
        self.spent = 0

    async def once(self, case: Case, _step: str) -> Tried:
        self.spent += 1
        return Tried(self.spent, LETTERS[next(self._left[case.launch.argv[0]])])


def measured(start: str, candidate: str) -> tuple[bool, int]:
    bench = Bench(start=start, candidate=candidate)
    meter = Meter(bench.once)

    async def both() -> bool:
        await meter.begin(START)
        before = bench.spent
        kept = await meter.still_fails(CANDIDATE, "step", "change")
        bench.spent -= before
        return kept

    return asyncio.run(both()), bench.spent


@pytest.mark.parametrize(
    ("start", "candidate", "kept", "trials"),
    [
        ("FFF", "F", True, 1),
        ("FFF", "P", False, 1),
        ("FPFPF", "PPF", True, 3),
        ("FPFPF", "P" * 20, False, 6),
        ("FFF", "O", False, 1),
        ("FFF", "U", False, 1),
    ],
)
def test_a_candidate_is_given_up_when_it_would_have_failed_by_now(
    start: str, candidate: str, kept: bool, trials: int
) -> None:
    assert measured(start, candidate) == (kept, trials)


def test_a_start_that_does_not_fail_is_told() -> None:
    meter = Meter(Bench(start="P" * 40).once)
    asyncio.run(meter.begin(START))
    assert (meter.start.failed, meter.attempts[0].kept) == (0, False)


@pytest.mark.parametrize(
    ("outcomes", "held"), [("FF", True), ("FPFF", True), ("F" + "P" * 24, False), ("FPPPF" + "F", True)]
)
def test_a_rate_that_fell_is_not_held(outcomes: str, held: bool) -> None:
    bench = Bench(start="FFF", candidate=outcomes)
    meter = Meter(bench.once)

    async def both() -> bool:
        await meter.begin(START)
        assert await meter.still_fails(CANDIDATE, "step", "change")
        return await meter.held(CANDIDATE, "step")

    assert asyncio.run(both()) is held
    assert meter.attempts[-1].kept is held


def test_what_was_tried_is_told_with_its_counts() -> None:
    told: list[Attempt] = []
    meter = Meter(Bench(start="FFF", candidate="O").once, told.append)

    async def both() -> None:
        await meter.begin(START)
        await meter.still_fails(CANDIDATE, "options", "without --x")

    asyncio.run(both())
    assert (told[1].step, told[1].change, told[1].other, told[1].kept) == ("options", "without --x", 1, False)
    assert told[1].ids == (4,)
