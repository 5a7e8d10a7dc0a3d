"""From the trials of a run and the search's conclusion to the one value that every report reads."""

import json
import os
import shlex
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypedDict

import culpa
from culpa.engines.base import EngineAdapter, Reading
from culpa.experiment import Ending
from culpa.host import Machine
from culpa.locate import located
from culpa.model import (
    Arm,
    Configuration,
    Count,
    ExperimentOutcome,
    Factor,
    Gpu,
    KnownIssue,
    Launch,
    Member,
    Outcome,
    Signature,
    Trial,
    XidSeen,
    all_suspect,
)
from culpa.model.experiment import Commands, Experiment, OtherFailure, RootEvidence
from culpa.model.options import IsolateOptions
from culpa.model.redact import redact
from culpa.model.trial import NO_TEST
from culpa.placement import gpu_of_rank
from culpa.record import Record
from culpa.session import KERNEL, KERNEL_LOG
from culpa.triage import same_failure


class _Diagnosis(TypedDict, total=False):
    gpu: Gpu | None
    xids: tuple[XidSeen, ...]
    known_issues: tuple[KnownIssue, ...]


EXCERPT_BEFORE = 3
EXCERPT_AFTER = 14
MOST_SCANNED = 200


def assemble(
    *,
    adapter: EngineAdapter,
    launch: Launch,
    reading: Reading,
    options: IsolateOptions,
    record: Record,
    ending: Ending,
    run_id: str,
    started: str,
    elapsed_seconds: float,
    folder: Path,
    environment: Sequence[tuple[str, str]],
    machine: Machine,
    factors_file: str | None = None,
    interrupted: bool = False,
) -> Experiment:
    """Build the value. Reads the evidence folder for the excerpt around the root event, nothing else."""
    trials = record.ordered()
    conclusion, guarded = located(ending.conclusion, trials, ending.factors, folder)
    failed, tried = record.count_outcomes(record.baselines())
    suspects = all_suspect(ending.factors)
    hunted = record.hunted.signature if record.hunted else None
    return Experiment(
        culpa_version=culpa.__version__,
        run_id=run_id,
        started=started,
        elapsed_seconds=elapsed_seconds,
        engine=adapter.name,
        engine_version=_engine_version(trials),
        launch=launch,
        conclusion=conclusion,
        baseline=Count(failed, tried),
        factors=ending.factors,
        left_out=reading.left_out,
        trials=trials,
        hunted=hunted,
        root=_root_evidence(trials, folder) if hunted else None,
        other_failures=_other_failures(trials, suspects),
        commands=_commands(adapter, launch, ending, trials, suspects, record) if hunted else None,
        confidence=options.confidence,
        options=_options_text(options, factors_file),
        arms=options.arms,
        environment=tuple(environment),
        no_failure=_no_failure_text(ending, trials, record.sizes.refused if record.sizes else ()),
        notes=(*reading.notes, *record.notes, *_placement(hunted, trials, launch, machine)),
        limits_reached=ending.limits_reached,
        interrupted=interrupted,
        folder=str(folder),
        layout=reading.layout,
        guarded=guarded,
    )


def _placement(
    hunted: Signature | None, trials: Sequence[Trial], launch: Launch, machine: Machine
) -> tuple[str, ...]:
    """Which GPU the failing rank of the first failure ran on, where that can be told."""
    failing = next((trial for trial in trials if trial.outcome is Outcome.FAIL), None)
    if hunted is None or hunted.rank is None or failing is None or not machine.gpus:
        return ()
    sizes = {**dict(failing.effective), **failing.configuration.as_dict()}
    told = gpu_of_rank(hunted.rank, sizes, machine, launch.environment(os.environ))
    return (told,) if told else ()


def _engine_version(trials: Sequence[Trial]) -> str | None:
    for trial in trials:
        version = dict(trial.effective).get("engine_version")
        if version:
            return version
    return None


