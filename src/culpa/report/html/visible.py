"""Foreign text in a page: what would hide, reorder or act is written out, so that it shows as text."""

from culpa.redaction import visible

__all__ = ["one_line", "visible"]


def one_line(text: str, limit: int | None = None) -> str:
    """The visible text on one line, white space collapsed, cut to `limit` characters where it is longer."""
    shown = " ".join(visible(text).split())
    if limit is None or len(shown) <= limit:
        return shown
    return f"{shown[:limit].rstrip()}… (+{len(shown) - limit:,})"
