"""An incident with all that the rest of the log says of it."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from culpa.model import Diagnosis, Gpu, Incident, KnownIssue, XidSeen
from culpa.model.diagnosis import Confidence, SettingValue
from culpa.triage.clock import NO_MOMENT, Moment
from culpa.triage.context import Context
from culpa.triage.events import Event
from culpa.triage.facts import Facts
from culpa.triage.gpu_place import place_gpu
from culpa.triage.known_issues import Evidence, matching
from culpa.triage.lines import Ranks
from culpa.triage.order import in_order
from culpa.triage.place import rank_name
from culpa.triage.verdict import judge_fault
from culpa.triage.xid_catalogue import xid_catalogue
from culpa.triage.xid_judgement import HALTED, JudgedXid, is_older, judge_xids
from culpa.triage.xids import describe, one_bad_launch

_ENGINES = {"vllm": "vllm", "llamacpp": "llama.cpp"}
#: Time-outs of the GPU's system processor name whoever happened to ask it.
_NAMES_A_BYSTANDER = frozenset({119, 120})
_MOST_XIDS = 256
_MOST_LINES = 4000
_ALONE = "nothing speaks against it, and no failure is to be seen to which it belongs"
#: Classes of which the log shows that they are so, never by itself why.
_SEEN_FROM_OUTSIDE = frozenset({"hang_timeout", "nccl_timeout", "nan_logits", "gibberish", "silent_death"})
#: A frame may stand so many lines above the exception that it belongs to.
_FRAMES_ABOVE = 400


def without_stale(events: Sequence[Event], facts: Facts, context: Context) -> list[Event]:
    """The events without those kernel messages that belong to something older, or that only follow the engine's own
    fault: they must not become a root."""
    if not any(event.kind == "kernel" for event in events):
        return list(events)
    failed = _first_own(events)
    moment, line = (failed.moment, failed.line) if failed is not None else (NO_MOMENT, None)
    judged = {
        one.xid.line: one.stale or (failed is not None and one.teardown and one.xid.code in HALTED)
        for one in judge_xids(context, moment, line, facts.pids)
    }

    def stale(event: Event) -> bool:
        if event.kind != "kernel" or event.line in judged:
            return judged.get(event.line, False)
        own = event.pid is not None and event.pid in facts.pids
        return not own and is_older(event.moment, context, moment, line)

    return [event for event in events if not stale(event)]


def _first_own(events: Sequence[Event]) -> Event | None:
    """The first thing that the engine itself says of its failure."""
    said = [event for event in events if event.kind != "kernel"]
    for roles in (("cause",), ("symptom", "consequence", "header")):
        chosen = [event for event in said if event.role in roles and (roles != ("cause",) or event.fatal)]
        if chosen:
            return in_order(chosen)[0]
    return None


def diagnose(
    incident: Incident, events: Sequence[Event], facts: Facts, context: Context, dialect: str
) -> Incident:
    """The incident with its diagnosis. Its place is filled in from the GPU where only that tells it."""
    root = incident.root
    event = next((one for one in events if root is not None and one.line == root.line), None)
    told = _told(incident, event, events)
    failed = told.moment if told is not None and told.moment.shown else event.moment if event else NO_MOMENT
    judged = judge_xids(context, failed, root.line if root else None, facts.pids)
    ranks: Ranks = incident.first_failed_rank or ()
    gpu = place_gpu(
        context,
        judged,
        symptom=incident.symptom,
        root_line=root.line if root else None,
        pids=_pids(incident, event, told),
        ranks=ranks,
        only_tensor_parallel=facts.only_tensor_parallel,
    )
    incident = _with_rank(incident, gpu, event, facts, context)
    verdict = judge_fault(
        incident.symptom, root.text if root else "", judged, kernel_seen=context.kernel_lines > 0
    )
    configuration = context.configuration.values()
    engine = context.configuration.engine or _ENGINES.get(dialect) or context.engine_of_frames
    own = [one for one in judged if not one.stale]
    issues = _issues(incident, event, events, context, engine, own, hardware=verdict.blame == "hardware")
    confidence, reasons = _confidence(incident, event, told)
    return replace(
        incident,
        diagnosis=Diagnosis(
            engine=engine,
            engine_version=context.configuration.version,
            gpu=gpu,
            xids=tuple(_seen(one) for one in judged[:_MOST_XIDS]),
            verdict=verdict,
            configuration=tuple(configuration.items()),
            load=tuple(context.load.at(root.line if root else None).items()),
            known_issues=issues,
            confidence=confidence,
            confidence_why=reasons,
        ),
    )


def xids_alone(context: Context, pids: Collection[int]) -> tuple[XidSeen, ...]:
    """The Xids of a log that shows no failure to which they could belong."""
    judged = judge_xids(context, NO_MOMENT, None, pids)[:_MOST_XIDS]
    return tuple(_seen(one if one.stale or one.teardown else replace(one, why=_ALONE)) for one in judged)


def _told(incident: Incident, event: Event | None, events: Sequence[Event]) -> Event | None:
    """The engine's own words for the root event, where the root is a line of the kernel or of a library."""
    if event is not None and event.role != "clue" and event.kind != "kernel":
        return event
    alternates = set(incident.root_alternates)
    own = [one for one in events if one.line in alternates and one.kind != "kernel" and one.role == "cause"]
    return in_order(own)[0] if own else event


