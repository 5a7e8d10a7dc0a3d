"""How often each configuration failed, with the interval of rates that agrees with that."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from culpa.model import Count, Experiment, Outcome, Trial
from culpa.report import words
from culpa.report.arms import ArmRow, ArmTable, arm_table
from culpa.report.html.svg import Svg
from culpa.search.exposure import excluded_rate, rate_interval

_WIDTH, _HEIGHT = 150.0, 18.0


@dataclass(frozen=True, slots=True)
class Rate:
    """One configuration: the row of the table of arms, its count, and the interval at 95%."""

    row: ArmRow
    trials: tuple[Trial, ...]
    count: Count
    low: float
    high: float
    picture: Markup

    @property
    def interval(self) -> str:
        """The interval in words."""
        if not self.count.trials:
            return ""
        return f"{words.percent(self.low)} – {words.percent(self.high)}"


def rates(experiment: Experiment) -> tuple[ArmTable, list[Rate]]:
    """The table of arms and the rate of each of its rows."""
    table = arm_table(experiment)
    trials = {trial.id: trial for trial in experiment.trials}
    return table, [_rate(row, [trials[number] for number in row.trials]) for row in table.rows]


def _rate(row: ArmRow, trials: Sequence[Trial]) -> Rate:
    judged = [trial for trial in trials if trial.purpose != "reference"]
    failed = sum(trial.outcome is Outcome.FAIL for trial in judged)
    tried = failed + sum(trial.outcome is Outcome.PASS for trial in judged)
    count = Count(failed, tried)
    low, high = rate_interval(count)
    if tried and not failed:
        # As everywhere in culpa: what passes exclude is the one-sided bound.
        high = excluded_rate(tried)
    return Rate(row, tuple(trials), count, low, high, _picture(count, low, high))


def _picture(count: Count, low: float, high: float) -> Markup:
    """A dot at the rate seen and a bar over the interval, on an axis from 0 to 100%."""
    if not count.trials:
        return Markup("")
    drawing = Svg(_WIDTH, "", "", "", kind="interval")
    middle = _HEIGHT / 2
    room = _WIDTH - 12
    drawing.line(6, middle, 6 + room, middle, "rule")
    for share in (0.0, 0.5, 1.0):
        drawing.line(6 + share * room, middle - 4, 6 + share * room, middle + 4, "rule")
    rate = count.failed / count.trials
    kind = "fail" if count.failed else "pass"
    drawing.box(6 + low * room, middle - 2.5, (high - low) * room, 5, f"range {kind}", radius=2.5)
    drawing.circle(6 + rate * room, middle, 4.5, f"dot {kind}")
    return drawing.decoration(_HEIGHT)
