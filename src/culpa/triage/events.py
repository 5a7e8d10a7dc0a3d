"""What triage keeps of a log: events, not lines."""

from dataclasses import dataclass, field
from enum import IntEnum

from culpa.triage.clock import Moment
from culpa.triage.lines import LogLine, Ranks
from culpa.triage.tables import EventRole

#: What is kept of a line that says what went wrong.
MAX_TEXT = 2000


class Weight(IntEnum):
    """How much a cause proves by itself."""

    REMARK = 0  # a line that says of itself that it is no error, or that it was dealt with
    ERROR_LINE = 1  # an error line, or a traceback that the process may have survived
    EXCEPTION = 2  # a traceback that may have ended its process
    FATAL = 3  # the engine can only end after it


@dataclass(slots=True)
class Event:
    """Something that a log says of a failure.

    `event` is the normalised text, `text` that of the line. `header` is the line that introduced the
    traceback, `related` are lines that say the same; `progress` are counts by which ranks can be compared,
    `repeated` how many processes Ray has put into one line. Mutable only while the log is read.
    """

    line: int
    text: str
    event: str
    symptom: str
    role: EventRole
    weight: Weight
    process: str | None
    pid: int | None
    kind: str | None
    ranks: Ranks
    time: str | None
    moment: Moment
    section: int
    before_ready: bool
    explains: tuple[str, ...] = ()
    header: int | None = None
    asynchronous: bool = False
    survivable: bool = False
    exit_code: int | None = None
    worker: int | None = None
    dead_rank: int | None = None
    progress: dict[str, int] = field(default_factory=dict)
    repeated: int = 1
    quoted: str | None = None
    exception: str | None = None
    related: list[int] = field(default_factory=list)

    @property
    def fatal(self) -> bool:
        """Whether the engine can only end after this."""
        return self.role == "cause" and self.weight is Weight.FATAL


def event_of(
    line: LogLine, *, text: str, event: str, symptom: str, role: EventRole, weight: Weight, before_ready: bool
) -> Event:
    """An event that takes its place and time from a line."""
    return Event(
        line=line.number,
        text=text[:MAX_TEXT],
        event=event,
        symptom=symptom,
        role=role,
        weight=weight,
        process=line.process,
        pid=line.pid,
        kind=line.role,
        ranks=line.ranks,
        time=line.time,
        moment=line.moment,
        section=line.section,
        before_ready=before_ready,
        repeated=line.repeated,
    )
