"""Python tracebacks, followed line by line for every process at once."""

import re
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from culpa.triage.lines import LogLine

Chain = Literal["direct", "context"]
Key = tuple[str | None, str | None, str | None]
_Value = TypeVar("_Value")

_HEADER = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s{0,40}File "([^"]{1,400})", line (\d{1,9})(?:, in (.{1,200}))?$')
_FINAL = re.compile(r"^((?:[A-Za-z_]\w{0,100}\.){0,12}(?:<locals>\.)?[A-Za-z_]\w{0,100})(?::(?: (.*))?)?$")
# Where other lines come in between, only a name of this kind ends a traceback without a prefix.
_SURELY_EXCEPTION = re.compile(
    r"(?:Error|Exception|Warning|Interrupt|Exit|Timeout|Failure|Refused|OutOfResources|StopIteration)$"
)
_DIRECT = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"
_MAX_OPEN = 256
_MAX_FOREIGN = 200


@dataclass(slots=True)
class Raised:
    """The final line of a traceback: exception type and message, and the innermost function.

    `header` is the line that introduced it, if there is one. `chain` says how it hangs on `previous`.
    """

    line: LogLine
    type: str
    message: str
    function: str | None
    file: str | None
    header: LogLine | None
    header_text: str | None
    chain: Chain | None
    previous: "Raised | None"


@dataclass(slots=True)
class _Open:
    speaker: LogLine
    header: LogLine | None
    header_text: str | None
    chain: Chain | None
    previous: Raised | None
    function: str | None = None
    file: str | None = None
    foreign: int = 0
    last: int = 0


class TracebackReader:
    """Assembles tracebacks from interleaved lines; frames belong together by speaker, level and place.

    Memory is bounded: at most 256 tracebacks are open at a time, each kept as its innermost frame.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Key, _Open] = OrderedDict()
        self._last_raised: OrderedDict[Key, Raised] = OrderedDict()
        self._links: OrderedDict[Key, tuple[Chain, Raised]] = OrderedDict()
        self._last_line: OrderedDict[Key, LogLine] = OrderedDict()

    def open_tracebacks(self) -> list[tuple[LogLine, str | None]]:
        """Tracebacks without their end so far: a line of each, and the innermost function."""
        return [(state.header or state.speaker, state.function) for state in self._open.values()]

    def inside(self, number: int) -> bool:
        """Whether a traceback has grown within the last lines before a line number."""
        return any(number - state.last < _MAX_FOREIGN for state in self._open.values())

    def feed(self, line: LogLine) -> tuple[bool, Raised | None]:
        """Whether the line is part of a traceback, and the exception if it is its final line."""
        key = line.source
        text = line.text
        stripped = text.strip()
        if stripped.endswith(_HEADER) or stripped.startswith("Traceback (most recent call last):"):
            self._start(key, line, stripped)
            return True, None
        if stripped in (_DIRECT, _CONTEXT):
            if (raised := self._last_raised.get(key)) is not None:
                chain: Chain = "direct" if stripped == _DIRECT else "context"
                _keep(self._links, key, (chain, raised))
            return True, None
        frame = _FRAME.match(text)
        if frame is not None:
            state = self._open.get(key) or self._adopt(key)
            if state is None:
                state = self._begin(key, line, None, None)
            state.file, state.function = frame[1], frame[3]
            state.foreign, state.last = 0, line.number
            return True, None
        state = self._open.get(key)
        if state is None:
            self._remember(key, line)
            return False, None
        if not text or text[0] in " \t":
            state.last = line.number
            return True, None
        return self._final(key, line, state)

    def _final(self, key: Key, line: LogLine, state: _Open) -> tuple[bool, Raised | None]:
        match = _FINAL.match(line.text)
        certain = match is not None and (
            _SURELY_EXCEPTION.search(match[1]) is not None
            or (state.foreign == 0 and (line.process is not None or state.last == line.number - 1))
        )
        if match is None or not certain:
            state.foreign += 1
            if state.foreign > _MAX_FOREIGN:
                del self._open[key]
            return False, None
        del self._open[key]
        speaker = state.speaker
        if line.process is None and speaker.process is not None:
            line = replace(
                line,
                process=speaker.process,
                pid=speaker.pid,
                role=speaker.role,
                ranks=speaker.ranks,
                time=speaker.time,
                moment=speaker.moment,
            )
        raised = Raised(
            line=line,
            type=match[1],
            message=(match[2] or "").strip(),
            function=state.function,
            file=state.file,
            header=state.header,
            header_text=state.header_text,
            chain=state.chain,
            previous=state.previous,
        )
        _keep(self._last_raised, key, raised)
        return True, raised

    def _start(self, key: Key, line: LogLine, stripped: str) -> None:
        introduction = stripped[: -len(_HEADER)].strip() if stripped.endswith(_HEADER) else ""
        if introduction:
            self._begin(key, line, line, introduction)
            return
        last = self._last_line.pop(key, None)
        if last is not None and last.number >= line.number - 3:
            self._begin(key, line, last, last.text)
        else:
            self._begin(key, line, None, None)

    def _begin(self, key: Key, line: LogLine, header: LogLine | None, header_text: str | None) -> _Open:
        chain, previous = self._links.pop(key, (None, None))
        if header_text is None and previous is not None:
            header, header_text = previous.header, previous.header_text
        state = _Open(line, header, header_text, chain, previous, last=line.number)
        _keep(self._open, key, state)
        return state

    def _adopt(self, key: Key) -> _Open | None:
        """An open traceback whose frames come without the prefix that its header has (SGLang)."""
        if key != (None, None, None):
            return None
        for other in reversed(self._open):
            state = self._open[other]
            if state.function is None and other[2] is None:
                del self._open[other]
                _keep(self._open, key, state)
                return state
        return None

    def _remember(self, key: Key, line: LogLine) -> None:
        if line.text:
            _keep(self._last_line, key, line)


def _keep(store: "OrderedDict[Key, _Value]", key: Key, value: _Value) -> None:
    store[key] = value
    store.move_to_end(key)
    if len(store) > _MAX_OPEN:
        store.popitem(last=False)
