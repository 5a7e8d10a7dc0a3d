"""report.md: golden reports, and foreign text that stays text."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.report import golden
from tests.report.blocks import FACTORS, trial
from tests.report.cases import CASES, incident, isolated, no_failure

from culpa.model import (
    Conclusion,
    Experiment,
    ExperimentOutcome,
    Exposure,
    FactorStatus,
    Launch,
    LeftOut,
    OtherFailure,
    RootEvent,
    RootEvidence,
    Signature,
)
from culpa.report import clean, markup
from culpa.report.markdown import markdown_report

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OWN_HTML = {"<details>\n<summary>The same in both</summary>\n", "</details>\n"}
HOSTILE = (
    "<script>alert(1)</script>",
    "</details><img src=x onerror=alert(1)>",
    "| a | b |\n| --- | --- |\n| c | d |",
    "```\n# heading\n```",
    "`` ` ``` `",
    "[click](javascript:alert(1)) ![x](http://evil.example/a.png)",
    "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07 \x1b[2J\x9b31m",
    "\u202egnp.exe\u202c",
    "# heading\n- item\n1. item\n---\n===\n> quote",
    "&lt;b&gt; &#60;i&#62; <!-- c --> <?php ?> <![CDATA[x]]>",
    "@maintainer fixes #123 owner/repo#7 https://evil.example www.evil.example",
    "~~~\n***bold*** __bold__ ~~gone~~ $x$",
    "\\| \\` \\\\",
    "    indented\n\n\ttab",
    "[ref]: http://evil.example\n\n[ref]",
    "{{ 7 * 7 }}{% raw %}",
)
texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=60),
    st.lists(st.sampled_from([*"`|<>[]()*_~#\\\n\r\t!&@$-=+.1a \x1b\x9b\u2028", "``", "://", "www."])).map(
        "".join
    ),
    st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=3).map(" ".join),
)


def hostile_experiment(text: str) -> Experiment:
    """An experiment that carries the text wherever a log, a launch or an engine can put it."""
    base = isolated()
    levels = base.trials[0].configuration.with_levels({"execution": text})
    seen = Signature("assertion_error", text, text, text)
    bad = replace(
        trial(1, base.trials[0].outcome, levels, arm=text, signature=seen, reason=text),
        effective=(("execution", text), ("extra", text)),
    )
    return replace(
        base,
        run_id=text,
        engine_version=text,
        launch=Launch(("engine", text), (("X", text),)),
        trials=(bad, *base.trials[1:]),
        left_out=(LeftOut("left", text),),
        hunted=seen,
        root=RootEvidence(RootEvent(1, text, text, text, text), 1, text, ((1, text),), True, text, (text,)),
        other_failures=(OtherFailure(seen, (("execution", text),), text, (1,)),),
        conclusion=Conclusion(
            ExperimentOutcome.ISOLATED,
            base.conclusion.findings,
            (FactorStatus("execution", text, text, "masking", text),),
            (text,),
        ),
        environment=(("fact", text),),
        notes=(text,),
        limits_reached=(text,),
        options=(("seed", text),),
        folder=text,
    )


def tokens_of(markdown: str) -> list[Token]:
    flat: list[Token] = []
    for token in PARSER.parse(markdown):
        flat += [token, *(token.children or ())]
    return flat


def headings(markdown: str) -> list[str]:
    return [line for line in markdown.splitlines() if re.match(r"#{1,6} ", line)]


@pytest.mark.parametrize("case", CASES)
def test_report_is_the_golden_one(case: str) -> None:
    golden.check(f"{case}.md", markdown_report(CASES[case]()))


@pytest.mark.parametrize("case", CASES)
def test_report_never_claims_a_cause_or_a_repair(case: str) -> None:
    text = markdown_report(CASES[case]()).lower()
    for word in ("root cause", "fixed", "solved", "proven", "guarantee"):
        assert word not in text


@pytest.mark.parametrize("case", CASES)
def test_report_has_no_run_of_blank_lines_or_trailing_blanks(case: str) -> None:
    text = markdown_report(CASES[case]())
    assert "\n\n\n" not in text
    assert not re.search(r"[ \t]\n", text)


def test_secrets_do_not_reach_the_report() -> None:
    text = markdown_report(incident())
    assert "sk-abcdefgh" not in text
    assert "hf_abcdefgh" not in text
    assert "put your own secret" in text


def test_contrast_is_not_reported_as_more_than_a_contrast() -> None:
    text = markdown_report(incident())
    assert "depends on" in text
    assert "needs execution" not in text


def test_no_failure_report_states_the_excluded_rates() -> None:
    text = markdown_report(no_failure())
    assert "more than 63.2% of launches is excluded at 95%" in text  # 1 - 0.05 ** (1 / 3)
    assert "more than 10.5% of such requests is excluded at 95%" in text  # 1 - 0.05 ** (1 / 27)


def test_failure_at_start_up_has_no_requests_to_send() -> None:
    base = isolated()
    early = replace(base.trials[0], exposure=Exposure(), effective=())
    text = markdown_report(replace(base, trials=(early, *base.trials[1:])))
    assert "it failed before it was asked anything" in text
    assert "Trial 1 ended before it said anything." in text
    assert "not said" not in text


def test_long_list_of_what_was_left_out_is_folded() -> None:
    left = tuple(LeftOut(f"factor_{number}", "needs a GPU") for number in range(30))
    text = markdown_report(replace(isolated(), left_out=left))
    assert "<summary>30 more were left out, and so not tested</summary>" in text


def test_many_factors_share_one_column_in_the_table_of_arms() -> None:
    assert len(FACTORS) == 8
    header = next(line for line in markdown_report(isolated()).splitlines() if line.startswith("| arm"))
    assert "5 other factors" in header
    assert "block_size" not in header


@settings(max_examples=60, deadline=None)
@given(texts)
def test_hostile_text_adds_no_markup_to_the_report(text: str) -> None:
    markdown = markdown_report(hostile_experiment(text))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", markdown)
    kinds = {token.type for token in tokens_of(markdown)}
    assert not kinds & {"link_open", "image", "html_inline", "em_open", "s_open", "code_block"}
    html = {token.content for token in tokens_of(markdown) if token.type == "html_block"}
    assert html <= OWN_HTML
    plain = [token.content for token in tokens_of(markdown) if token.type == "text"]
    assert not any(re.search(r"@\w|#\d|https?:/|www\.\w", part) for part in plain)


@settings(max_examples=60, deadline=None)
@given(texts)
def test_hostile_text_keeps_the_structure_of_the_report(text: str) -> None:
    tame = [token.type for token in PARSER.parse(markdown_report(hostile_experiment("tame")))]
    wild = [token.type for token in PARSER.parse(markdown_report(hostile_experiment(text or "x")))]
    skipped = {"paragraph_open", "paragraph_close", "inline"}
    assert [kind for kind in wild if kind not in skipped] == [kind for kind in tame if kind not in skipped]


@given(texts)
def test_escaped_text_renders_as_the_text_itself(text: str) -> None:
    shown = "".join(
        token.content if token.type in ("text", "text_special", "code_inline") else " "
        for token in tokens_of(f"- a {markup.text(text)}")
        if token.type in ("text", "text_special", "code_inline", "softbreak")
    )
    without_blanks = "".join(shown.split()).removeprefix("a").replace("\\|", "|")
    assert without_blanks == "".join(clean.line(text).split()).replace("\\|", "|")


@given(texts)
def test_fence_holds_its_text_unchanged(text: str) -> None:
    (token,) = PARSER.parse(markup.fence(text, "sh"))
    assert token.type == "fence"
    assert token.content.rstrip("\n") == clean.block(text).rstrip("\n")
