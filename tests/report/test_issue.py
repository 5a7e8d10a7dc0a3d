"""The issue: the form's headings in their order, below GitHub's limit, and nothing foreign that acts."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.report.cases import CASES, incident, isolated, no_failure
from tests.report.golden import check
from tests.report.papers import hostile_source, source_of, stored
from tests.report.test_markdown import HOSTILE, PARSER, texts, tokens_of

from culpa.model import Experiment, LeftOut
from culpa.report.excerpts import LogExcerpt, ShownLine
from culpa.report.issue import issue_report, issue_title
from culpa.report.issue_forms import form_for, load_forms
from culpa.report.issue_limits import GITHUB_LIMIT

OWN_HTML = re.compile(
    r"</details>\n|<details>\n<summary>[^<>]*</summary>\n|<!-- (?:Title|Form): [^<>]* -->\n"
)


def headings(markdown: str) -> list[str]:
    return [line.removeprefix("### ") for line in markdown.splitlines() if line.startswith("### ")]


def test_issue_of_the_incident_is_the_golden_one() -> None:
    check("stored.issue.md", issue_report(stored()))


@pytest.mark.parametrize("engine", sorted(load_forms()))
def test_headings_are_those_of_the_form_in_their_order(engine: str) -> None:
    experiment = replace(incident(), engine=engine)
    shown = headings(issue_report(source_of(experiment)))
    wanted = [section.heading for section in load_forms()[engine].sections]
    assert shown == [heading for heading in wanted if heading in shown]
    assert len(shown) >= len(wanted) - 1


@pytest.mark.parametrize(
    ("engine", "form"),
    [
        ("vLLM", "vllm"),
        ("sglang", "sglang"),
        ("llama.cpp", "llama.cpp"),
        ("culpa-lab", "vllm"),
        ("x", "other"),
    ],
)
def test_every_engine_has_a_form(engine: str, form: str) -> None:
    assert form_for(engine).engine == form


@pytest.mark.parametrize("case", CASES)
def test_every_ending_of_a_run_makes_an_issue(case: str) -> None:
    markdown = issue_report(source_of(CASES[case]()))
    assert headings(markdown)[:2] == ["Your current environment", "🐛 Describe the bug"]
    assert not re.search(r"\n{3,}| \n", markdown)


def test_what_a_maintainer_asks_for_is_there() -> None:
    markdown = issue_report(stored())
    for wanted in (
        "VLLM_PP_LAYER_PARTITION=23,23,18 python -m culpa_lab serve -pp 3",
        "First to fail: **worker PP1**",
        "- Xid 31 on 0000:41:00.0",
        "| aligned |",
        "#### Ruled out",
        "#### Not ruled out",
        "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
        "(isolated, probability 97.8%)",
    ):
        assert wanted in markdown


def test_boxes_of_the_checklist_are_left_to_the_person() -> None:
    assert "- [x]" not in issue_report(source_of(isolated())).lower()
    assert "- [ ] Make sure you already searched" in issue_report(source_of(isolated()))


def test_the_reference_engine_is_not_sent_to_anybody() -> None:
    markdown = issue_report(stored())
    assert "nothing to file" in markdown
    assert "issues/new" not in markdown


def test_no_failure_is_titled_so() -> None:
    assert issue_title(source_of(no_failure())).endswith("no failure seen")


def test_title_is_one_line_and_ends_no_comment() -> None:
    for text in HOSTILE:
        markdown = issue_report(hostile_source(text))
        assert markdown.startswith("<!-- Title: ")
        assert markdown.index("-->") < markdown.index("\n")


def huge(experiment: Experiment) -> Experiment:
    """A run of many trials with long names, a very long command, and much that was left out."""
    trials = tuple(
        replace(experiment.trials[index % 3], id=index + 1, arm=f"arm {index} " + "very " * 40)
        for index in range(3_000)
    )
    return replace(
        experiment,
        trials=trials,
        launch=replace(experiment.launch, argv=(*experiment.launch.argv, "--x", "y" * 300_000)),
        left_out=tuple(LeftOut(f"factor_{index}", "why " * 400) for index in range(900)),
        environment=tuple((f"fact {index}", "value " * 300) for index in range(700)),
        notes=tuple("note " * 600 for _ in range(300)),
    )


def test_a_huge_run_fits_and_says_what_was_cut() -> None:
    experiment = huge(incident())
    source = source_of(experiment)
    lines = tuple(ShownLine(number, "x" * 1_000, "root" if number == 90 else "") for number in range(1, 161))
    trials = tuple(
        replace(one, logs=(LogExcerpt("trials/0001/engine.log", 10**8, 10**6, lines),))
        for one in source.trials
    )
    markdown = issue_report(replace(source, trials=trials))
    assert len(markdown) < GITHUB_LIMIT
    assert "Cut to fit: " in markdown
    assert "of 1,000,000 shown" in markdown
    assert "### Before submitting a new issue..." in markdown
    assert markdown.count("<details>") == markdown.count("</details>")
    assert len([token for token in PARSER.parse(markdown) if token.type == "fence"]) >= 3


def test_logs_give_way_before_the_table_of_arms() -> None:
    source = source_of(incident())
    lines = tuple(ShownLine(number, "x" * 900, "root" if number == 90 else "") for number in range(1, 161))
    trials = tuple(replace(one, logs=(LogExcerpt("engine.log", 1, 400, lines),)) for one in source.trials)
    markdown = issue_report(replace(source, trials=trials))
    assert len(markdown) < GITHUB_LIMIT
    assert "lines of engine.log" in markdown
    assert "configurations:" not in markdown


@settings(max_examples=30, deadline=None)
@given(texts)
def test_hostile_text_adds_no_markup_to_an_issue(text: str) -> None:
    markdown = issue_report(hostile_source(text))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", markdown)
    tokens = tokens_of(markdown)
    kinds = {token.type for token in tokens}
    assert not kinds & {"image", "html_inline", "em_open", "s_open", "code_block", "blockquote_open"}
    # The checklist of the form has one link of its own.
    links = {str(token.attrs.get("href")) for token in tokens if token.type == "link_open"}
    assert links <= {"https://docs.vllm.ai/en/latest/"}
    assert all(OWN_HTML.fullmatch(token.content) for token in tokens if token.type == "html_block")
    plain = [token.content for token in tokens if token.type == "text"]
    assert not any(re.search(r"@\w|#\d|https?:/|www\.\w", part) for part in plain)


MINIMIZED = {
    "schema": "culpa.minimization/1",
    "command": "engine serve -pp 2",
    "request": "1 request, the longest prompt about 2049 tokens",
    "rate_sentence": "it failed each time",
    "thresholds": ["prompt_tokens: fails at 2049, not at 2048"],
    "control": "execution graphs → eager",
    "reruns": [{"control": False, "runs": 1, "failed": 1, "said": "FAIL: illegal access"}],
    "files": [["repro.sh", "engine serve -pp 2\n"], ["repro.py", "print('FAIL')\n"]],
}


def test_a_minimized_run_is_reported_by_its_smallest_case_and_files() -> None:
    markdown = issue_report(replace(stored(), minimization=MINIMIZED))
    assert "engine serve -pp 2" in markdown
    assert "<summary>repro.py</summary>" in markdown
    assert "fails at 2049, not at 2048" in markdown


def test_files_of_a_reproduction_that_are_too_long_are_named_as_cut() -> None:
    long = {**MINIMIZED, "files": [["repro.py", "x = 1\n" * 20_000]]}
    markdown = issue_report(replace(stored(), minimization=long))
    assert len(markdown) < GITHUB_LIMIT
    assert "the files of the reproduction" in markdown


@pytest.mark.parametrize("document", [{}, [], {"schema": "culpa.minimization/1"}, {"schema": "x"}])
def test_a_minimization_that_can_not_be_read_leaves_the_runs_own_commands(document: object) -> None:
    assert issue_report(replace(stored(), minimization=document)) == issue_report(stored())
