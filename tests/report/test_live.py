"""The live view: fits the terminal, shows what runs, survives what engines print."""

import io
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from rich.console import Console
from tests.report import golden
from tests.report.blocks import LAUNCH
from tests.report.cases import isolated

from culpa.model import (
    Belief,
    Factor,
    Outcome,
    Plan,
    Trial,
    TrialProgress,
    TrialStarted,
    all_safe,
    all_suspect,
)
from culpa.report.live import RichLive

OUTCOMES = (Outcome.FAIL, Outcome.PASS, Outcome.OTHER, Outcome.UNTESTABLE)


def factors(count: int) -> tuple[Factor, ...]:
    return tuple(Factor(f"factor_{n:02d}", "on", ("off",)) for n in range(count))


def console(width: int, height: int, encoding: str = "utf-8") -> Console:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=stream, width=width, height=height, force_terminal=True, color_system=None)


def drive(view: RichLive, varied: tuple[Factor, ...], trials: int) -> None:
    """So many trials, the last of them still running; outcomes and levels follow from the trial's number."""
    view.started(Plan("vLLM", LAUNCH, varied, engine_version="0.32.0", predicted_trials=9))
    launched = all_suspect(varied)
    for number in range(1, trials + 1):
        levels = launched.with_levels(
            {factor.name: "off" for place, factor in enumerate(varied) if (place + number) % 3 == 0}
        )
        view.trial_started(
            TrialStarted(number, "half of them", "search", levels, "splits best", 60 - number, 1800.0)
        )
        view.trial_progress(TrialProgress(number, "starting", 3.0, "loading the weights"))
        if number < trials:
            view.trial_finished(Trial(number, levels, OUTCOMES[number % 4], "search", "half of them"))
            view.belief(Belief(((("factor_03", "factor_17"), 0.81), ((), 0.02)), 5))


def screen(view: RichLive, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    target = console(width, height, encoding)
    with target.capture() as capture:
        target.print(view.view())
    return capture.get().splitlines()


@pytest.fixture
def new_view() -> Callable[..., RichLive]:
    """Views whose clock stands still at 100 s."""
    return lambda width=80, height=24: RichLive(console(width, height), clock=lambda: 100.0)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (40, 10), (200, 60), (30, 24)])
@pytest.mark.parametrize(("count", "trials"), [(30, 40), (3, 2), (30, 1), (1, 120)])
def test_view_fits_the_terminal(
    new_view: Callable[..., RichLive], width: int, height: int, count: int, trials: int
) -> None:
    view = new_view(width, height)
    drive(view, factors(count), trials)
    lines = screen(view, width, height)
    view.close()
    assert len(lines) < height
    assert all(cell_len(line) <= width for line in lines)


def test_view_of_many_factors_and_trials_is_the_golden_one(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(30), 40)
    lines = screen(view, 80, 24)
    view.close()
    golden.check("live.80x24.txt", "\n".join(line.rstrip() for line in lines) + "\n")


def test_likely_factors_stay_when_there_is_no_room_for_all(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(30), 40)
    text = "\n".join(screen(view, 80, 24))
    view.close()
    assert "\nfactor_03 " in text
    assert "\nfactor_17 " in text
    assert "more factors, less likely" in text


def test_last_trials_stay_when_there_is_no_room_for_all(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(5), 40)
    (head,) = [line for line in screen(view, 80, 24) if " earlier" in line]
    view.close()
    assert head.split()[-1] == "40"


def test_terminal_without_unicode_gets_plain_signs(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(5), 4)
    lines = screen(view, 80, 24, encoding="ascii")
    view.close()
    assert all(line.isascii() for line in lines)


def test_log_text_is_shown_as_text(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(3), 1)
    view.trial_progress(
        TrialProgress(1, "starting", 4.0, "[red]a[/red]\x1b[2Jb --api-key sk-abcdefgh12345678")
    )
    text = "\n".join(screen(view, 120, 24))
    view.close()
    assert "[red]a[/red]b --api-key [redacted]" in text


def test_trial_that_is_judged_again_keeps_its_column(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(3), 3)
    again = Trial(1, all_safe(factors(3)), Outcome.FAIL, "baseline", "baseline")
    view.trial_finished(again)
    (head,) = [line for line in screen(view, 80, 24) if line.startswith("trials")]
    view.close()
    assert head.split() == ["trials", "1", "2", "3"]


def test_factors_of_the_failing_request_get_their_rows(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    varied = factors(3)
    drive(view, varied, 2)
    more = (*varied, Factor("prompt_tokens", "27525", ("200",), scope="request", numeric=True))
    levels = all_suspect(varied).with_levels({"prompt_tokens": "9000"})
    view.trial_started(TrialStarted(3, "threshold", "threshold", levels, factors=more))
    (row,) = [line for line in screen(view, 80, 24) if line.startswith("prompt_tokens")]
    view.close()
    assert row.split() == ["prompt_tokens", "●", "●", "◐"]


def test_last_picture_stays_when_the_experiment_is_over(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    drive(view, factors(3), 3)
    view.finished(isolated())
    view.close()
    text = "\n".join(screen(view, 80, 24))
    assert "done: 8 trials" in text
    assert "trials" in text


def test_view_that_never_started_takes_events_and_closes(new_view: Callable[..., RichLive]) -> None:
    view = new_view()
    view.trial_progress(TrialProgress(1, "starting", 0.0))
    view.belief(Belief())
    view.note("the launch fixes a port")
    view.finished(isolated())
    view.close()
