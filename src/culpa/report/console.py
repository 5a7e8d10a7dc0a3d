"""Printing through rich without the blanks that it fills lines up with."""

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments


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