def _root_evidence(trials: Sequence[Trial], folder: Path) -> RootEvidence | None:
    """The root event of the first trial that failed with the hunted signature, baselines first."""
    failing = [trial for trial in trials if trial.outcome is Outcome.FAIL and trial.root is not None]
    failing.sort(key=lambda trial: (trial.purpose != "baseline", trial.id))
    for trial in failing:
        assert trial.root is not None
        name = KERNEL_LOG if trial.root.process == KERNEL else "engine.log"
        log = f"{trial.folder}/{name}"
        incident = _incident(folder / trial.folder / "trial.json")
        cascade = incident.get("cascade_lines") or []
        return RootEvidence(
            event=trial.root,
            trial=trial.id,
            log=log if (folder / log).exists() and trial.root.line else "",
            excerpt=_excerpt(folder / log, trial.root.line),
            async_stack=trial.async_stack,
            cascade=_cascade_text(cascade),
            missing=tuple(incident.get("missing_evidence") or ()),
            **_diagnosis(incident.get("diagnosis")),
        )
    return None


def _diagnosis(told: object) -> _Diagnosis:
    """GPU, Xids and known issues as the trial's evidence has them; nothing where it has none or is damaged."""
    if not isinstance(told, dict):
        return {}
    try:
        gpu = Gpu(**told["gpu"]) if told.get("gpu") else None
        xids = tuple(XidSeen(**one) for one in told.get("xids") or ())
        issues = tuple(
            KnownIssue(**{**one, "differs": tuple(one.get("differs") or ())})
            for one in told.get("known_issues") or ()
        )
    except (AttributeError, TypeError):
        return {}
    return {"gpu": gpu, "xids": tuple(xid for xid in xids if not xid.stale), "known_issues": issues}


