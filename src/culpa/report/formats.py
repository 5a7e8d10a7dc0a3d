"""The formats in which a stored run can be published, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from culpa.report.source import ReportSource

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Format:
    """A format: how it is made, the languages that it is written in, and what it is for, in a few words.

    `base` is put in front of links to the evidence, which are relative to the run's folder.
    """

    render: Callable[[ReportSource, Language, str], str]
    languages: tuple[Language, ...]
    purpose: str


def _html(source: ReportSource, language: Language, base: str) -> str:
    from culpa.report.html import page

    return page(source, language, base)


def _markdown(source: ReportSource, language: Language, base: str) -> str:
    from culpa.report.markdown import markdown_report
    from culpa.report.measured import measured, measured_table

    found = measured(source)
    compared = measured_table(found) if found is not None and found.options else ""
    return markdown_report(source.experiment, source.redactions, compared)


def _issue(source: ReportSource, language: Language, base: str) -> str:
    from culpa.report.issue import issue_report

    return issue_report(source)


def _advisory(source: ReportSource, language: Language, base: str) -> str:
    from culpa.report.advisory import advisory

    return advisory(source, language)


def _json(source: ReportSource, language: Language, base: str) -> str:
    from culpa.report.json_report import experiment_json

    return experiment_json(source.experiment, source.redactions)


FORMATS: Mapping[str, Format] = {
    "html": Format(_html, LANGUAGES, "one page with pictures, to be read and passed on"),
    "md": Format(_markdown, ("en",), "the whole report as Markdown"),
    "issue": Format(_issue, ("en",), "the engine's bug-report form, filled, ready to be pasted"),
    "advisory": Format(_advisory, LANGUAGES, "what to do about it, for those who meet the same failure"),
    "json": Format(_json, ("en",), "the whole experiment for programs"),
}
