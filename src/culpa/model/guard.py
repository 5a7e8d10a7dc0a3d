"""What a guard inside the running engine saw: its processes, its checks, and the violations that it reported."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One binding or piece of state that was not what the scheduler's own output says it should be.

    `kind` is a name of the guard's list. `stage` is the pipeline stage as `PP1`, `rank` the process's rank, `layer`
    the layer's name or number, `layer_type` what it is (`full_attention`, `linear_attention` ...), `group` the
    cache group, `step` the scheduler's step, counted from 0, `block` a cache block and `index` a place within a
    table or batch. None where the guard did not tell. `time` is seconds since the epoch.
    """

    kind: str
    stage: str | None = None
    rank: int | None = None
    layer: str | None = None
    layer_type: str | None = None
    group: int | None = None
    step: int | None = None
    request: str | None = None
    block: int | None = None
    index: int | None = None
    expected: str | None = None
    found: str | None = None
    detail: str = ""
    time: float | None = None


@dataclass(frozen=True, slots=True)
class LeftOutCheck:
    """A check that a process could not make, and why."""

    check: str
    reason: str


@dataclass(frozen=True, slots=True)
class GuardedProcess:
    """One process of the engine with the guard in it.

    `checks` are those that are on, `checked` how often each was made. `ended` tells whether the process wrote its
    own account at its end; without it, counts are unknown (`steps` None). `own_seconds` is the guard's own time.
    """

    role: str
    stage: str | None = None
    rank: int | None = None
    mode: str = ""
    version: str = ""
    engine: str = ""
    engine_version: str | None = None
    checks: tuple[str, ...] = ()
    left_out: tuple[LeftOutCheck, ...] = ()
    steps: int | None = None
    requests: int | None = None
    checked: tuple[tuple[str, int], ...] = ()
    own_seconds: float | None = None
    violations: int = 0

    @property
    def ended(self) -> bool:
        """Whether the process has told how it went."""
        return self.steps is not None


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault that was planted on purpose. `expect` are the kinds that name it rightly, `told` what else it said."""

    fault: str
    stage: str | None = None
    step: int | None = None
    layer: str | None = None
    expect: tuple[str, ...] = ()
    told: str = ""


@dataclass(frozen=True, slots=True)
class GuardRecord:
    """Everything that the guard wrote in one life of an engine.

    `violations` are the first ones in the order of steps and time, `total` counts all. `planted` are faults that
    were planted for a self-test, `problems` say what was wrong with the guard or with its files.
    """

    processes: tuple[GuardedProcess, ...] = ()
    violations: tuple[Violation, ...] = ()
    total: int = 0
    kinds: tuple[tuple[str, int], ...] = ()
    planted: tuple[PlantedFault, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def first(self) -> Violation | None:
        """The violation that matters: later ones are its consequences, or at least may be."""
        return self.violations[0] if self.violations else None

    @property
    def checks(self) -> tuple[str, ...]:
        """Every check that was on in some process, in the order of the processes."""
        return tuple(dict.fromkeys(check for process in self.processes for check in process.checks))

    @property
    def left_out(self) -> tuple[LeftOutCheck, ...]:
        """Checks that no process made, with the reason, each once."""
        on = set(self.checks)
        found = {one.check: one for process in self.processes for one in process.left_out}
        return tuple(one for check, one in found.items() if check not in on)

    @property
    def steps(self) -> int:
        """Steps that the guard was awake for: those of the process that saw most."""
        return max((process.steps or 0 for process in self.processes), default=0)

    @property
    def requests(self) -> int:
        """Requests that took part in them."""
        return max((process.requests or 0 for process in self.processes), default=0)


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A public candidate for what is wrong, in a sentence, and where that was read."""

    id: str
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a kind of violation means. `supports` and `rules_out` are hypotheses that it speaks for and against."""

    kind: str
    meaning: str
    supports: tuple[Hypothesis, ...] = ()
    rules_out: tuple[Hypothesis, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Located:
    """Where a failure begins: the first violation in a trial that failed, and what that kind means."""

    trial: int
    violation: Violation
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class GuardedTrial:
    """A trial of a failing configuration with the guard in the engine. `failed` tells whether it failed again."""

    trial: int
    failed: bool
    record: GuardRecord


@dataclass(frozen=True, slots=True)
class GuardedRun:
    """An engine that ran with the guard in it. `failure` is how the engine failed, in words, empty if it did not.

    `asked` says what was asked of it, `folder` where the guard's files lie.
    """

    target: str
    mode: str
    record: GuardRecord
    seconds: float
    asked: str = ""
    failure: str = ""
    untestable: str = ""
    interrupted: bool = False
    folder: str = ""

    @property
    def clean(self) -> bool:
        """Whether the guard was there, and neither it nor anybody else has anything to complain of."""
        return bool(self.record.processes) and not (self.record.total or self.failure or self.untestable)


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether a planted fault was caught. `found` is the violation that names it, `reason` why there is none.

    `applies` is False for a fault that this launch has no place for.
    """

    fault: str
    planted: PlantedFault | None
    found: Violation | None
    reason: str = ""
    applies: bool = True

    @property
    def caught(self) -> bool:
        """Whether it was named rightly."""
        return self.found is not None


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The guard tried on an engine: a healthy run, and faults that were planted."""

    target: str
    healthy: GuardedRun
    proofs: tuple[Proof, ...]
    seconds: float
    folder: str = ""
    interrupted: bool = False

    @property
    def passed(self) -> bool:
        """Whether the healthy run was clean and every fault that applies was caught."""
        return self.healthy.clean and all(proof.caught for proof in self.proofs if proof.applies)