def _incident(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    incident = content.get("incident") if isinstance(content, dict) else None
    return incident if isinstance(incident, dict) else {}


def _cascade_text(lines: Sequence[object]) -> str:
    if not lines:
        return ""
    shown = ", ".join(str(line) for line in lines[:8])
    more = f" and {len(lines) - 8} more" if len(lines) > 8 else ""
    plural = "s" if len(lines) > 1 else ""
    return f"line{plural} {shown}{more} of the log only report consequences of it"


def _excerpt(log: Path, line: int) -> tuple[tuple[int, str], ...]:
    if line <= 0 or not log.exists():
        return ()
    first = max(1, line - EXCERPT_BEFORE)
    with log.open(encoding="utf-8", errors="replace") as file:
        numbered = enumerate(islice(file, first - 1, line + MOST_SCANNED), start=first)
        # A debugger that is started by the crash first lists threads: they say nothing.
        told = ((number, text) for number, text in numbered if not text.startswith("[New LWP"))
        chosen = islice(told, EXCERPT_BEFORE + 1 + EXCERPT_AFTER)
        return tuple((number, redact(text.rstrip("\r\n")[:400])) for number, text in chosen)


def _other_failures(trials: Sequence[Trial], suspects: Configuration) -> tuple[OtherFailure, ...]:
    """Failures with another signature, grouped; the levels are those that all trials of a group changed."""
    groups: list[tuple[Signature, list[Trial]]] = []
    for trial in trials:
        if trial.outcome is not Outcome.OTHER or trial.signature is None:
            continue
        for signature, members in groups:
            if same_failure(signature, trial.signature):
                members.append(trial)
                break
        else:
            groups.append((trial.signature, [trial]))
    found = []
    # A level at which the hunted failure shows too does not make the difference.
    innocent = {
        pair
        for trial in trials
        if trial.outcome is Outcome.FAIL
        for pair in _changed(trial.configuration, suspects).items()
    }
    for signature, members in groups:
        changed = [set(_changed(trial.configuration, suspects).items()) for trial in members]
        common = sorted(set.intersection(*changed) - innocent)
        if common:
            note = "a symptom shift or a second fault: seen whenever these levels were changed; no workaround"
        else:
            note = (
                "a second fault, or another face of the same: no change is common to the trials that show it"
            )
        found.append(OtherFailure(signature, tuple(common), note, tuple(trial.id for trial in members)))
    return tuple(found)


def _changed(configuration: Configuration, suspects: Configuration) -> dict[str, str]:
    levels = suspects.with_levels(configuration.as_dict())
    return {name: levels[name] for name in levels.differing(suspects)}


def _commands(
    adapter: EngineAdapter,
    launch: Launch,
    ending: Ending,
    trials: Sequence[Trial],
    suspects: Configuration,
    record: Record,
) -> Commands | None:
    """The failing and the passing trial that lie nearest together, near the user's launch if there is a choice."""
    full = {trial.id: suspects.with_levels(trial.configuration.as_dict()) for trial in trials}
    failing = [trial for trial in trials if trial.outcome is Outcome.FAIL]
    passing = [
        trial
        for trial in trials
        if trial.outcome is Outcome.PASS and trial.purpose not in ("baseline", *NO_TEST)
    ]
    # A configuration that failed even once is no passing one, however often it passed.
    failed_configurations = {full[trial.id] for trial in failing}
    passing = [trial for trial in passing if full[trial.id] not in failed_configurations]
    if not failing:
        return None
    if not passing:
        first = failing[0]
        return Commands(
            failing=_command(adapter, launch, full[first.id]),
            failing_trial=first.id,
            failing_request=_request_text(record, ending.factors, full[first.id]),
        )
    asked_for = {factor.name for factor in ending.factors if factor.scope == "request"}
    bad, good = min(
        ((bad, good) for bad in failing for good in passing),
        key=lambda pair: (
            len(full[pair[0].id].differing(full[pair[1].id])),
            # What is asked can't be changed by whoever runs the engine: a change of the launch tells more.
            len(asked_for.intersection(full[pair[0].id].differing(full[pair[1].id]))),
            len(full[pair[0].id].differing(suspects)),
            pair[0].id,
            pair[1].id,
        ),
    )
    differing = tuple(
        Member(name, full[bad.id].get(name), full[good.id].get(name))
        for name in full[bad.id].differing(full[good.id])
    )
    return Commands(
        failing=_command(adapter, launch, full[bad.id]),
        passing=_command(adapter, launch, full[good.id]),
        differing=differing,
        failing_trial=bad.id,
        passing_trial=good.id,
        failing_request=_request_text(record, ending.factors, full[bad.id]),
        passing_request=_request_text(record, ending.factors, full[good.id]),
    )


def _command(adapter: EngineAdapter, launch: Launch, configuration: Configuration) -> str:
    return redact(adapter.apply(launch, configuration).command_line())


def _request_text(record: Record, factors: Sequence[Factor], configuration: Configuration) -> str:
    """What has to be asked, in words; empty where the engine fails before any request."""
    if record.hunted is None or record.hunted.probe is None:
        return ""
    levels = ", ".join(
        f"{factor.name}={configuration.get(factor.name)}" for factor in factors if factor.scope == "request"
    )
    return f"probe {record.hunted.probe}" + (f" with {levels}" if levels else "")


def _options_text(options: IsolateOptions, factors_file: str | None) -> tuple[tuple[str, str], ...]:
    shown = (
        ("max-trials", options.max_trials),
        ("max-time", options.max_seconds),
        ("repeat", options.repeat if options.repeat > 1 else None),
        *(("only", name) for name in options.only),
        *(("skip", name) for name in options.skip),
        *(("arm", shlex.quote(arm_text(arm))) for arm in options.arms),
        *(("probe", name) for name in options.probes),
        ("probe-tokens", options.probe_tokens),
        ("request", options.request_file),
        ("kernel-log", options.kernel_log),
        ("factors", factors_file),
        ("seed", options.seed),
    )
    switches = () if options.guard is None else (("guard" if options.guard else "no-guard", ""),)
    return (*((name, str(value)) for name, value in shown if value not in (None, "")), *switches)


def arm_text(arm: Arm) -> str:
    """The arm as `--arm` takes it."""
    levels = ",".join(f"{name}={level}" for name, level in arm.levels)
    return f"{arm.name}: {levels}" if set(arm.name).isdisjoint("=,:") else levels


def _no_failure_text(ending: Ending, trials: Sequence[Trial], refused: Sequence[str]) -> str:
    if ending.conclusion.outcome is not ExperimentOutcome.NO_FAILURE:
        return ""
    baselines = [trial for trial in trials if trial.purpose == "baseline"]
    requests = sum(trial.exposure.requests for trial in baselines)
    tokens = sum(trial.exposure.tokens for trial in baselines)
    minutes = sum(trial.seconds for trial in baselines) / 60
    launches = f"{len(baselines)} launch{'es' if len(baselines) != 1 else ''}"
    text = (
        f"No failure in {launches} of the command as it is: {requests} requests, {tokens} tokens, "
        f"{minutes:.1f} minutes."
    )
    # A prompt beyond the context, say, asked nothing: who reads "no failure" must know.
    return f"{text} The engine refused, and so was not asked: {', '.join(refused)}." if refused else text
