"""The page: a template filled with what the run holds, its style and script inside, named by their hashes."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from culpa.report.html.conclusion import conclusion
from culpa.report.html.labels import Labels, Language
from culpa.report.html.pictures import pictures
from culpa.report.html.summary import summary
from culpa.report.html.trials import trial_views
from culpa.report.html.visible import visible
from culpa.report.source import ReportSource

_LINE_WIDTH = 2000


def page(source: ReportSource, language: Language = "en", base: str = "") -> str:
    """The whole page. It depends on nothing but its arguments: the same run gives the same bytes.

    `base` is the path that leads from the page's folder to the run's, with a slash at its end: empty where the page is
    written into that folder. All texts of the run are taken to be redacted; nothing in them becomes markup.
    """
    labels = Labels(language)
    style, script = _asset("page.css"), _asset("page.js")
    pictured = pictures(source, labels)
    context: dict[str, Any] = {
        "t": labels,
        "language": language,
        "experiment": source.experiment,
        "policy": _policy(style, script),
        "style": Markup(style),
        "script": Markup(script),
        "trials": trial_views(source, labels, base),
        **pictured,
        **conclusion(source, labels),
        **summary(source.experiment, labels),
    }
    context["contents"] = _contents(context, labels)
    return _templates().get_template("html/page.html.j2").render(context).rstrip("\n") + "\n"


@cache
def _templates() -> Environment:
    """Templates in which every value is made visible and escaped unless it is markup of our own."""
    templates = Environment(
        loader=PackageLoader("culpa.report", "templates"),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["line"] = _log_line
    return templates


def _finalize(value: object) -> object:
    return value if isinstance(value, Markup) else visible(str(value))


def _log_line(text: str) -> str:
    """A line of a log, cut where it is very long."""
    shown = visible(text)
    return shown if len(shown) <= _LINE_WIDTH else f"{shown[:_LINE_WIDTH]}… (+{len(shown) - _LINE_WIDTH:,})"


@cache
def _asset(name: str) -> str:
    return resources.files("culpa.report").joinpath("templates", "html", name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """What the page may do: nothing but its own style and script."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


_SECTIONS = (
    ("matrix", "matrix-section", "matrix"),
    ("belief", "belief-section", "belief"),
    ("timeline", "timeline-section", "timeline"),
    ("excerpt", "root-section", "root_event"),
    ("layout", "layout-section", "layout"),
    ("commands", "commands-section", "commands"),
    ("smallest", "smallest-section", "smallest"),
    ("inside", "inside-section", "inside"),
    ("", "conclusion-section", "conclusion"),
    ("measured", "mitigation-section", "mitigation"),
    ("rates", "rates-section", "rates"),
    ("not_excluded", "open-section", "not_excluded"),
    ("factors", "factors-section", "factors"),
    ("environment", "environment-section", "environment"),
    ("", "trials-section", "every_trial"),
)


def _contents(context: dict[str, Any], labels: Labels) -> list[tuple[str, str]]:
    """Anchor and name of the sections that the page has."""
    return [(anchor, labels(name)) for needs, anchor, name in _SECTIONS if not needs or context[needs]]
