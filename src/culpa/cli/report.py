"""`culpa report`: a stored run as something that can be published."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culpa.cli.errors import complain, result_printed

if TYPE_CHECKING:
    from culpa.report.source import ReportSource


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of the run.")],
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="One of html, md, issue, advisory, json."),
    ] = "html",
    language: Annotated[
        str, typer.Option("--lang", metavar="LANG", help="en or zh (html and advisory are written in both).")
    ] = "en",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Where to write it; - is standard output.",
            show_default="standard output; for html report.html in the run's folder",
        ),
    ] = None,
    include_prompts: Annotated[
        bool,
        typer.Option("--include-prompts", help="Keep your own prompts and their answers in the report."),
    ] = False,
) -> int:
    """Write a stored run as a report to publish: html, md, issue, advisory or json.

    Keys, passwords, hosts, addresses, names of users, mail addresses and your own prompts are taken out first. It reads
    the run's folder alone, and writes the same bytes every time. Exit code: 0 written, 2 bad input.
    """
    from culpa.report.formats import FORMATS, LANGUAGES
    from culpa.report.source import load
    from culpa.store import BadRunFolder

    chosen = FORMATS.get(form)
    if chosen is None:
        complain(f"--format {form}: there is no such format; there are {', '.join(FORMATS)}")
        return 2
    lang = next((one for one in LANGUAGES if one == language), None)
    if lang is None:
        complain(f"--lang {language}: reports are written in {' and '.join(LANGUAGES)}")
        return 2
    if lang not in chosen.languages:
        written = ", ".join(name for name, one in FORMATS.items() if lang in one.languages)
        complain(f"--lang {lang}: {form} is written in English only; {written} are in that language too")
        return 2
    try:
        source = load(folder, include_prompts=include_prompts)
    except BadRunFolder as error:
        complain(str(error))
        return 2
    target = folder / _page_name(lang) if out is None and form == "html" else out
    text = chosen.render(source, lang, _base(folder, target))
    if target is None or str(target) == "-":
        with result_printed():
            # In UTF-8 whatever the terminal's encoding is: it is what gets pasted.
            typer.echo(text.encode("utf-8", "replace"), nl=False)
    elif not _written(target, text):
        return 2
    else:
        typer.echo(f"{target}")
    if form == "issue":
        _say_where(source, len(text))
    return 0


def _page_name(language: str) -> str:
    from culpa.store import PAGE

    return PAGE if language == "en" else PAGE.replace(".html", f".{language}.html")


def _base(folder: Path, target: Path | None) -> str:
    """How the evidence is reached from where the report is written; empty where there is no way down to it."""
    if target is None or str(target) == "-":
        return ""
    try:
        relative = folder.resolve().relative_to(target.resolve().parent)
    except ValueError:
        return ""
    return "" if str(relative) == "." else f"{relative.as_posix()}/"


def _written(target: Path, text: str) -> bool:
    from culpa.written import why_unwritable, write_whole

    why = why_unwritable(target)
    if why:
        complain(f"can't write {target}: {why}")
        return False
    try:
        write_whole(target, text)
    except OSError as error:
        complain(f"can't write {target}: {error.strerror or error}")
        return False
    return True


def _say_where(source: "ReportSource", length: int) -> None:
    """The title and the form's address, on standard error: they are no part of what is pasted."""
    from culpa.report.issue import issue_title
    from culpa.report.issue_forms import form_for

    typer.echo(f"title: {issue_title(source)}", err=True)
    form = form_for(source.experiment.engine)
    if form.new and source.experiment.engine != "culpa-lab":
        typer.echo(f"form: {form.new}", err=True)
    typer.echo(f"{length:,} characters of the 65,536 that GitHub takes; read it before you post it", err=True)
