"""Markdown that holds foreign text: nothing in it becomes markup, a link, a mention or a reference."""

import re
from collections.abc import Iterable, Sequence

from culpa.report import clean


class Markdown(str):
    """Text that is Markdown already. All other text is escaped when it is put into a report."""

    __slots__ = ()


# What GitHub and others turn into a link, a mention or a reference even where nothing is marked up.
_ACTIVE = re.compile(r"(?:https?|ftp|mailto|xmpp):\S+|www\.\S+|\S*@\w\S*|\S*#\d+\S*|\bGH-\d+", re.IGNORECASE)
_SPECIAL = re.compile(r"[\\`*\[\]~$|]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|!(?=\[)")
_BLOCK_START = re.compile(r"^(?:[#+=:-]|\d+(?=[.)](?:\s|$)))")
_TAG = re.compile(r"<(?!\s|\d|=)|(?<!\s)>|^>|>(?![\s\d=])|&(?=[#\w])")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_BACKTICKS = re.compile(r"`+")
_FENCE = re.compile(r"^`{3,}")
_ADDRESS = re.compile(r"^https://[\w./#-]{1,300}$", re.ASCII)


def text(raw: str) -> Markdown:
    """A sentence, for anywhere in a line of Markdown: also inside a table or at the start of a list item."""
    cleaned = clean.line(raw)
    parts: list[str] = []
    end = 0
    for match in _ACTIVE.finditer(cleaned):
        parts += [_escaped(cleaned[end : match.start()]), cell(match.group())]
        end = match.end()
    joined = "".join([*parts, _escaped(cleaned[end:])])
    return Markdown(_BLOCK_START.sub(_escape_start, joined))


def code(raw: str, limit: int | None = None) -> Markdown:
    """Text as a code span, for anywhere but a table."""
    return Markdown(_span(clean.line(raw, limit)))


def cell(raw: str, limit: int | None = None) -> Markdown:
    """Text as a code span inside a table, where a pipe ends the cell even within code."""
    cleaned = clean.line(raw, limit)
    return Markdown(_span(cleaned).replace("|", "\\|") if cleaned else "")


def fence(raw: str, language: str = "") -> Markdown:
    """Text as a fenced block; the fence is longer than any run of backticks in it."""
    body = clean.block(raw)
    longest = max((len(run) for run in _BACKTICKS.findall(body)), default=0)
    marks = "`" * max(3, longest + 1)
    return Markdown(f"{marks}{language}\n{body}\n{marks}")


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[str] = ()) -> Markdown:
    """A table. Cells that are not Markdown yet are escaped; columns in `numeric` are set to the right."""
    rules = ["---:" if name in numeric else "---" for name in header]
    lines = [[_in_cell(name) for name in header], rules, *([_in_cell(part) for part in row] for row in rows)]
    return Markdown("\n".join("| " + " | ".join(cells) + " |" for cells in lines))


def link(url: str, name: str = "") -> Markdown:
    """An address that can be followed, under a name of culpa's own if there is one; anything else as text."""
    if not _ADDRESS.match(url):
        return text(name or url)
    return Markdown(f"[{name}]({url})" if name else f"<{url}>")


def tidy(markdown: str) -> str:
    """Markdown without two blank lines in a row, but for those in fenced blocks, and with one line end at its end."""
    kept: list[str] = []
    fence_marks = ""
    for one in markdown.split("\n"):
        if fence_marks:
            fence_marks = "" if one.strip() == fence_marks else fence_marks
        elif (match := _FENCE.match(one)) is not None:
            fence_marks = match.group()
        elif not one.strip() and kept and not kept[-1]:
            continue
        kept.append(one)
    return "\n".join(kept).strip("\n") + "\n"


def finalize(value: object) -> str:
    """What a template prints for a value: Markdown as it is, all else escaped."""
    return value if isinstance(value, Markdown) else text(str(value))


def _in_cell(part: str) -> str:
    return part if isinstance(part, Markdown) else text(part)


def _escaped(plain: str) -> str:
    escaped = _SPECIAL.sub(lambda match: "\\" + match.group(), plain)
    return _TAG.sub(lambda match: _ENTITIES[match.group()], escaped)


def _escape_start(match: re.Match[str]) -> str:
    start = match.group()
    return f"{start}\\" if start[0].isdigit() else f"\\{start}"


def _span(cleaned: str) -> str:
    if not cleaned:
        return ""
    longest = max((len(run) for run in _BACKTICKS.findall(cleaned)), default=0)
    marks = "`" * (longest + 1)
    pad = " " if cleaned[0] == "`" or cleaned[-1] == "`" else ""
    return f"{marks}{pad}{cleaned}{pad}{marks}"
