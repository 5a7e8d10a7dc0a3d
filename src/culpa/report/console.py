"""Printing through rich without the blanks that it fills lines up with."""

from io import TextIOWrapper
from typing import TextIO

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments


class _Plain(Console):
    def on_broken_pipe(self) -> None:
        """Leave the error to the caller, where rich would end the process: an engine may run, a result be unwritten."""
        raise


def plain_console(stream: TextIO) -> Console:
    """A console that interprets no markup, and survives a stream that cannot encode a character."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
    return _Plain(file=stream, markup=False, highlight=False, emoji=False)


def print_trimmed(console: Console, renderable: RenderableType) -> None:
    """Print, with no blanks at the end of a line: output that is piped or copied stays clean."""
    for line in console.render_lines(renderable, pad=False):
        console.print(Segments([*_trimmed(line), Segment.line()]), end="", soft_wrap=True)


def _trimmed(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept:
        last = kept.pop()
        text = last.text.rstrip(" ")
        if text:
            return [*kept, Segment(text, last.style)]
    return []
