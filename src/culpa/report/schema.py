"""The shape of `experiment.json`, schema "culpa.experiment/1". Its JSON Schema file is generated from this.

The top-level keys down to `elapsed_seconds` are fixed; further keys may be added within version 1, so a
reader should ignore keys that it does not know. Times are seconds. A number that is unknown is null.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from culpa.model.guard import GuardedTrial, Located
from culpa.report.incident_schema import GpuDocument, KnownIssueDocument

SCHEMA = "culpa.experiment/1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SignatureDocument(_Part):
    """What makes two failures the same."""

    symptom: str
    process: str | None
    rank: str | None
    event: str | None


class CountDocument(_Part):
    """How often a configuration failed, of how many trials that were evidence."""

    failed: int = Field(ge=0)
    trials: int = Field(ge=0)


class FactorDocument(_Part):
    """A factor and what the trials say of it. Levels are null where the launch does not have the factor."""

    name: str
    suspect: str | None
    safe: str | None
    status: Literal["in", "out", "masking", "untested"]
    reason: str


class MemberDocument(_Part):
    """A factor of a set, with the level that fails and the one that passes."""

    name: str
    suspect: str
    safe: str


class FindingDocument(_Part):
    """A set of factors that the failure needs, how strongly that was shown, and the trials behind it."""

    factors: list[MemberDocument]
    level: Literal["observed", "contrast", "isolated", "located"]
    probability: FiniteFloat | None = Field(ge=0, le=1)
    sufficient: CountDocument
    necessary: dict[str, CountDocument]
    conditions: list[str]
    located: Located | None = None


class OtherFailureDocument(_Part):
    """A failure that is not the hunted one."""

    signature: SignatureDocument
    levels: dict[str, str]
    note: str
    trials: list[int]


class TrialDocument(_Part):
    """One launch: what was set, how it ended, what it was asked."""

    id: int
    levels: dict[str, str]
    outcome: Literal["pass", "fail", "other", "untestable"]
    signature: SignatureDocument | None
    reason: str
    seconds: FiniteFloat | None
    start_seconds: FiniteFloat | None
    requests: int
    tokens: int
    verdict_delay_seconds: FiniteFloat | None
    arm: str
    purpose: str
    folder: str
    concurrency: int
    exit_code: int | None
    effective: dict[str, str]
    mismatches: list[str]


class AskedArmDocument(_Part):
    """The launch as it is, or an arm that was asked for, by kind of request."""

    name: str
    levels: dict[str, str]
    short_questions: str
    long_prompts: str
    outcome: str
    tokens_per_second: FiniteFloat | None
    kv_cache_tokens: int | None
    trials: list[int]


class PassingArmDocument(_Part):
    """A configuration that never failed, what it ran through, and the failure rates that excludes at 95%.

    The rates are shares of launches and of requests; the latter is null where nothing was asked.
    """

    arm: str
    levels: dict[str, str]
    passes: int
    requests: int
    tokens: int
    seconds: FiniteFloat | None
    concurrency: int
    excluded_launch_rate_95: FiniteFloat
    excluded_request_rate_95: FiniteFloat | None
    trials: list[int]


class CommandsDocument(_Part):
    """The two launches that straddle the fault, null where there is none."""

    failing: str | None
    passing: str | None
    failing_trial: int | None
    passing_trial: int | None
    failing_request: str | None
    passing_request: str | None
    differing: list[MemberDocument]


class LaunchDocument(_Part):
    """The user's launch. A null variable is one that must be absent."""

    command: str
    env: dict[str, str | None]
    cwd: str | None


class OptionDocument(_Part):
    """An option of the command line, without dashes; the value of a switch is empty."""

    name: str
    value: str


class LogLineDocument(_Part):
    """A line of a log; `line` counts from 1."""

    line: int
    text: str


class RootXidDocument(_Part):
    """A message of the kernel that belongs to the root event; a teardown one only follows it."""

    code: int
    pci_bus: str
    teardown: bool
    meaning: str
    detail: str


class RootEventDocument(_Part):
    """The first thing that went wrong, and where to read it."""

    trial: int
    log: str
    line: int
    text: str
    time: str | None
    process: str | None
    rank: str | None
    async_stack: bool
    cascade: str
    excerpt: list[LogLineDocument]
    missing_evidence: list[str]
    gpu: GpuDocument | None
    xids: list[RootXidDocument]
    known_issues: list[KnownIssueDocument]


class LayoutFindingDocument(_Part):
    """What planning alone says of the launch, as `culpa layout` computes it."""

    id: str
    level: Literal["error", "warning", "note"]
    text: str
    factors: list[str]


class RedactionDocument(_Part):
    """How often things of a kind were taken out before the document was written, and how many different ones."""

    kind: str
    count: int
    different: int


class ExperimentDocument(_Part):
    """A whole experiment."""

    schema_: Literal["culpa.experiment/1"] = Field(alias="schema")
    outcome: Literal["no_failure", "isolated", "inconclusive", "all_safe_fails"]
    signature: SignatureDocument | None
    baseline: CountDocument
    factors: list[FactorDocument]
    findings: list[FindingDocument]
    other_failures: list[OtherFailureDocument]
    trials: list[TrialDocument]
    not_excluded: list[str]
    commands: CommandsDocument
    elapsed_seconds: FiniteFloat | None
    conclusion: str
    no_failure: str
    interrupted: bool
    limits_reached: list[str]
    notes: list[str]
    root_event: RootEventDocument | None
    culpa_version: str
    run_id: str
    started: str
    engine: str
    engine_version: str | None
    launch: LaunchDocument
    confidence: FiniteFloat | None
    options: list[OptionDocument]
    environment: dict[str, str]
    arms: list[AskedArmDocument]
    passing_arms: list[PassingArmDocument] = []  # results of earlier releases have none
    layout: list[LayoutFindingDocument]
    redactions: list[RedactionDocument] = []
    guard: list[GuardedTrial] = Field(default_factory=list)


def json_schema() -> dict[str, object]:
    """The JSON Schema of the document."""
    return ExperimentDocument.model_json_schema(by_alias=True, mode="serialization")
