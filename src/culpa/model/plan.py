"""What an experiment is about to do: shown by `--dry-run`, and at the head of the live view."""

from dataclasses import dataclass

from culpa.model.factor import Factor, LeftOut
from culpa.model.launch import Launch
from culpa.model.layout_finding import LayoutFinding


@dataclass(frozen=True, slots=True)
class PlannedArm:
    """A configuration that will certainly be run, as differences from the user's launch, and why."""

    name: str
    purpose: str
    levels: tuple[tuple[str, str], ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The experiment before its first trial.

    `predicted_trials` and `predicted_seconds` are estimates (None where there is nothing to estimate from);
    `max_trials` and `max_seconds` are the hard limits that the user set, None for no limit. `probes` names
    the probes in the order in which they are asked. `layout` is what planning alone says of the launch.
    """

    engine: str
    launch: Launch
    factors: tuple[Factor, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    arms: tuple[PlannedArm, ...] = ()
    probes: tuple[str, ...] = ()
    engine_version: str | None = None
    run_id: str = ""
    folder: str = ""
    confidence: float = 0.95
    predicted_trials: int | None = None
    predicted_seconds: float | None = None
    max_trials: int | None = None
    max_seconds: float | None = None
    notes: tuple[str, ...] = ()
    layout: tuple[LayoutFinding, ...] = ()
