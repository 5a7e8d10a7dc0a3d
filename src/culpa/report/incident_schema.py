"""The shape of what `culpa triage --json` prints, schema "culpa.incident/1". Its JSON Schema file is generated from
this.

Keys may be added within version 1, so a reader should ignore keys that it does not know. Lines count from 1 within
their file. `root_alternates` and `cascade_lines` are lines of the root event's file; those in other files are in
`elsewhere`. What a log does not tell is null or missing from `configuration`.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

SCHEMA = "culpa.incident/1"

SettingValue = bool | int | FiniteFloat | str


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RootDocument(_Part):
    """The first thing that went wrong; `time` as the log prints it."""

    file: str
    line: int = Field(ge=0)
    time: str | None
    process: str | None
    text: str


class GpuDocument(_Part):
    """The GPU of the failure, by its place on the PCI bus; `index` is nvidia-smi's. `why` is how it was found."""

    pci_bus: str
    index: int | None
    uuid: str | None
    why: str


class XidDocument(_Part):
    """An Xid of the kernel log. A stale one belongs to something else; `why` says what speaks for that."""

    code: int
    pci_bus: str
    line: int
    stale: bool
    file: str
    time: str | None
    pid: int | None
    teardown: bool
    why: str
    meaning: str
    cause: Literal["application", "hardware", "driver", "link", "either"]
    advice: str
    detail: str


class KnownIssueDocument(_Part):
    """A public report. `match` is true only if the signature is there and this configuration can reach it; else
    `differs` says what does not fit."""

    url: str
    match: bool
    why: str
    id: str
    title: str
    status: str
    differs: list[str]
    shown: str


class VerdictDocument(_Part):
    """Where the fault lies, and why."""

    blame: Literal["software", "hardware", "driver", "link", "memory", "configuration", "unknown"]
    why: str


class ElsewhereDocument(_Part):
    """A line of another file than the root event's."""

    file: str
    line: int
    role: Literal["alternate", "cascade"]


class FileDocument(_Part):
    """A log that was read."""

    name: str


class IncidentDocument(_Part):
    """One failure, or `symptom` null where none is to be seen."""

    schema_: Literal["culpa.incident/1"] = Field(alias="schema")
    engine: str | None
    engine_version: str | None
    symptom: str | None
    root_event: RootDocument | None
    root_alternates: list[int]
    first_failed_rank: dict[str, int] | None
    gpu: GpuDocument | None
    xids: list[XidDocument]
    cascade_lines: list[int]
    async_stack: bool
    configuration: dict[str, SettingValue]
    known_issues: list[KnownIssueDocument]
    missing_evidence: list[str]
    confidence: Literal["high", "medium", "low"] | None
    confidence_why: list[str]
    verdict: VerdictDocument | None
    load: dict[str, int | FiniteFloat]
    next_steps: list[str]
    process_kind: str | None
    elsewhere: list[ElsewhereDocument]
    files: list[FileDocument]
    lines: int


def incident_json_schema() -> dict[str, object]:
    """The JSON Schema of the document."""
    return IncidentDocument.model_json_schema(by_alias=True, mode="serialization")
