"""The advisory: its sections in either language, claims no stronger than the finding, nothing foreign that acts."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.report.cases import CASES, incident, isolated
from tests.report.golden import check
from tests.report.papers import hostile_source, source_of, stored
from tests.report.test_markdown import texts, tokens_of

from culpa.model import Commands, Level, Member, Outcome, Signature
from culpa.report import chinese
from culpa.report.advisory import advisory
from culpa.report.advisory_facts import workaround

SECTIONS = {
    "en": [
        "Quick conclusion",
        "Environment",
        "Fastest mitigation",
        "Cautions",
        "Scenario",
        "Error text",
        "Causes, by strength of evidence",
        "Environment checks",
        "Steps",
        "Verification",
        "Sources",
    ],
    "zh": [
        "快速结论",
        "适用环境",
        "最快规避方案",
        "注意事项",
        "问题场景",
        "报错原文",
        "原因分析（按证据强弱）",
        "环境排查",
        "解决步骤",
        "验证方法",
        "参考来源",
    ],
}
LANGUAGES = tuple(SECTIONS)


def sections(markdown: str) -> list[str]:
    return [line.removeprefix("## ") for line in markdown.splitlines() if line.startswith("## ")]


@pytest.mark.parametrize("language", LANGUAGES)
def test_advisory_of_the_incident_is_the_golden_one(language: str) -> None:
    check(f"stored.advisory.{language}.md", advisory(stored(), language))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("case", CASES)
def test_sections_are_those_of_an_article_in_its_order(case: str, language: str) -> None:
    markdown = advisory(source_of(CASES[case]()), language)
    shown = sections(markdown)
    if case == "no_failure":
        assert shown == [name for index, name in enumerate(SECTIONS[language]) if index not in (5, 6)]
    else:
        assert shown == SECTIONS[language]
    assert not re.search(r"\n{3,}| \n", markdown)


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_called_a_fix_or_a_root_cause(case: str) -> None:
    english = advisory(source_of(CASES[case]()), "en")
    # The search itself says of what hides a failure that it is no fix.
    assert not re.search(r"(?<!no )\bfix(?:es|ed)?\b", english, re.IGNORECASE)
    assert "root cause is " not in english.replace("No root cause is known", "").replace(
        "no root cause is known", ""
    )


def test_every_sentence_of_the_stored_run_has_its_chinese() -> None:
    assert "（原文）" not in advisory(stored(), "zh")


def test_strength_of_the_claim_is_that_of_the_finding() -> None:
    experiment = isolated()
    finding = replace(experiment.conclusion.findings[0], level=Level.CONTRAST, probability=0.41)
    weaker = replace(experiment, conclusion=replace(experiment.conclusion, findings=(finding,)))
    english, chinese_text = (advisory(source_of(weaker), language) for language in LANGUAGES)
    assert "depends on" in english
    assert "(contrast, probability 41%)" in english
    assert "结论等级 contrast，后验概率 41%" in chinese_text
    assert "需要 " not in chinese_text.split("## 适用环境")[0].split("## 快速结论")[1].split("“")[0]


def test_a_contrast_is_no_proof_of_a_cause() -> None:
    assert "Shown by trials" in advisory(source_of(isolated()), "en")
    weak = advisory(source_of(incident()), "en")
    assert "Shown by trials" not in weak
    assert "Suggested by a contrast of trials, not isolated" in weak
    assert "试验已经证明" not in advisory(source_of(incident()), "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_shifts_the_symptom_is_never_offered(language: str) -> None:
    experiment = incident()
    assert experiment.commands is not None
    passing = experiment.trial(experiment.commands.passing_trial)
    assert passing is not None
    assert workaround(experiment) is not None
    shifted = replace(passing, id=99, outcome=Outcome.OTHER, signature=Signature("gibberish"))
    worse = replace(experiment, trials=(*experiment.trials, shifted))
    assert workaround(worse) is None
    offer = {"en": "None can be offered", "zh": "目前没有可以推荐的方案"}[language]
    assert offer in advisory(source_of(worse), language)
    assert worse.commands is not None
    mitigation = advisory(source_of(worse), language).split("## ")[3]
    assert worse.commands.passing not in mitigation


def test_a_change_of_what_users_ask_is_no_mitigation() -> None:
    experiment = incident()
    request = next(factor for factor in experiment.factors if factor.scope == "request")
    member = Member(request.name, request.suspect, request.safe[0])
    commands = Commands("engine", "engine", (member,), 1, 4, "asks much", "asks little")
    assert workaround(replace(experiment, commands=commands)) is None


def test_a_failure_that_nothing_explains_offers_nothing() -> None:
    experiment = isolated()
    empty = replace(experiment, conclusion=replace(experiment.conclusion, findings=()))
    assert workaround(empty) is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rates_that_passes_leave_open_are_told(language: str) -> None:
    markdown = advisory(stored(), language)
    assert "95%" in markdown
    assert "28.3%" in markdown


@settings(max_examples=20, deadline=None)
@given(texts)
def test_hostile_text_adds_no_markup_to_an_advisory(text: str) -> None:
    for language in LANGUAGES:
        markdown = advisory(hostile_source(text), language)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e]", markdown)
        tokens = tokens_of(markdown)
        kinds = {token.type for token in tokens}
        assert not kinds & {
            "image",
            "html_inline",
            "html_block",
            "em_open",
            "s_open",
            "code_block",
            "link_open",
            "blockquote_open",
        }
        plain = [token.content for token in tokens if token.type == "text"]
        assert not any(re.search(r"@\w|#\d|https?:/|www\.\w", part) for part in plain)


def test_patterns_of_sentences_are_found_by_their_own_samples() -> None:
    """A sentence that an earlier pattern would take as another one is never put into the wrong words."""
    tables = chinese.load_tables()
    samples = {
        "trials1": "trials 3 and 5",
        "trials2": "trial 7",
        "names1": "a, b and c",
        "symptom1": "gibberish",
    }
    for sentence in chinese.sentences():
        slots = re.findall(r"\{(\w+)\}", sentence.en)
        filled = sentence.en.format(**{name: samples.get(name, "x1") for name in slots})
        expected = sentence.zh.format_map(
            {name: chinese.slot(name, samples.get(name, "x1")) for name in slots}
        )
        assert chinese.sentence(filled) == expected, sentence.en
    assert len(tables.rules) == len(chinese.sentences())


@pytest.mark.parametrize(
    "text", ["", "nobody knows this sentence", "x" * 5000, "two\nlines", "{0} {name} %s"]
)
def test_a_foreign_sentence_stays_in_its_words_and_is_marked(text: str) -> None:
    assert chinese.sentence(text) == (f"{text}（原文）" if text else "")
