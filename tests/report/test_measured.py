"""What was measured and what was seen from inside, in the reports that are published."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from tests.report.cases import incident
from tests.report.guard_cases import located, watched_in_vain
from tests.report.papers import source_of
from tests.report.stored_run import store
from tests.report.test_markdown import HOSTILE, tokens_of

from culpa.guard import explanations
from culpa.model.mitigation import Exposure, Measured, Mitigation, NotOffered, Option, Workaround
from culpa.report import chinese
from culpa.report.advisory import advisory
from culpa.report.formats import FORMATS
from culpa.report.issue import issue_report
from culpa.report.measured import measured
from culpa.report.mitigation import mitigation_json
from culpa.report.source import ReportSource, load


def comparison(text: str = "execution=eager") -> Mitigation:
    exposure = Exposure(2, 18, 0.776, 0.153)
    price = (Measured("throughput", 36.9, 30.0, 40.0, 2, 0.41, 0.23, 0.72),)
    return Mitigation(
        culpa_version="0.1.0",
        started="2026-01-01T12:00:00+00:00",
        seconds=60.0,
        command="vllm serve m",
        workload=text,
        repeats=2,
        failing=(Measured("throughput", 91.5, 59.4, 117.0, 2),),
        options=(
            Option(
                text,
                (("execution", "graphs", text),),
                "vllm serve m --enforce-eager",
                exposure,
                price,
                2.4,
                (Workaround("vllm-63505", "https://github.com/vllm-project/vllm/issues/63505", "closed"),),
                "passed",
            ),
        ),
        not_offered=(
            NotOffered((("prefix_caching", "on", "off"),), "symptom_shift", text),
            NotOffered((("pipeline_partition", "23,23,18", "24,24,16"),), "failed", text),
        ),
        caveats=(text,),
    )


def with_comparison(found: Mitigation) -> ReportSource:
    document = {"schema": "culpa.mitigation/1", **json.loads(json.dumps(asdict(found)))}
    return replace(source_of(incident()), mitigation=document)


def test_what_was_measured_is_read_from_the_run(tmp_path: Path) -> None:
    folder = store(tmp_path / "run", incident(), files={"mitigation.json": mitigation_json(comparison())})
    assert measured(load(folder)) == comparison()


@pytest.mark.parametrize("form", ["md", "issue", "advisory"])
def test_measured_ratios_stand_in_every_format(form: str) -> None:
    text = FORMATS[form].render(with_comparison(comparison()), "en", "")
    assert "36.9 x0.41 (0.23-0.72)" in text
    assert "the failing launch" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_cheapest_measured_configuration_is_offered(language: str) -> None:
    text = advisory(with_comparison(comparison()), language)
    mitigation = text.split("\n## ")[3]
    assert "vllm serve m --enforce-eager" in mitigation
    assert "15.3%" in mitigation
    assert "<https://github.com/vllm-project/vllm/issues/63505>" in mitigation


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_offered_where_measuring_found_nothing(language: str) -> None:
    source = with_comparison(replace(comparison(), options=()))
    assert "--enforce-eager" not in advisory(source, language).split("\n## ")[3]


@pytest.mark.parametrize(
    "document", [{}, {"schema": "culpa.mitigation/9"}, [], "x", {"schema": "culpa.mitigation/1"}]
)
def test_a_document_of_another_version_is_left_alone(document: object) -> None:
    source = replace(source_of(incident()), mitigation=document)
    assert measured(source) is None
    assert "What keeps it away" not in issue_report(source)


def test_the_place_where_a_failure_begins_is_told() -> None:
    source = source_of(located())
    for text in (issue_report(source), advisory(source, "en"), advisory(source, "zh")):
        assert "`captured_pointer_stale`" in text
        assert "layer model.layers.24.linear_attn" in text
    assert "(located, probability" in issue_report(source)


def test_what_kinds_of_violations_mean_is_told_in_chinese() -> None:
    kinds = explanations().values()
    for kind in kinds:
        assert chinese.known(kind.meaning), kind.meaning
    for found in {one for kind in kinds for one in (*kind.supports, *kind.rules_out)}:
        assert chinese.known(found.text), found.text


def test_a_guard_that_saw_nothing_proves_nothing() -> None:
    for text in (issue_report(source_of(watched_in_vain())), advisory(source_of(watched_in_vain()), "en")):
        assert "does not prove the bindings right" in text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_comparison_adds_no_markup(text: str) -> None:
    source = with_comparison(comparison(text))
    for form in ("md", "issue", "advisory"):
        kinds = {token.type for token in tokens_of(FORMATS[form].render(source, "en", ""))}
        assert not kinds & {"image", "html_inline", "em_open", "s_open", "code_block"}
