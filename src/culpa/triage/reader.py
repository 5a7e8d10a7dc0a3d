"""Reads a log as it grows and keeps the events in it."""

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace

from culpa.model import Incident, XidSeen
from culpa.triage.context import Context
from culpa.triage.details import bounded, details
from culpa.triage.diagnosis import diagnose, without_stale, xids_alone
from culpa.triage.events import MAX_TEXT, Event, Weight, event_of
from culpa.triage.facts import Facts
from culpa.triage.judgement import judge
from culpa.triage.last_words import LastWords
from culpa.triage.levels import below_error
from culpa.triage.lines import LineParser, LogLine
from culpa.triage.normal import normalise
from culpa.triage.tables import SignatureRule, Tables, load_tables
from culpa.triage.tracebacks import Raised, TracebackReader

_ASYNC_NOTICE = "CUDA kernel errors might be asynchronously reported"
_ERROR_LEVELS = frozenset({"ERROR", "CRITICAL", "FATAL"})
_BARE_LEVEL = re.compile(
    r"^\[?(?:ERROR|FATAL|CRITICAL|error|fatal|Error|Fatal error)\b ?[:\]-]|^[EF]\d{4} \d\d:"
)
#: Exceptions that programs raise and catch as a matter of course: what is raised while one is handled tells
#: more.
_EVERYDAY = frozenset(
    {
        "KeyError", "AttributeError", "ImportError", "ModuleNotFoundError", "StopIteration",
        "StopAsyncIteration", "Empty", "CancelledError", "TimeoutError", "LookupError", "IndexError",
        "FileNotFoundError", "HTTPError", "EntryNotFoundError", "LocalEntryNotFoundError",
        "InvalidStateError", "Again",
    }
)  # fmt: skip
#: How a program is told to end: no failure of its own.
_ENDINGS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "CancelledError"})
_CHILD = re.compile(r"^Process (?:(EngineCore)|VllmWorker)[\w-]{0,40}:$")
#: pydantic says what is wrong on the lines after the exception's own.
_UNSAID = re.compile(r"\d{1,4} validation errors? for ")
_INTERNALS = re.compile(r"\s+(?:For further information visit|File )")
_INTERNALS_TAIL = re.compile(r" \[type=.{0,2000}$")
#: How a program says that it goes on in another way.
_DEALT_WITH = re.compile(r"\b(?:retrying|will retry|falling back|fallback|caught|recovered)\b", re.IGNORECASE)
_DYING_KINDS = frozenset({"worker", "engine_core"})
# Of one kind of event that repeats, and in all: enough to judge by, and a bound on memory.
_MAX_ALIKE = 40
_MAX_EVENTS = 20_000
_MAX_MESSAGE_LINES = 40

#: A bare line that was cut is at least so long; more is not looked at.
_SEAM, _SEAM_WITHIN = 20, 1000