def _pids(incident: Incident, event: Event | None, told: Event | None) -> frozenset[int]:
    found = {one.pid for one in (event, told) if one is not None and one.pid is not None}
    return frozenset(found) if incident.symptom != "host_oom_kill" else frozenset()


def _with_rank(
    incident: Incident, gpu: Gpu | None, event: Event | None, facts: Facts, context: Context
) -> Incident:
    """A kernel message names a GPU, not a rank: the rank follows where the log says who uses that GPU."""
    kernel = event is not None and event.kind == "kernel"
    if incident.first_failed_rank is not None or gpu is None or not kernel or incident.root is None:
        return incident
    xid = next((one for one in context.xids if one.line == incident.root.line), None)
    place, local = context.gpus.place_of_bus(gpu.pci_bus)
    named = xid is not None and xid.code not in _NAMES_A_BYSTANDER
    ranks = (facts.ranks_of(xid.pid) if xid is not None and named else ()) or place or ()
    if not ranks and local is not None and (pid := context.gpus.pid_of_local(local)) is not None:
        ranks = facts.ranks_of(pid)
    if not ranks:
        return incident
    name = rank_name(ranks)
    return replace(incident, first_failed_rank=ranks, rank=name, root=replace(incident.root, rank=name))


def _seen(judged: JudgedXid) -> XidSeen:
    xid = judged.xid
    meaning = xid_catalogue().get(xid.code)
    return XidSeen(
        code=xid.code,
        pci_bus=xid.pci_bus,
        line=xid.line,
        stale=judged.stale,
        teardown=judged.teardown,
        why=judged.why,
        pid=xid.pid,
        time=xid.time,
        means=meaning.meaning if meaning else "a code that the catalogue does not have",
        cause=meaning.cause if meaning else "either",
        advice=meaning.advice if meaning else "look it up in NVIDIA's Xid catalogue",
        detail=describe(xid),
    )


def _issues(
    incident: Incident,
    event: Event | None,
    events: Sequence[Event],
    context: Context,
    engine: str | None,
    own: Sequence[JudgedXid],
    *,
    hardware: bool,
) -> tuple[KnownIssue, ...]:
    configuration: dict[str, SettingValue] = dict(context.configuration.values())
    if one_bad_launch([one.xid for one in own]):
        configuration["one_bad_launch"] = True
    return matching(
        Evidence(
            engine=engine,
            version=context.configuration.version,
            symptom=incident.symptom,
            lines=_evidence_lines(incident, event, events, context),
            configuration=configuration,
            xids=frozenset(one.xid.code for one in own),
            hardware=hardware,
        )
    )


def _evidence_lines(
    incident: Incident, event: Event | None, events: Sequence[Event], context: Context
) -> list[str]:
    """The root event, what states the same, its frames, and lines that some known issue asks for."""
    lines = [incident.root.text] if incident.root is not None else []
    same = {*incident.root_alternates, *((incident.root.line,) if incident.root else ())}
    lines += [one.text for one in events if one.line in same]
    stated = [one for one in events if one.line in same and one.exception is not None]
    for one in stated or ([event] if event is not None else []):
        first = one.header or one.line - _FRAMES_ABOVE
        lines += context.frames_of(one.process, min(first, one.line), one.line)
    lines += list(context.signs)
    return lines[:_MOST_LINES]


def _confidence(
    incident: Incident, event: Event | None, told: Event | None
) -> tuple[Confidence, tuple[str, ...]]:
    if event is None or incident.root is None:
        return "low", ("only the exit tells of the failure",)
    if incident.missing_evidence and event.role in ("consequence", "header", "echo"):
        return "low", ("the log holds only consequences",)
    reasons: list[str] = []
    level: Confidence = "high"
    if event.role == "symptom" or incident.symptom in _SEEN_FROM_OUTSIDE:
        level = "medium"
        reasons.append("the log shows that something failed, not what")
    elif event.symptom in ("exception", "error_exit", "startup_error", "assertion"):
        level = "medium"
        reasons.append("an error of no known class")
    elif event.role == "cause" and not event.fatal:
        level = "medium"
        reasons.append("engines may survive such an error")
    if not _any_time(event.moment, told):
        reasons.append("the order is that of the file: the line shows no time")
    elif event.moment.stamp is None:
        reasons.append("the order is known to a second")
    else:
        reasons.append("the order is known to less than a second")
    if level == "high":
        reasons.insert(0, "the text names its own cause")
    return level, tuple(reasons)


def _any_time(moment: Moment, told: Event | None) -> bool:
    return moment.shown or (told is not None and told.moment.shown)
