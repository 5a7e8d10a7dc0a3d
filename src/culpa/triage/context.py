"""What a log tells around its events: configuration, load, GPUs, Xids, and when machine and engine started."""

import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import re2

from culpa.triage.clock import NO_MOMENT, Moment
from culpa.triage.configuration import DUMP_LITERALS, ConfigurationReader
from culpa.triage.gpus import LITERALS as GPU_LITERALS
from culpa.triage.gpus import GpuTable
from culpa.triage.known_issues import sign_literals
from culpa.triage.lines import LogLine
from culpa.triage.load import LITERALS as LOAD_LITERALS
from culpa.triage.load import LoadReader
from culpa.triage.settings import load_settings
from culpa.triage.xids import Xid, bus_address, parse_xid

_BOOT = re.compile(
    r"^-- (?:Reboot|Boot [0-9a-f]{32}) --|Linux version \d|Command line: BOOT_IMAGE|NVRM: loading NVIDIA UNIX"
)
_START = re.compile(
    r"API server version|LLM engine \(v|server_args=ServerArgs|TensorRT-LLM version|ggml_cuda_init: found"
    r"|non-default args:|Started server process|text_generation_launcher: Args"
)
_LOST = re.compile(
    r"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?((?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
)
_OFF_THE_BUS = "fallen off the bus"
_LIFE = re.compile(r'" 200(?: |$)|Avg generation throughput: (?:[1-9]|0\.[1-9])|Decode batch[.,] ')
_FRAME = 'File "'
_MAX_XIDS = 1024
_MAX_FRAMES = 4096
_MAX_BOOTS = 64
_MAX_SIGNS = 2048
_MAX_SIGN = 1000

_OWN_LITERALS = (
    "nvrm:", "-- reboot --", "-- boot ", "linux version ", "boot_image", "started server process", 'file "',
    "text_generation_launcher", '" 200', "avg generation throughput", "decode batch",
)  # fmt: skip


def context_literals(*, speakers: bool = True) -> tuple[str, ...]:
    """In lower case: a line that has none of them tells nothing of the context, and need not be taken apart for it.
    Without `speakers` those are left out that only tell whose log it is."""
    table = load_settings()
    named = (*table.releases, *table.speaks) if speakers else table.releases
    rules = (*(rule.literals for rule in table.said), *(rule.literals for rule in named))
    said = (literal for literals in rules for literal in literals)
    known = (*_OWN_LITERALS, *DUMP_LITERALS, *GPU_LITERALS, *LOAD_LITERALS, *said, *sign_literals())
    return tuple(dict.fromkeys(known))


@cache
def _quick(speakers: bool) -> Callable[[str], object]:
    """One search for all of them."""
    options = re2.Options()
    options.log_errors = False
    literals = "|".join(re.escape(literal) for literal in context_literals(speakers=speakers))
    search: Callable[[str], object] = re2.compile(literals, options).search
    return search


_PACKAGES = {
    "vllm": "vllm",
    "sglang": "sglang",
    "tensorrt_llm": "tensorrt-llm",
    "text_generation_server": "tgi",
}
_PACKAGE = re.compile(rf"[/\\]({'|'.join(_PACKAGES)})[/\\]")


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of a traceback: source file and function."""

    line: int
    process: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Boot:
    """A line by which machine or driver start."""

    line: int
    section: int
    moment: Moment


class Context:
    """Grows with the log; bounded. Never raises for any text."""

    def __init__(self) -> None:
        self.configuration = ConfigurationReader()
        self.load = LoadReader()
        self.gpus = GpuTable()
        self.xids: list[Xid] = []
        self.boots: list[Boot] = []
        self.started: list[tuple[int, Moment]] = []
        self.first: Moment = NO_MOMENT
        self.lost_bus: str | None = None
        self.lost_line: int | None = None
        self.kernel_lines = 0
        self.last_sign_of_life = 0
        self.signs: dict[str, int] = {}
        self.frames: deque[Frame] = deque(maxlen=_MAX_FRAMES)
        self._lost_gpu: tuple[int, str] | None = None

    def note(self, line: LogLine) -> None:
        """Learn from any line."""
        text = line.text
        self._clocks(line)
        named = line.process is not None or line.level is not None  # a date in brackets alone is anybody's
        if line.engine is not None and named and not self.configuration.engine_known:
            self.configuration.note_speaker(line.engine)
        lowered = text.lower()
        goes_on = text.startswith("|") or self.gpus.in_table or self.configuration.unfinished
        if not goes_on and _quick(not self.configuration.engine_known)(lowered) is None:
            return
        if _FRAME in text:
            self.frames.append(Frame(line.number, line.process, text.strip()))
            return
        if ("200" in text or "ration throughput" in text or "Decode batch" in text) and _LIFE.search(text):
            self.last_sign_of_life = line.number
        self.configuration.note(line, lowered)
        self.load.note(line, lowered)
        self.gpus.note(line)
        if "nvrm:" in lowered:
            self._driver(line)
        if len(self.signs) < _MAX_SIGNS and any(literal in lowered for literal in sign_literals()):
            self.signs.setdefault(text.strip()[:_MAX_SIGN], line.number)
        if _boots(line, lowered) and len(self.boots) < _MAX_BOOTS:
            self.boots.append(Boot(line.number, line.section, line.moment))
        if line.role != "kernel" and len(self.started) < _MAX_BOOTS and _START.search(text):
            self.started.append((line.number, line.moment))

    @property
    def engine_of_frames(self) -> str | None:
        """The engine whose files most frames are in: a traceback alone may be all that a log holds."""
        found = Counter(
            match[1] for frame in self.frames if (match := _PACKAGE.search(frame.text)) is not None
        )
        return _PACKAGES[found.most_common(1)[0][0]] if found else None

    def _clocks(self, line: LogLine) -> None:
        if line.role == "kernel":
            self.kernel_lines += 1
        elif line.moment.shown and not self.first.shown:
            self.first = line.moment

    def _driver(self, line: LogLine) -> None:
        text = line.text
        xid = parse_xid(text, line.number, time=line.time, moment=line.moment, section=line.section)
        if xid is not None:
            if len(self.xids) >= _MAX_XIDS:
                del self.xids[_MAX_XIDS // 2]  # the first and the last are kept of a storm
            self.xids.append(xid)
            return
        if (match := _LOST.search(text)) is not None:
            bus = bus_address(match[1])
            self._lost_gpu = (line.number, bus) if bus else None
        if _OFF_THE_BUS in text and self._lost_gpu is not None and line.number - self._lost_gpu[0] <= 3:
            self.lost_line, self.lost_bus = line.number, self._lost_gpu[1]

    def went_on_after(self, line: int) -> bool:
        """Whether the engine works on after a line, without having been started again in between."""
        again = any(line < started <= self.last_sign_of_life for started, _ in self.started)
        return self.last_sign_of_life > line and not again

    def frames_of(self, process: str | None, first: int, last: int) -> list[str]:
        """The frames that stand between two lines and belong to a process, or to none."""
        return [
            frame.text
            for frame in self.frames
            if first <= frame.line <= last and frame.process in (process, None)
        ]


def _boots(line: LogLine, lowered: str) -> bool:
    """Whether the machine or its driver start here. An engine that prints the same words does not count."""
    if not ("version" in lowered or "boot" in lowered or "nvrm: loading" in lowered):
        return False
    return (line.role == "kernel" or line.text.startswith(("-- ", "NVRM"))) and bool(_BOOT.search(line.text))
