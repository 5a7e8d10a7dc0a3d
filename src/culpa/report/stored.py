"""A run of `culpa isolate` read back from its folder: the experiment, from its result and its journal."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from culpa.engines.command import parse_command
from culpa.engines.errors import BadLaunch
from culpa.model import (
    Arm,
    Commands,
    Conclusion,
    Count,
    Experiment,
    ExperimentOutcome,
    Factor,
    FactorStatus,
    Finding,
    Gpu,
    KnownIssue,
    Launch,
    LeftOut,
    Level,
    Member,
    OtherFailure,
    RootEvent,
    RootEvidence,
    Signature,
    XidSeen,
)
from culpa.model.layout_finding import LayoutFinding
from culpa.record import Record
from culpa.report.schema import (
    CountDocument,
    ExperimentDocument,
    FindingDocument,
    RootEventDocument,
    SignatureDocument,
)
from culpa.report.words import NOT_JUDGED
from culpa.store import EXPERIMENT, BadRunFolder, read_result


def stored_experiment(folder: Path, header: Mapping[str, Any], record: Record) -> Experiment:
    """The experiment as it was when its reports were written.

    Trials are the journal's, all else is what `experiment.json` says. Raises BadRunFolder for a run without a result
    and for a result that can't be read.
    """
    content = read_result(folder)
    if content is None:
        what = "can't be read" if (folder / EXPERIMENT).exists() else "is not there yet"
        raise BadRunFolder(
            f"{folder}: the result of the run, {EXPERIMENT}, {what}: end the run with culpa isolate --resume {folder}"
        )
    try:
        document = ExperimentDocument.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadRunFolder(
            f"{folder / EXPERIMENT}: is not of the schema culpa.experiment/1: {where}: {first['msg']}"
        ) from None
    launched = header.get("factors")
    launch_factors = [str(name) for name in launched] if isinstance(launched, list) else None
    return Experiment(
        culpa_version=document.culpa_version,
        run_id=document.run_id,
        started=document.started,
        elapsed_seconds=document.elapsed_seconds or 0.0,
        engine=document.engine,
        engine_version=document.engine_version,
        launch=_launch(header, document),
        conclusion=Conclusion(
            outcome=ExperimentOutcome(document.outcome),
            findings=tuple(_finding(one) for one in document.findings),
            statuses=_statuses(document),
            not_excluded=tuple(document.not_excluded),
        ),
        baseline=_count(document.baseline),
        factors=_factors(document, launch_factors),
        left_out=tuple(
            LeftOut(one.name, one.reason)
            for one in document.factors
            if one.suspect is None or one.safe is None
        ),
        trials=record.ordered(),
        hunted=_signature(document.signature),
        root=_root(document.root_event),
        other_failures=tuple(
            OtherFailure(
                _signature(one.signature) or Signature("unknown"),
                tuple(one.levels.items()),
                one.note,
                tuple(one.trials),
            )
            for one in document.other_failures
        ),
        commands=_commands(document),
        confidence=document.confidence or 0.0,
        options=tuple((one.name, one.value) for one in document.options),
        arms=_arms(document),
        environment=tuple(document.environment.items()),
        no_failure=document.no_failure,
        notes=tuple(document.notes),
        limits_reached=tuple(document.limits_reached),
        interrupted=document.interrupted,
        folder=str(folder),
        layout=tuple(
            LayoutFinding(one.id, one.level, one.text, tuple(one.factors)) for one in document.layout
        ),
        guarded=tuple(document.guard),
    )


def _launch(header: Mapping[str, Any], document: ExperimentDocument) -> Launch:
    words = header.get("words")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        try:
            return parse_command(words)
        except BadLaunch:
            pass  # the line of the result says the same
    line = document.launch.command
    try:
        return Launch(argv=tuple(shlex.split(line)), cwd=document.launch.cwd)
    except ValueError:
        return Launch(argv=(line,), cwd=document.launch.cwd)


def _arms(document: ExperimentDocument) -> tuple[Arm, ...]:
    """The arms that were asked for, by the levels in which they differ from the first row, the launch as it is."""
    if not document.arms:
        return ()
    launched = document.arms[0].levels
    return tuple(
        Arm(
            one.name,
            tuple((name, level) for name, level in one.levels.items() if launched.get(name) != level),
        )
        for one in document.arms[1:]
    )


def _count(count: CountDocument) -> Count:
    return Count(count.failed, count.trials)


def _signature(found: SignatureDocument | None) -> Signature | None:
    return None if found is None else Signature(found.symptom, found.process, found.rank, found.event)


def _finding(found: FindingDocument) -> Finding:
    return Finding(
        members=tuple(Member(one.name, one.suspect, one.safe) for one in found.factors),
        level=Level(found.level),
        probability=found.probability or 0.0,
        sufficient=_count(found.sufficient),
        necessary=tuple((name, _count(count)) for name, count in found.necessary.items()),
        conditions=tuple(found.conditions),
        located=found.located,
    )


def _statuses(document: ExperimentDocument) -> tuple[FactorStatus, ...]:
    return tuple(
        FactorStatus(one.name, one.suspect, one.safe, one.status, one.reason)
        for one in document.factors
        if one.suspect is not None and one.safe is not None and one.reason != NOT_JUDGED
    )


def _factors(document: ExperimentDocument, launched: Sequence[str] | None) -> tuple[Factor, ...]:
    """What was varied. The journal's header names the factors of the launch, in the catalogue's order: all others are
    of the request."""
    order = {name: place for place, name in enumerate(launched or ())}
    found = [
        Factor(
            name=one.name,
            suspect=one.suspect,
            safe=(one.safe,),
            scope="launch" if launched is None or one.name in order else "request",
        )
        for one in document.factors
        if one.suspect is not None and one.safe is not None and one.suspect != one.safe
    ]
    return tuple(sorted(found, key=lambda factor: order.get(factor.name, len(order))))


def _commands(document: ExperimentDocument) -> Commands | None:
    found = document.commands
    if found.failing is None:
        return None
    return Commands(
        failing=found.failing,
        passing=found.passing or "",
        differing=tuple(Member(one.name, one.suspect, one.safe) for one in found.differing),
        failing_trial=found.failing_trial,
        passing_trial=found.passing_trial,
        failing_request=found.failing_request or "",
        passing_request=found.passing_request or "",
    )


def _root(found: RootEventDocument | None) -> RootEvidence | None:
    if found is None:
        return None
    return RootEvidence(
        event=RootEvent(found.line, found.text, found.time, found.process, found.rank),
        trial=found.trial,
        log=found.log,
        excerpt=tuple((one.line, one.text) for one in found.excerpt),
        async_stack=found.async_stack,
        cascade=found.cascade,
        missing=tuple(found.missing_evidence),
        gpu=Gpu(**found.gpu.model_dump()) if found.gpu else None,
        xids=tuple(
            XidSeen(
                one.code,
                one.pci_bus,
                line=0,
                stale=False,
                teardown=one.teardown,
                means=one.meaning,
                detail=one.detail,
            )
            for one in found.xids
        ),
        known_issues=_issues(found),
    )


def _issues(found: RootEventDocument) -> tuple[KnownIssue, ...]:
    issues: Sequence[dict[str, Any]] = [one.model_dump() for one in found.known_issues]
    return tuple(KnownIssue(**{**one, "differs": tuple(one.get("differs") or ())}) for one in issues)
