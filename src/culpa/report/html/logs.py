"""The lines of a trial's logs as rows: who spoke, when, and the part that each line plays."""

from collections.abc import Sequence
from dataclasses import dataclass

from culpa.report.excerpts import LogExcerpt, Role
from culpa.triage.clock import yearless
from culpa.triage.lines import LineParser
from culpa.triage.tables import load_tables

KERNEL = "kernel"
_BAD = frozenset({"ERROR", "FATAL", "CRITICAL"})


@dataclass(frozen=True, slots=True)
class LogRow:
    """A line of a log. `number` counts within its file, `log` is the name of that; `said` is the text without what
    stands in front of it, `speaker` the process as the log prints it, `seconds` a reading of the clock that only
    serves to compare rows. `skipped` says how many lines were left out in front of it."""

    log: str
    number: int
    text: str
    said: str = ""
    role: Role = ""
    speaker: str = ""
    time: str = ""
    seconds: float | None = None
    bad: bool = False
    skipped: int = 0


def read_rows(log: LogExcerpt) -> list[LogRow]:
    """The rows of one log."""
    parser = LineParser(load_tables("generic"))
    rows: list[LogRow] = []
    last = 0
    for line in log.lines:
        parsed = next(iter(parser.parse(line.number, line.text)), None)
        seconds = None
        if parsed is not None:
            moment = parsed.moment
            seconds = yearless(moment.stamp) if moment.stamp is not None else moment.second
        speaker = (parsed.process if parsed is not None else None) or line.rank or line.process
        rows.append(
            LogRow(
                log=log.name,
                number=line.number,
                text=line.text,
                said=parsed.text if parsed is not None else line.text,
                role=line.role,
                speaker=KERNEL if line.process == KERNEL else speaker,
                time=line.time,
                seconds=seconds,
                bad=parsed is not None and parsed.level in _BAD,
                skipped=line.number - last - 1,
            )
        )
        last = line.number
    return rows


def marked_rows(logs: Sequence[LogExcerpt]) -> list[LogRow]:
    """The rows of all logs of a trial."""
    return [row for log in logs for row in read_rows(log)]


def process_name(speaker: str) -> tuple[str, str]:
    """A speaker as name and process id; the id is empty where none is printed."""
    name, _, pid = speaker.rpartition(" pid=")
    return (name, pid) if name and pid.isdigit() else (speaker, "")
