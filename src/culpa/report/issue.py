"""A bug report that fills the form of the engine's project, ready to be pasted."""

from culpa.report import words
from culpa.report.clean import line
from culpa.report.issue_blocks import Blocks
from culpa.report.issue_forms import Form, form_for
from culpa.report.issue_limits import ROOM, ever_less
from culpa.report.markup import text, tidy
from culpa.report.source import ReportSource

_LONGEST_TITLE = 200


def issue_report(source: ReportSource) -> str:
    """The body of the issue as Markdown, below GitHub's limit; its title stands in a comment at the head."""
    form = form_for(source.experiment.engine)
    body = ""
    for limits in ever_less():
        blocks = Blocks(source, form, limits)
        body = _body(source, form, blocks)
        if len(body) <= ROOM:
            return body
    # Within the tightest limits only names of factors are left that could be so long.
    return f"{body[:ROOM].rsplit(chr(10), 1)[0]}\n\n</details>\n\nCut to GitHub's limit.\n"


def issue_title(source: ReportSource) -> str:
    """The title that the form would have, in one line."""
    experiment = source.experiment
    form = form_for(experiment.engine)
    if experiment.hunted is None:
        return f"{form.title}{words.engine(experiment)}: no failure seen"
    where = f" in {words.place(experiment.hunted)}" if experiment.hunted.process else ""
    findings = experiment.conclusion.findings
    needs = f" with {words.suspects(findings[0].members)}" if findings else ""
    title = f"{form.title}{words.engine(experiment)}: {words.symptom(experiment.hunted)}{where}{needs}"
    return line(title)[:_LONGEST_TITLE]


def _body(source: ReportSource, form: Form, blocks: Blocks) -> str:
    parts = [f"<!-- Title: {_in_comment(issue_title(source))} -->", ""]
    if form.new and source.experiment.engine != "culpa-lab":
        parts += [f"<!-- Form: {form.new} -->", ""]
    for section in form.sections:
        rendered = [shown for name in section.blocks if (shown := blocks.render(name))]
        if rendered:
            parts += [f"### {section.heading}", "", "\n\n".join(rendered), ""]
    if blocks.cut:
        parts += [f"Cut to fit: {text('; '.join(blocks.cut))}. The rest lies in the folder of the run.", ""]
    return tidy("\n".join(parts))


def _in_comment(title: str) -> str:
    """Text that can't end a comment of HTML."""
    return title.replace("--", "- -").replace(">", "›").replace("<", "‹")
