"""A picture as SVG elements. Colours and sizes of text come from the page's style sheet by class."""

from html import escape

from markupsafe import Markup

from culpa.report.html.visible import one_line


class Svg:
    """Elements in the order of drawing. All lengths are units of the view box."""

    def __init__(self, width: float, label: str, title: str, description: str, *, kind: str = "") -> None:
        self.width = width
        self._label = label
        self._title = title
        self._description = description
        self._kind = kind
        self._parts: list[str] = []
        self._links: list[str] = []

    def text(
        self, x: float, y: float, words: str, kind: str = "", *, anchor: str = "", limit: int | None = None
    ) -> None:
        """Words on one line, beginning, ending (`end`) or centred (`middle`) at x."""
        place = f' text-anchor="{anchor}"' if anchor else ""
        shown = escape(one_line(words, limit))
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{_kind(kind)}{place}>{shown}</text>')

    def box(self, x: float, y: float, width: float, height: float, kind: str, *, radius: float = 0) -> None:
        """A rectangle."""
        corner = f' rx="{radius:g}"' if radius else ""
        size = f'width="{max(0.0, width):g}" height="{max(0.0, height):g}"'
        self._parts.append(f'<rect x="{x:g}" y="{y:g}" {size}{corner}{_kind(kind)}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """A straight line."""
        self._parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"{_kind(kind)}/>')

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """A circle."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}"{_kind(kind)}/>')

    def path(self, data: str, kind: str, *, opacity: float | None = None) -> None:
        """A path in SVG's own words; nothing if it is empty."""
        if data:
            faded = f' opacity="{opacity:.2f}"' if opacity is not None else ""
            self._parts.append(f'<path d="{data}"{_kind(kind)}{faded}/>')

    def link(self, target: str, tip: str, x: float, y: float, width: float, height: float) -> None:
        """A place to click on, with a tip. The table beside the picture has the same links for the keyboard."""
        self._links.append(
            f'<a href="{escape(target)}" tabindex="-1"><title>{escape(one_line(tip, 300))}</title>'
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="hit"/></a>'
        )

    def finished(self, height: float) -> Markup:
        """The picture, with its name and description for who can't see it; links lie over it, as it is one image."""
        body = "".join(self._parts)
        label = escape(self._label)
        box = f'viewBox="0 0 {self.width:g} {height:g}" width="{self.width:g}" height="{height:g}"'
        links = (
            f'<svg class="links" {box} aria-hidden="true">{"".join(self._links)}</svg>' if self._links else ""
        )
        return Markup(
            f'<div class="picture {escape(self._kind)}">'
            f'<svg class="chart" {box} role="img" aria-labelledby="{label}-t {label}-d">'
            f'<title id="{label}-t">{escape(one_line(self._title))}</title>'
            f'<desc id="{label}-d">{escape(one_line(self._description))}</desc>{body}</svg>{links}</div>'
        )

    def decoration(self, height: float) -> Markup:
        """The picture where the words beside it say the same: hidden from who hears the page."""
        body = "".join(self._parts)
        return Markup(
            f'<svg class="{escape(self._kind)}" viewBox="0 0 {self.width:g} {height:g}" width="{self.width:g}" '
            f'height="{height:g}" aria-hidden="true">{body}</svg>'
        )


def square(x: float, y: float, side: float) -> str:
    """A square around a point, as a path."""
    half = side / 2
    return f"M{x - half:g} {y - half:g}h{side:g}v{side:g}h{-side:g}z"


def diamond(x: float, y: float, radius: float) -> str:
    """A square on its corner around a point, as a path."""
    return f"M{x:g} {y - radius:g}l{radius:g} {radius:g}l{-radius:g} {radius:g}l{-radius:g} {-radius:g}z"


def disc(x: float, y: float, radius: float) -> str:
    """A circle around a point, as a path."""
    across = 2 * radius
    return (
        f"M{x - radius:g} {y:g}a{radius:g} {radius:g} 0 1 0 {across:g} 0"
        f"a{radius:g} {radius:g} 0 1 0 {-across:g} 0z"
    )


def cross(x: float, y: float, radius: float) -> str:
    """Two crossing strokes around a point, as a path."""
    across = 2 * radius
    return f"M{x - radius:g} {y - radius:g}l{across:g} {across:g}M{x - radius:g} {y + radius:g}l{across:g} {-across:g}"


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