class LogReader:
    """Follows the text of one engine ("vllm", "llamacpp" or "generic") and judges what went wrong.

    `feed` takes lines in any portions; only events are kept, so memory is bounded. Raises ValueError for an
    unknown dialect; no text makes it raise.
    """

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._tables = load_tables(dialect)
        self._parser = LineParser(self._tables)
        self._tracebacks = TracebackReader()
        self._events: list[Event] = []
        self._alike: dict[tuple[str, str | None, str], int] = {}
        self._by_exception: dict[int, tuple[Raised, Event]] = {}
        self._facts = Facts()
        self._unfinished: tuple[Event, LogLine, int] | None = None
        self._number = 0
        self._last_raised: dict[str | None, LogLine] = {}
        self._last_plain: dict[str | None, Event] = {}
        self._last_words = LastWords()
        self._context = Context()
        self._seam: LogLine | None = None

    def feed(self, lines: Iterable[str]) -> None:
        """Take the next raw lines, without their newline."""
        for raw in lines:
            self._number += 1
            for line in self._parser.parse(self._number, raw):
                self._take(line)

    @property
    def tables(self) -> Tables:
        """What this reader knows."""
        return self._tables

    @property
    def lines(self) -> int:
        """How many lines have gone by."""
        return self._number

    @property
    def context(self) -> Context:
        """What the lines told around the events, whether anything failed or not."""
        return self._context

    @property
    def inside_traceback(self) -> bool:
        """Whether a traceback has begun not long ago and is not over."""
        return self._tracebacks.inside(self._number)

    def starts_record(self, text: str) -> bool:
        """Whether a text begins as the lines of a log do."""
        return self._parser.starts_record(text)

    def skip(self, count: int) -> None:
        """Count lines that hold nothing."""
        self._number += count

    def begin_file(self) -> None:
        """The lines that follow come from another file."""
        self.settle()
        self._parser.section += 1

    def settle(self) -> None:
        """Take lines whose rest never came."""
        for line in self._parser.flush():
            self._take(line)

    @property
    def decisive(self) -> bool:
        """Whether a root event is in that no process survives: nothing needs to be waited for."""
        return any(event.fatal for event in self._events)

    def went_on_after(self, line: int) -> bool:
        """Whether the engine is seen to work after a line: then what that line says did not end it."""
        return self._context.went_on_after(line)

    def xids_alone(self) -> tuple[XidSeen, ...]:
        """The driver's messages, where `incident` finds no failure to which they could belong."""
        return xids_alone(self._context, self._facts.pids)

    def incident(
        self, *, exit_code: int | None = None, alive: bool = True, request_failed: bool = False
    ) -> Incident | None:
        """The judgement on all text so far.

        `exit_code` is that of the engine's main process (negative for a signal), None if it is not known;
        `alive` is false once the process is gone. `request_failed` says that a request got no answer, so that
        what an engine survives, such as a failed allocation, counts too. None means: no failure to be seen.
        """
        if self._parser.holds:  # the rest may still come: judge by a copy to which it does not
            settled = deepcopy(self, {id(self._tables): self._tables})
            settled.settle()
            return settled.incident(exit_code=exit_code, alive=alive, request_failed=request_failed)
        events = without_stale(self._events, self._facts, self._context)
        incident = judge(
            events,
            self._facts,
            open_tracebacks=self._tracebacks.open_tracebacks(),
            dialect=self._dialect,
            exit_code=exit_code,
            alive=alive and exit_code is None,
            request_failed=request_failed,
            last_words=self._last_words,
        )
        if incident is None:
            return None
        return diagnose(incident, events, self._facts, self._context, self._dialect)

    def _take(self, line: LogLine) -> None:
        line = self._facts.clocked(line)
        self._facts.note(line)
        self._context.note(line)
        if not self._facts.ready and self._tables.says_ready(line.text):
            self._facts.ready = True
            self._last_words.forget()
            self._take_back("hang_timeout")  # a slow start that came to its end was no hang
        self._continue(line)
        if _ASYNC_NOTICE in line.text:
            self._mark_asynchronous(line)
            return
        inside, raised = self._tracebacks.feed(line)
        if raised is not None:
            self._last_words.forget()
            self._raise(raised)
        elif not inside and line.text:
            self._message(line)

    def _raise(self, raised: Raised) -> None:
        text = f"{raised.type}: {raised.message}" if raised.message else raised.type
        place = f" in {raised.function}" if raised.function and not raised.message else ""
        found = self._tables.classify(text)
        rule = found[0] if found else None
        role = rule.role if rule else "cause"
        name = raised.type.rpartition(".")[2]
        bare_timeout = name == "TimeoutError" and not raised.message and raised.line.role not in _DYING_KINDS
        if bare_timeout or role in ("noise", "recovery", "handled", "header", "shutdown"):
            role, rule = "cause", None
        if name in _ENDINGS:
            role = "noise"
        symptom = "assertion" if name == "AssertionError" else "exception"
        if rule is not None:
            symptom = rule.symptom
        event = event_of(
            raised.line,
            text=text,
            event=normalise(text + place),
            symptom=symptom,
            role=role,
            weight=self._weight(raised, rule),
            before_ready=not self._facts.ready,
        )
        event.exception = name
        if raised.header is not None:
            event.header = raised.header.number
        if event.kind is None and (child := _CHILD.match(raised.header_text or "")):
            event.kind = "engine_core" if child[1] else "worker"
        if found is not None and rule is not None:
            details(event, rule, found[1])
        if raised.previous is not None:
            self._hang_on(event, raised)
            raised.previous = None  # a chain may go on for ever; only its last link is needed
        if _UNSAID.match(raised.message):
            self._unfinished = (event, raised.line, 2)
        bounded(self._last_raised, event.process, raised.line)
        bounded(self._by_exception, id(raised), (raised, event))
        self._keep(event)

    def _continue(self, line: LogLine) -> None:
        """Add the next lines to an exception whose first line only counts what is wrong."""
        if self._unfinished is None:
            return
        event, first, lines = self._unfinished
        if line.source != first.source:
            return
        if not line.text.startswith(" ") or lines == 0 or _INTERNALS.match(line.text):
            self._unfinished = None
            return
        said = _INTERNALS_TAIL.sub("", line.text.strip())
        event.text = f"{event.text} {said}"[:MAX_TEXT]
        event.event = normalise(event.text)
        self._unfinished = (event, first, lines - 1)

    def _hang_on(self, event: Event, raised: Raised) -> None:
        """Of chained exceptions the first went wrong first; but one that programs catch every day only led to
        the one raised while it was handled."""
        known = self._by_exception.get(id(raised.previous))
        if known is None:
            return
        previous = known[1]
        if previous.role != "cause" or event.role != "cause":
            return
        if raised.chain == "context" and previous.exception in _EVERYDAY:
            previous.role = "noise"
            event.related.append(previous.line)
        else:
            event.role = "consequence"

    def _weight(self, raised: Raised, rule: SignatureRule | None) -> Weight:
        line = raised.line
        header = self._tables.classify(raised.header_text) if raised.header_text else None
        if header is not None and header[0].role == "handled":
            return Weight.ERROR_LINE
        if line.level in ("WARNING", "INFO", "DEBUG"):
            return Weight.ERROR_LINE
        if raised.header is not None and below_error(raised.header):
            return Weight.EXCEPTION  # introduced by a warning, or only standing below one
        if line.role in _DYING_KINDS or line.excepthook or _CHILD.match(raised.header_text or ""):
            return Weight.FATAL
        if line.role == "api_server":
            return Weight.ERROR_LINE if self._facts.ready else Weight.EXCEPTION
        return Weight.FATAL if rule is not None and rule.fatal else Weight.EXCEPTION

    def _message(self, line: LogLine) -> None:
        found = self._tables.classify(line.text)
        if found is None and (joined := self._over_the_seam(line)) is not None:
            line, found = joined
        if found is None:
            if self._goes_on(line):
                return
            if not self._tables.says_ready(line.text):
                self._last_words.note(line)
            if line.level in _ERROR_LEVELS or (line.level is None and _BARE_LEVEL.match(line.text)):
                self._error_line(line)
            return
        rule, match = found
        if rule.role != "header" and self._goes_on(line):
            return
        if rule.role in ("noise", "handled"):
            return
        if rule.role == "recovery":
            self._take_back(rule.symptom)
            return
        if rule.role == "shutdown":
            if not any(self._ends_it(event) for event in self._events):
                self._facts.orderly_ends.add(line.section)
                self._last_words.close()
            return
        event = event_of(
            line,
            text=line.text.strip(),
            event=normalise(line.text),
            symptom=rule.symptom,
            role=rule.role,
            weight=self._weight_of_message(line, rule),
            before_ready=not self._facts.ready,
        )
        details(event, rule, match)
        self._keep(event)

    def _over_the_seam(self, line: LogLine) -> tuple[LogLine, tuple[SignatureRule, re.Match[str]]] | None:
        """A message that a paste has cut in two: the end of one line and a bare next line, together known."""
        before, self._seam = self._seam, line
        if line.process is not None or line.level is not None or line.moment.shown or before is None:
            return None
        bare = before.process is None and before.level is None
        if line.number - before.number > 2 or not (_SEAM if bare else 1) <= len(before.text) < _SEAM_WITHIN:
            return None
        whole = replace(before, text=(before.text + line.text)[:_SEAM_WITHIN])
        self._seam = whole
        found = self._tables.classify(whole.text)
        if found is None or not found[1].start() < len(before.text) < found[1].end():
            return None
        return whole, found

    def _weight_of_message(self, line: LogLine, rule: SignatureRule) -> Weight:
        if below_error(line) or (rule.survivable and _DEALT_WITH.search(line.text)):
            return Weight.REMARK
        if line.role == "api_server" and self._facts.ready:
            return Weight.ERROR_LINE
        if rule.survivable:
            return Weight.EXCEPTION
        return Weight.FATAL if rule.fatal else Weight.ERROR_LINE

    def _ends_it(self, event: Event) -> bool:
        """Whether what follows is the end that this event brought about, rather than one that was asked for."""
        failed_start = event.role == "cause" and event.weight > Weight.REMARK and not self._facts.ready
        return event.fatal or failed_start or event.symptom == "engine_dead"

    def _goes_on(self, line: LogLine) -> bool:
        """Whether the line only continues the message of an exception, within the same log record."""
        raised = self._last_raised.get(line.process)
        return (
            raised is not None
            and line.place is not None
            and line.source == raised.source
            and line.time == raised.time
            and line.number - raised.number <= _MAX_MESSAGE_LINES
        )

    def _take_back(self, symptom: str) -> None:
        self._events = [
            event
            for event in self._events
            if event.symptom != symptom or event.role not in ("symptom", "clue")
        ]
        self._alike.clear()

    def _error_line(self, line: LogLine) -> None:
        """A line at error level that no signature knows: a cause only if the process ends."""
        if line.text[0] in " \t":
            if (last := self._last_plain.get(line.process)) is not None and len(last.related) < _MAX_ALIKE:
                last.related.append(line.number)
            return
        event = event_of(
            line,
            text=line.text.strip(),
            event=normalise(line.text),
            symptom="startup_error" if not self._facts.ready else "error_exit",
            role="cause",
            weight=Weight.EXCEPTION
            if self._dialect == "llamacpp" and not self._facts.ready
            else Weight.ERROR_LINE,
            before_ready=not self._facts.ready,
        )
        self._keep(event)

    def _keep(self, event: Event) -> None:
        if event.section in self._facts.orderly_ends:
            event.role = "noise"
        if not event.moment.shown:
            event.moment = self._facts.latest(event.section)
        bounded(self._last_plain, event.process, event)
        alike = (event.role, event.process, event.event)
        count = self._alike[alike] = self._alike.get(alike, 0) + 1
        if len(self._alike) > _MAX_EVENTS:
            self._alike.clear()
        if count > _MAX_ALIKE or (len(self._events) >= _MAX_EVENTS and not event.fatal):
            return
        self._events.append(event)

    def _mark_asynchronous(self, line: LogLine) -> None:
        for event in reversed(self._events[-64:]):
            below = line.process is None and 0 < line.number - event.line <= 3
            if event.process == line.process or below:
                event.asynchronous = True
                return
