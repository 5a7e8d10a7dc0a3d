"""What `culpa mitigate` measured for a run, as a table that the published reports share."""

from culpa.model.mitigation import METRICS, Measured, Metric, Mitigation
from culpa.report.markup import Markdown, code, table
from culpa.report.mitigation import parse_mitigation, ratio_text, value_text
from culpa.report.source import ReportSource

TITLES: dict[str, dict[str, str]] = {
    "en": {
        "number": "",
        "change": "change of the launch",
        "throughput": "tokens/s",
        "first_token": "first token",
        "inter_token": "next token",
        "capacity": "KV tokens",
        "requests": "requests without the failure",
        "failing": "the failing launch",
    },
    "zh": {
        "number": "",
        "change": "启动配置改动",
        "throughput": "tokens/s",
        "first_token": "首 token 延迟",
        "inter_token": "token 间延迟",
        "capacity": "KV 容量（tokens）",
        "requests": "通过的请求数",
        "failing": "出故障的原配置",
    },
}


def measured(source: ReportSource) -> Mitigation | None:
    """The comparison that the run holds; None where it holds none, or one of another version."""
    return parse_mitigation(source.mitigation)


def measured_table(found: Mitigation, language: str = "en") -> Markdown:
    """A row for the failing launch and one for each configuration, cheapest first; ratios with their 95% intervals."""
    titles = TITLES[language]
    header = [titles["change"], *(titles[metric] for metric in METRICS), titles["requests"]]
    rows = [[titles["failing"], *_cells(found.failing), ""]]
    rows += [
        [
            Markdown(", ".join(code(f"{name}={level}") for name, _, level in option.changes)),
            *_cells(option.measured),
            f"{option.exposure.requests:,}",
        ]
        for option in found.options
    ]
    return table(header, rows, tuple(header[1:]))


def measured_section(source: ReportSource) -> str:
    """The table with its heading and what has to be said of it; empty where nothing was measured."""
    found = measured(source)
    if found is None or not found.options:
        return ""
    note = (
        "Contrasts that pass with this exposure, measured side by side on the same requests; ratios to the failing "
        "launch with their 95% intervals. None of them takes the cause away."
    )
    return "\n".join(["#### What keeps it away for the time being", "", measured_table(found), "", note])


def _cells(values: tuple[Measured, ...]) -> list[str]:
    by_metric = {one.metric: one for one in values}
    return [_cell(metric, by_metric.get(metric)) for metric in METRICS]


def _cell(metric: Metric, one: Measured | None) -> str:
    return "" if one is None else " ".join(filter(None, (value_text(metric, one.median), ratio_text(one))))
