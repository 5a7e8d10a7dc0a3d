"""The calibration plot as an SVG: claimed probability against the share that was right, with 95% intervals."""

from collections.abc import Sequence

from benchmarks.search.calibration import Bin

_SIZE, _MARGIN = 420, 56
_INK, _FAINT, _MOMENT, _CLAIM = "#333333", "#bbbbbb", "#1f5fa8", "#b3431e"


def _x(share: float) -> float:
    return round(_MARGIN + share * (_SIZE - 2 * _MARGIN), 1)


def _y(share: float) -> float:
    return round(_SIZE - _x(share), 1)


def calibration_svg(moments: Sequence[Bin], claims: Bin | None, title: str) -> str:
    """A picture of its own: moments as circles, the claims at the end as a diamond, the diagonal for reference."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_SIZE} {_SIZE}" '
            f'font-family="sans-serif" font-size="12" fill="{_INK}">',
            f"<title>{title}</title>",
            f'<rect width="{_SIZE}" height="{_SIZE}" fill="#ffffff"/>',
            *_axes(title),
            f'<line x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}" stroke="{_FAINT}" stroke-dasharray="4 4"/>',
            *(part for one in moments for part in _point(one, _MOMENT)),
            *([] if claims is None else _point(claims, _CLAIM, diamond=True)),
            *_key(claims is not None),
            "</svg>\n",
        ]
    )


def _axes(title: str) -> list[str]:
    parts = [f'<text x="{_SIZE / 2}" y="22" text-anchor="middle">{title}</text>']
    for step in range(6):
        share = step / 5
        parts += [
            f'<line x1="{_x(share)}" y1="{_y(0)}" x2="{_x(share)}" y2="{_y(0) + 5}" stroke="{_INK}"/>',
            f'<text x="{_x(share)}" y="{_y(0) + 18}" text-anchor="middle">{share:g}</text>',
            f'<line x1="{_x(0) - 5}" y1="{_y(share)}" x2="{_x(0)}" y2="{_y(share)}" stroke="{_INK}"/>',
            f'<text x="{_x(0) - 8}" y="{_y(share) + 4}" text-anchor="end">{share:g}</text>',
        ]
    middle = _SIZE / 2
    return [
        *parts,
        f'<path d="M{_x(0)} {_y(1)}V{_y(0)}H{_x(1)}" fill="none" stroke="{_INK}"/>',
        f'<text x="{middle}" y="{_SIZE - 14}" text-anchor="middle">claimed probability</text>',
        f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">share right</text>',
    ]


def _point(one: Bin, colour: str, *, diamond: bool = False) -> list[str]:
    low, high = one.interval
    x, y = _x(one.claimed), _y(one.measured)
    shape = (
        f'<path d="M{x} {y - 6}l6 6l-6 6l-6 -6z" fill="{colour}"/>'
        if diamond
        else f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'
    )
    return [
        f'<line x1="{x}" y1="{_y(low)}" x2="{x}" y2="{_y(high)}" stroke="{colour}" stroke-width="2"/>',
        shape,
    ]


def _key(claims: bool) -> list[str]:
    x, y = _x(0.04), _y(0.96)
    parts = [
        f'<circle cx="{x}" cy="{y}" r="4" fill="{_MOMENT}"/>',
        f'<text x="{x + 10}" y="{y + 4}">likeliest set at a random moment</text>',
    ]
    if claims:
        parts += [
            f'<path d="M{x} {y + 12}l6 6l-6 6l-6 -6z" fill="{_CLAIM}"/>',
            f'<text x="{x + 10}" y="{y + 22}">claims at the end</text>',
        ]
    return parts
