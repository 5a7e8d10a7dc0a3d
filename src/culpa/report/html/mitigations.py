"""What keeps the failure away for the time being, with its price: a table of ratios, and a command for each."""

from collections.abc import Sequence
from math import log
from typing import Any

from markupsafe import Markup

from culpa.model.mitigation import METRICS, MORE_IS_BETTER, Measured, Metric, Mitigation, Option
from culpa.report.html.labels import Labels
from culpa.report.html.links import safe_link
from culpa.report.html.svg import Svg
from culpa.report.mitigation import command_lines, parse_mitigation, ratio_text, sentences, value_text
from culpa.report.words import listing

_WIDTH, _HEIGHT = 110.0, 14.0
#: The axis of a ratio goes from a quarter to four times, in equal steps for equal factors.
_END = log(4.0)


def mitigations(document: Any, labels: Labels) -> dict[str, Any] | None:
    """The comparison for the page; None where nothing was measured."""
    found = parse_mitigation(document)
    if found is None:
        return None
    return {
        "workload": labels("mitigation_workload", repeats=found.repeats, workload=found.workload),
        "header": [labels(f"metric_{metric}") for metric in METRICS],
        "failing": [_cell(metric, found.failing) for metric in METRICS],
        "options": [_option(option, found) for option in found.options],
        "not_offered": [
            f"{listing(f'{name}={level}' for name, _, level in one.changes)}: {one.reason}"
            for one in found.not_offered
        ],
        "caveats": found.caveats,
        "interrupted": found.interrupted,
    }


def _option(option: Option, found: Mitigation) -> dict[str, Any]:
    return {
        "name": option.name,
        "cells": [_cell(metric, option.measured) for metric in METRICS],
        "cost": f"{option.cost:.2f}" if option.cost is not None else "–",
        "sentences": sentences(option),
        "links": [link for one in option.workarounds if (link := safe_link(one.url))],
        "command": [(False, "\n".join(command_lines(option, found)))],
    }


def _cell(metric: Metric, measured: Sequence[Measured]) -> dict[str, Any]:
    one = next((one for one in measured if one.metric == metric), None)
    if one is None:
        return {"value": "–", "ratio": "", "picture": ""}
    return {
        "value": value_text(metric, one.median),
        "ratio": ratio_text(one).replace("x", "× ", 1),
        "picture": _picture(one),
    }


def _picture(one: Measured) -> Markup:
    """A dot at the ratio and a bar over its interval, on a logarithmic axis with 1 in the middle."""
    if one.ratio is None or one.ratio <= 0:
        return Markup("")
    drawing = Svg(_WIDTH, "", "", "", kind="interval")
    middle = _HEIGHT / 2
    drawing.line(4, middle, _WIDTH - 4, middle, "rule")
    drawing.line(_WIDTH / 2, 1, _WIDTH / 2, _HEIGHT - 1, "axis")
    better = (one.ratio >= 1) == (one.metric in MORE_IS_BETTER)
    low, high = one.low or one.ratio, one.high or one.ratio
    # What may as well be no difference at all has no colour.
    same = low <= 1.02 and high >= 0.98
    kind = "plain" if same else "pass" if better else "fail"
    if one.low is not None and one.high is not None and one.low > 0:
        left, right = _x(one.low), _x(one.high)
        drawing.box(left, middle - 2.5, max(1.0, right - left), 5, f"range {kind}", radius=2.5)
    drawing.circle(_x(one.ratio), middle, 4, f"dot {kind}")
    return drawing.decoration(_HEIGHT)


def _x(ratio: float) -> float:
    share = max(-1.0, min(1.0, log(ratio) / _END))
    return _WIDTH / 2 + share * (_WIDTH / 2 - 6)
