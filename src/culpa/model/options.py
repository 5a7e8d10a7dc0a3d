"""What a user may ask of an experiment, beside the launch itself."""

from dataclasses import dataclass

from culpa.model.launch import Arm


@dataclass(frozen=True, slots=True)
class IsolateOptions:
    """Options of `culpa isolate`. Times are seconds.

    `patience` bounds the time spent on launching again and again a launch that has not failed yet;
    `max_baselines` the number of these launches, `repeat` the least number of trials of each configuration.
    `probes` names the kinds of request that are asked, all of them if it is empty. `questions` and `records` are
    the user's own probes in their text forms, `request_file` names a file with the user's own failing requests,
    `kernel_log` one to which the host's kernel messages are appended. `guard` puts the guard into the engine of every
    trial (True), of none (False), or of the last one of an isolated configuration (None).
    """

    confidence: float = 0.95
    max_trials: int | None = None
    max_seconds: float | None = None
    repeat: int = 1
    patience: float = 180.0
    max_baselines: int = 10
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = ()
    thresholds: bool = True
    probes: tuple[str, ...] = ()
    probe_tokens: int | None = None
    questions: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    request_file: str | None = None
    kernel_log: str | None = None
    start_timeout: float = 900.0
    stall_timeout: float = 60.0
    request_timeout: float = 600.0
    seed: int = 0
    guard: bool | None = None
