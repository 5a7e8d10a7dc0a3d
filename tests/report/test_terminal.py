"""The summary at the end: golden at two widths, and safe whatever a log holds."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.report import golden
from tests.report.cases import CASES, incident, isolated

from culpa.model import Experiment, RootEvent, RootEvidence, Signature
from culpa.report.terminal import print_summary


def summary(experiment: Experiment, width: int, colours: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colours, highlight=False)
    print_summary(experiment, console, "culpa-runs/run")
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("case", CASES)
def test_summary_is_the_golden_one(case: str, width: int) -> None:
    golden.check(f"{case}.{width}.txt", summary(CASES[case](), width))


@pytest.mark.parametrize("width", [20, 40, 80, 120])
@pytest.mark.parametrize("case", CASES)
def test_only_what_is_to_be_copied_is_wider_than_the_console(case: str, width: int) -> None:
    experiment = CASES[case]()
    commands = experiment.commands
    unwrapped = {
        "report   culpa-runs/run/",
        "         culpa-runs/run/",
        "publish  culpa report culpa-runs/run",
    }
    if commands:
        unwrapped |= {part.split("sk-")[0] for part in (commands.failing, commands.passing) if part}
    for line in summary(experiment, width).splitlines():
        assert len(line) <= width or any(line.startswith(start) for start in unwrapped)


@pytest.mark.parametrize("case", CASES)
def test_no_line_ends_in_blanks(case: str) -> None:
    assert not re.search(r" \n", summary(CASES[case](), 80))


def test_commands_are_one_line_each_so_that_they_can_be_copied() -> None:
    experiment = isolated()
    assert experiment.commands is not None
    lines = summary(experiment, 40).splitlines()
    assert experiment.commands.failing in lines
    assert experiment.commands.passing in lines


def test_contrast_is_called_a_contrast_and_no_fix() -> None:
    assert "passes with execution=eager (a contrast, no fix)" in summary(incident(), 80)


def test_secrets_are_redacted() -> None:
    text = summary(incident(), 80)
    assert "sk-abcdefgh" not in text
    assert "--api-key [redacted]" in text


@given(
    st.text(max_size=80)
    | st.sampled_from(["[red]x[/red]", "\x1b[2J\x1b]0;title\x07", "[link=http://x]", ":bomb:"])
)
def test_log_text_brings_no_escapes_and_no_markup_into_the_terminal(text: str) -> None:
    hostile = replace(
        isolated(),
        hunted=Signature("crash", text, text, text),
        root=RootEvidence(RootEvent(1, text, text), 1, text, cascade=text),
        notes=(text,),
        other_failures=(),
    )
    shown = summary(hostile, 80, colours=True)
    without_colours = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", without_colours)
    if text in ("[red]x[/red]", "[link=http://x]", ":bomb:"):
        assert text in without_colours
