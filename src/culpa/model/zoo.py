"""Faults whose truth is known, and what came of looking for one."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownPlace:
    """Where a fault of state or bindings begins: the guard's kind, the stage, the layer (`first`, or `first` or
    `second` and a type, on that stage) and the step, as a rule over the schedule (`culpa.truth`)."""

    kind: str
    stage: str
    layer: str
    step: str


@dataclass(frozen=True, slots=True)
class KnownFault:
    """One fault of the reference engine with its ground truth.

    `condition` is a boolean expression over factors that says when it fires. `expected` lists the sets of
    factors that are right to find: one, or one for each of several independent faults. `symptom` is a class of
    the signature table, `rank` the stage that fails first (None where no stage can be named from outside).
    `argv` and `env` make a launch that shows it, `rate` is the share of launches in which it is armed;
    `arms`, `skip`, `probes` and `probe_tokens` are options of `culpa isolate`, `requests` a file beside the table for
    its `--request`. `located` is where each begins, empty for what is no fault of state.
    `reports` are public reports that it is like.
    """

    name: str
    title: str
    mechanism: str
    condition: str
    expected: tuple[tuple[str, ...], ...]
    symptom: str
    reports: tuple[str, ...]
    rank: str | None = None
    located: tuple[KnownPlace, ...] = ()
    argv: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    rate: float = 1.0
    arms: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    probe_tokens: int | None = None
    requests: str | None = None


@dataclass(frozen=True, slots=True)
class ZooResult:
    """What came of one fault.

    `exact` is True if the sets that were found are those expected, no more and no less; `rank_right` is None
    where the table names no rank. `bound` is -log2 of the prior of the expected sets, in bits: no search that
    learns one bit a trial needs fewer trials. `seconds` is the whole run. `located` is where
    the guard saw each finding begin; `located_right` tells whether kind, stage, layer and step are those of the table,
    None where nothing is to be located and nothing was.
    """

    fault: str
    expected: tuple[tuple[str, ...], ...]
    found: tuple[tuple[str, ...], ...]
    exact: bool
    symptom: str
    symptom_right: bool
    rank: str | None
    rank_right: bool | None
    trials: int
    bound: float | None
    seconds: float
    located: tuple[str, ...] = ()
    located_right: bool | None = None
