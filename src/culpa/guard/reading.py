"""The files that a guard writes, one a process, read as they grow to one account of what it saw.

Every process of the engine appends JSON lines to a file of its own. They are written by a process that may be killed at
any moment and quote what a faulty engine holds: each line is validated, and what can't be read is told, never trusted.
"""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from culpa.model.guard import GuardedProcess, GuardRecord, LeftOutCheck, PlantedFault, Violation
from culpa.model.redact import printable

MOST_BYTES_A_LINE = 1 << 20
MOST_VIOLATIONS = 200
MOST_PROBLEMS = 20
_MOST_TEXT = 500
_SLICE = 1 << 20


def _text(value: object) -> object:
    """Whatever was written there, as text that can be shown."""
    if value is None:
        return None
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return printable(shown)[:_MOST_TEXT]


def _stage(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"PP{value}"
    return _text(value)


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not isfinite(value) else value


_Text = Annotated[str | None, BeforeValidator(_text)]
_Seconds = Annotated[float | None, BeforeValidator(_finite)]
_Stage = Annotated[str | None, BeforeValidator(_stage)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, strict=False)


class _LeftOut(_Line):
    check: Annotated[str, BeforeValidator(_text)]
    reason: Annotated[str, BeforeValidator(_text)] = ""


class _Start(_Line):
    version: _Text = None
    engine: _Text = None
    engine_version: _Text = None
    mode: _Text = None
    role: _Text = None
    stage: _Stage = None
    rank: int | None = None
    checks: list[Annotated[str, BeforeValidator(_text)]] = Field(default_factory=list)
    left_out: list[_LeftOut] = Field(default_factory=list)


class _Violation(_Line):
    kind: Annotated[str, BeforeValidator(_text)]
    stage: _Stage = None
    rank: int | None = None
    layer: _Text = None
    layer_type: _Text = None
    group: int | None = None
    step: int | None = None
    request: _Text = None
    block: int | None = None
    index: int | None = None
    expected: _Text = None
    found: _Text = None
    detail: _Text = None
    time: _Seconds = None


class _Summary(_Line):
    steps: int = 0
    requests: int = 0
    checked: dict[str, int] = Field(default_factory=dict)
    own_seconds: _Seconds = None
    violations: int = 0
    by_kind: dict[str, int] = Field(default_factory=dict)


class _Planted(_Line):
    fault: Annotated[str, BeforeValidator(_text)]
    stage: _Stage = None
    step: int | None = None
    layer: _Text = None
    expect: list[Annotated[str, BeforeValidator(_text)]] = Field(default_factory=list)


def in_order(violation: Violation) -> tuple[int, float]:
    """The order of cause and consequence: by step, what was seen before the first step in front, then by time."""
    step = violation.step if violation.step is not None else -1
    return step, violation.time if violation.time is not None else float("inf")


@dataclass
class _File:
    """What one process has written so far."""

    path: Path
    offset: int = 0
    rest: bytes = b""
    skipping: bool = False
    process: GuardedProcess | None = None
    kinds: Counter[str] = field(default_factory=Counter)


@dataclass
class GuardReader:
    """Reads the folder of a guard; `update` takes in what was written since, `record` is the account so far."""

    folder: Path
    _files: dict[Path, _File] = field(default_factory=dict)
    _violations: list[Violation] = field(default_factory=list)
    _planted: list[PlantedFault] = field(default_factory=list)
    _problems: dict[str, int] = field(default_factory=dict)

    def update(self) -> list[Violation]:
        """Violations that are new since the last call, in the order in which they were read."""
        new: list[Violation] = []
        try:
            paths = sorted(self.folder.glob("guard-*.jsonl"))
        except OSError as error:
            self._problem(f"{self.folder.name}: {error.strerror or error}")
            return new
        for path in paths:
            file = self._files.setdefault(path, _File(path))
            try:
                with path.open("rb") as stream:
                    stream.seek(file.offset)
                    while data := stream.read(_SLICE):
                        file.offset += len(data)
                        new += self._take(file, data)
            except OSError as error:
                self._problem(f"{path.name}: {error.strerror or error}")
        # The earliest are kept, whichever process wrote them: one of them is the cause.
        self._violations = sorted([*self._violations, *new], key=in_order)[:MOST_VIOLATIONS]
        return new

    def record(self) -> GuardRecord:
        """All that was read so far."""
        problems = dict(self._problems)
        processes = []
        kinds: Counter[str] = Counter()
        for file in self._files.values():
            if file.rest or file.skipping:
                problems[f"{file.path.name} ends in the middle of a line: its process was cut off"] = 1
            if file.process is not None:
                seen = max(file.process.violations, file.kinds.total())
                processes.append(replace(file.process, violations=seen))
            kinds.update(file.kinds)
        processes.sort(key=lambda one: (one.stage or "", one.rank or 0, one.role))
        told = [text if count == 1 else f"{text} ({count} times)" for text, count in problems.items()]
        return GuardRecord(
            tuple(processes),
            tuple(self._violations),
            kinds.total(),
            tuple(kinds.most_common()),
            tuple(self._planted),
            tuple(told[:MOST_PROBLEMS]),
        )

    def _take(self, file: _File, data: bytes) -> list[Violation]:
        *lines, rest = (file.rest + data).split(b"\n")
        if lines and file.skipping:
            lines, file.skipping = lines[1:], False
        if len(rest) > MOST_BYTES_A_LINE:
            self._problem(f"{file.path.name}: a line longer than {MOST_BYTES_A_LINE:,} bytes was left out")
            rest, file.skipping = b"", True
        file.rest = b"" if file.skipping else rest
        found = []
        for line in lines:
            if not line.strip():
                continue
            violation = self._line(file, line)
            if violation is not None:
                found.append(violation)
        return found

    def _line(self, file: _File, line: bytes) -> Violation | None:
        try:
            content = json.loads(line)
            if not isinstance(content, dict):
                raise ValueError("no object")
            return self._event(file, content)
        except (ValidationError, ValueError, RecursionError):
            self._problem(f"{file.path.name}: a line that is none of the guard's was left out")
            return None

    def _event(self, file: _File, content: dict[str, Any]) -> Violation | None:
        event = content.get("event")
        if event == "violation":
            return self._violation(file, _Violation.model_validate(content))
        if event == "start":
            self._start(file, _Start.model_validate(content))
        elif event == "summary":
            self._summary(file, _Summary.model_validate(content))
        elif event == "planted":
            self._planted.append(self._plant(file, content))
        elif event == "left_out":
            self._left_out(file, _LeftOut.model_validate(content))
        elif event == "guard_error":
            told = _text(content.get("error") or content.get("detail") or content.get("reason") or "")
            self._problem(f"the guard itself failed: {told or 'it does not say how'}")
        else:
            raise ValueError("unknown event")
        return None

    def _plant(self, file: _File, content: dict[str, Any]) -> PlantedFault:
        line = _Planted.model_validate(content)
        known = {"event", "time", "fault", "stage", "rank", "step", "layer", "expect"}
        rest = {name: value for name, value in content.items() if name not in known}
        stage = line.stage or (file.process.stage if file.process else None)
        return PlantedFault(line.fault, stage, line.step, line.layer, tuple(line.expect), str(_text(rest)))

    def _violation(self, file: _File, line: _Violation) -> Violation:
        process = file.process
        file.kinds[line.kind] += 1
        values = line.model_dump()
        values["detail"] = values["detail"] or ""
        if process is not None:
            values["stage"] = values["stage"] or process.stage
            values["rank"] = process.rank if values["rank"] is None else values["rank"]
        return Violation(**values)

    def _start(self, file: _File, line: _Start) -> None:
        file.process = GuardedProcess(
            role=line.role or "process",
            stage=line.stage,
            rank=line.rank,
            mode=line.mode or "",
            version=line.version or "",
            engine=line.engine or "",
            engine_version=line.engine_version,
            checks=tuple(line.checks),
            left_out=_left_out(line.left_out),
        )

    def _summary(self, file: _File, line: _Summary) -> None:
        process = file.process or GuardedProcess("process")
        file.process = replace(
            process,
            steps=line.steps,
            requests=line.requests,
            checked=tuple(sorted(line.checked.items())),
            own_seconds=line.own_seconds,
            violations=line.violations,
        )
        # Of each kind only the first are written out; the counts are of all.
        for kind, count in line.by_kind.items():
            file.kinds[str(_text(kind))] = max(count, file.kinds[str(_text(kind))])

    def _left_out(self, file: _File, line: _LeftOut) -> None:
        process = file.process or GuardedProcess("process")
        checks = tuple(check for check in process.checks if check != line.check)
        left = (*process.left_out, LeftOutCheck(line.check, line.reason))
        file.process = replace(process, checks=checks, left_out=left)

    def _problem(self, text: str) -> None:
        if text in self._problems or len(self._problems) < MOST_PROBLEMS:
            self._problems[text] = self._problems.get(text, 0) + 1


def _left_out(found: list[_LeftOut]) -> tuple[LeftOutCheck, ...]:
    return tuple(LeftOutCheck(one.check, one.reason) for one in found)


def read_folder(folder: Path) -> GuardRecord:
    """The account of a folder whose processes have ended."""
    reader = GuardReader(folder)
    reader.update()
    return reader.record()
