"""Cause against cascade: from the events of a log to the first thing that went wrong."""

import re
from collections.abc import Sequence
from dataclasses import replace

from culpa.model import Incident, RootEvent
from culpa.triage.events import MAX_TEXT, Event, Weight
from culpa.triage.evidence import missing_evidence
from culpa.triage.exits import event_of_exit, evidence_after_exit, signal_name, symptom_of_exit
from culpa.triage.facts import Facts
from culpa.triage.last_words import LastWords
from culpa.triage.lines import LogLine
from culpa.triage.normal import family, normalise
from culpa.triage.order import apart, in_order, within
from culpa.triage.place import first_failed, rank_name, speaker_of
from culpa.triage.tables import load_tables

#: Consequences that say by themselves that the engine is dead; the others occur at every shutdown too.
_DEADLY = frozenset({"engine_dead", "silent_death", "cuda_error"})
#: Errors of which nothing is known but that they were errors.
_UNCLASSIFIED = frozenset({"exception", "assertion", "startup_error", "error_exit"})
#: How far from the end an error may stand and still be of the same burst, in seconds.
_BURST_SECONDS = 30.0
#: How many lines apart two sentences about one event may stand.
_NEIGHBOURS = 6
#: How far below "terminate called" its reason stands.
_WHAT_WITHIN = 3
#: The kernel and the process tell of one fault within so many seconds.
_SAME_FAULT_SECONDS = 5.0
_BUS = re.compile(r"Xid \(PCI:([0-9a-fA-F:.]{4,20})\)")
_KIND_RANK = {"worker": 0, "engine_core": 1, None: 2, "api_server": 3}


def judge(
    events: Sequence[Event],
    facts: Facts,
    *,
    open_tracebacks: Sequence[tuple[LogLine, str | None]],
    dialect: str,
    exit_code: int | None,
    alive: bool,
    request_failed: bool = False,
    last_words: LastWords | None = None,
) -> Incident | None:
    """The incident that the events amount to, or None if nothing has failed.

    Errors that an engine may survive count only once it has ended in another way than a clean exit; of those
    a failed allocation also once a request failed. `last_words` is what the process said last, and the root
    of a bad exit of which nothing else is known.
    """
    default_kind = "server" if dialect == "llamacpp" else None
    ended_badly = not alive and (exit_code != 0 or not facts.ready)
    said = last_words if ended_badly and exit_code and signal_name(exit_code) is None else None
    root = _root(events, facts, ended_badly=ended_badly, crashed=_crashed(exit_code))
    remark = root is not None and root.role == "cause" and root.weight is Weight.REMARK
    if remark and said is not None and said.error is not None:
        root = None  # the process said itself what ended it
    if root is None and alive:
        root = _survived(events, facts, request_failed=request_failed)
    if root is None and ended_badly and open_tracebacks:
        return _cut_traceback(open_tracebacks, default_kind)
    if root is None and not (_crashed(exit_code) and facts.ready):
        root = _consequence(events, alive=alive, ended_badly=ended_badly)
    if root is None and said is not None and said.line is not None:
        return _last_words(said.line, facts, default_kind)
    if root is None:
        asked_for = facts.orderly_ends and signal_name(exit_code) in ("SIGTERM", "SIGINT")
        if exit_code is None or exit_code == 0 or asked_for:
            return None
        return Incident(
            symptom=symptom_of_exit(exit_code),
            root=None,
            event=event_of_exit(exit_code),
            process=default_kind,
            missing_evidence=evidence_after_exit(exit_code),
        )
    return _incident(root, events, facts, dialect, default_kind)


def _crashed(exit_code: int | None) -> bool:
    return signal_name(exit_code) not in (None, "SIGTERM", "SIGINT")


def _root(events: Sequence[Event], facts: Facts, *, ended_badly: bool, crashed: bool) -> Event | None:
    causes = [event for event in events if event.role == "cause"]
    fatal = [event for event in causes if event.fatal]
    weaker = [event for event in causes if not event.fatal] if ended_badly else []
    if facts.ready:  # what came before, the engine has survived
        weaker = [event for event in weaker if not event.before_ready]
    early = [event for event in weaker if event.before_ready and event.weight >= Weight.EXCEPTION]
    symptoms = [
        event
        for event in events
        if event.role == "symptom" and not (event.symptom == "hang_timeout" and event.before_ready)
    ]
    if fatal or early:
        return _best_told(in_order([*fatal, *early]), symptoms)
    if symptoms:
        return in_order(symptoms)[0]
    if crashed and facts.ready:  # a request error does not kill by a signal
        weaker = [event for event in weaker if event.symptom not in _UNCLASSIFIED]
    if crashed:  # nor does a thing that only a warning speaks of
        weaker = [event for event in weaker if event.weight > Weight.REMARK]
    weaker = _before_the_news(weaker, events)
    if weaker:
        strongest = max(event.weight for event in weaker)
        return _burst(in_order([event for event in weaker if event.weight == strongest]))
    return None


def _best_told(ordered: Sequence[Event], symptoms: Sequence[Event]) -> Event:
    """The first event, or the line that tells it better: of an assertion inside a kernel the GPU's own, which carries
    neither time nor process and so stands anywhere; of an abort what the C++ runtime says of the exception, or the
    timeout of a collective that ended the process so."""
    first = ordered[0]
    if first.symptom == "device_side_assert":
        same = (event for event in ordered if event.symptom == first.symptom)
        return next((event for event in same if "Assertion `" in event.text), first)
    if first.symptom != "abort":
        return first
    said = (
        event for event in ordered if 0 < event.line - first.line <= _WHAT_WITHIN and "what()" in event.text
    )
    better = next(said, None)
    if better is not None:
        return better
    timeouts = in_order([event for event in symptoms if event.symptom == "nccl_timeout"])
    # An error of no known class, such as a torn last line, is no better cause than the timeout.
    if timeouts and all(event.symptom == "abort" or event.symptom in _UNCLASSIFIED for event in ordered):
        return timeouts[0]
    return first


def _before_the_news(weaker: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Without the lines of no known class that come after the news that a process is dead or dying: they complain of
    it, or are the torn beginning of its traceback."""
    news = [
        event
        for event in events
        if event.role in ("consequence", "header") and event.symptom in ("engine_dead", "silent_death")
    ]
    if not news or not weaker:
        return list(weaker)
    position = {id(event): index for index, event in enumerate(in_order([*weaker, *news]))}
    first = min(position[id(event)] for event in news)
    return [
        event
        for event in weaker
        if position[id(event)] < first
        or event.weight > Weight.ERROR_LINE
        or event.symptom not in _UNCLASSIFIED
    ]


def _survived(events: Sequence[Event], facts: Facts, *, request_failed: bool) -> Event | None:
    """What an engine survives and a request does not: the first of the last burst before requests failed."""
    causes = [
        event
        for event in events
        if event.role == "cause"
        and event.survivable
        and (request_failed or event.weight > Weight.REMARK)
        and not (facts.ready and event.before_ready)
    ]
    if not causes:
        return None
    ordered = in_order([*causes, *(event for event in events if event.symptom == "request_failed")])
    if not request_failed:
        while ordered and ordered[-1].symptom != "request_failed":
            ordered.pop()
    found = [event for event in ordered if event.role == "cause"]
    strongest = max((event.weight for event in found), default=None)
    return _burst([event for event in found if event.weight == strongest]) if found else None


def _last_words(line: LogLine, facts: Facts, default_kind: str | None) -> Incident:
    rank = rank_name(line.ranks)
    text = line.text.strip()[:MAX_TEXT]
    return Incident(
        symptom="error_exit" if facts.ready else "startup_error",
        root=RootEvent(line.number, text, line.time, line.process, rank),
        event=normalise(text),
        process=line.role or default_kind,
        rank=rank,
        first_failed_rank=line.ranks or None,
    )


def _burst(ordered: Sequence[Event]) -> Event:
    """The first of the errors that run up to the last one without a long pause: a server may have refused
    requests hours before it ended."""
    first = ordered[-1]
    for event in reversed(ordered[:-1]):
        distance = apart(event.moment, first.moment)
        if distance is not None and distance[0] > _BURST_SECONDS:
            break
        first = event
    return first


def _consequence(events: Sequence[Event], *, alive: bool, ended_badly: bool) -> Event | None:
    """The consequence that stands nearest to the cause, if the events are a failure at all."""
    left = [event for event in events if event.role in ("consequence", "header", "symptom", "echo")]
    if not ended_badly:
        left = [event for event in left if event.symptom in _DEADLY]
    if not left:
        return None
    ordered = in_order(left)
    if any(event.symptom in _DEADLY for event in ordered):
        ordered = [event for event in ordered if event.symptom in _DEADLY]
        deaths = [event for event in ordered if event.symptom == "silent_death"]
        quoted = [event for event in ordered if event.quoted]
        ordered = deaths or quoted or ordered
    else:
        ordered = [event for event in ordered if event.symptom != "teardown"]
        if not ordered:
            return None
    return min(ordered, key=lambda event: _KIND_RANK.get(event.kind, 2))


def _cut_traceback(
    open_tracebacks: Sequence[tuple[LogLine, str | None]], default_kind: str | None
) -> Incident:
    line, function = open_tracebacks[0]
    return Incident(
        symptom="exception",
        root=RootEvent(line.number, line.text or "Traceback", line.time, line.process, rank_name(line.ranks)),
        event=f"traceback without its end in {function}" if function else "traceback without its end",
        process=line.role or default_kind,
        rank=rank_name(line.ranks),
        missing_evidence=(
            "the rest of the log: it ends inside a traceback, before the exception's own line",
        ),
    )


def _incident(
    root: Event, events: Sequence[Event], facts: Facts, dialect: str, default_kind: str | None
) -> Incident:
    told = root
    symptom, event_text = root.symptom, root.event
    quoted = load_tables(dialect).classify(root.quoted) if root.quoted else None
    if root.quoted and quoted is not None and quoted[0].role == "cause":
        symptom, event_text = quoted[0].symptom, normalise(root.quoted)
    if root.role == "consequence" and root.exit_code is not None:
        symptom, event_text = symptom_of_exit(root.exit_code), event_of_exit(root.exit_code)
    clues = _clues(root, events, facts)
    if clues:
        root = clues[0]
    causes = [event for event in events if event.role == "cause"]
    speaker = first_failed(told, causes, events, facts)
    if told.worker is not None and (pid := facts.worker(told.worker)) is not None:
        speaker = speaker_of(_as_pid(told, pid), facts)
    related = _related(root, told, clues, events)
    # The kernel's record of a fault and the exception are one event; a library's warning is an earlier one.
    same = (told,) if root.kind == "kernel" else (root,)
    ranks = speaker.ranks or next((event.ranks for event in related if event.ranks), ())
    alternates = {
        line for event in (*related, *same) for line in (event.line, event.header, *event.related) if line
    }
    alternates.discard(root.line)
    kind = speaker.kind or default_kind
    if told.symptom == "silent_death" and told.worker is not None:
        kind = "worker"
    return Incident(
        symptom=symptom,
        root=RootEvent(root.line, root.text, root.time, speaker.label or root.process, rank_name(ranks)),
        event=event_text,
        process=kind,
        rank=rank_name(ranks),
        first_failed_rank=ranks or None,
        root_alternates=tuple(sorted(alternates)),
        cascade_lines=_cascade(root, told, alternates, events),
        async_stack=_asynchronous(told, symptom, events),
        missing_evidence=missing_evidence(told, symptom, clues, speaker),
    )


def _as_pid(event: Event, pid: int) -> Event:
    return replace(event, pid=pid, process=None, kind=None)


def _clues(root: Event, events: Sequence[Event], facts: Facts) -> list[Event]:
    """Lines that explain the root: the kernel's record of its process, or a library's words before it."""
    explaining = [event for event in events if event.role == "clue" and root.symptom in event.explains]
    kernel = [event for event in explaining if event.kind == "kernel"]
    others = [event for event in explaining if event.kind != "kernel"]
    ordered = in_order([*others, root])
    before = ordered[: ordered.index(root)]
    same = [event for event in kernel if event.pid is not None and event.pid == root.pid]
    if not same and root.kind != "kernel":
        # A container has pids of its own; then the time tells which message is the other face of the error.
        strange = [event for event in kernel if event.pid is None or facts.kind_of(event.pid) is None]
        same = within(_SAME_FAULT_SECONDS, root, strange, events)
        if len({_bus(event) for event in same}) > 1:
            same = []
    return in_order(same) or before


def _later(root: Event, event: Event) -> bool:
    """Whether the kernel says the same again, but of a later time: it goes on."""
    distance = apart(root.moment, event.moment) if root.kind == "kernel" else None
    return distance is not None and distance[0] > _SAME_FAULT_SECONDS


def _bus(event: Event) -> str:
    found = _BUS.search(event.text)
    return found[1].lower() if found else ""


def _related(root: Event, told: Event, clues: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Events that say the same as the root, next to it or next to one another."""
    found = [event for event in clues if event is not root]
    anchor = root.line
    for event in sorted(events, key=lambda event: event.line):
        if event is root or event is told:
            continue
        near = root.line - _NEIGHBOURS <= event.line <= anchor + _NEIGHBOURS
        echo = (
            near
            and event.role == "echo"
            and event.process == root.process
            and (
                event.symptom == root.symptom
                or (event.symptom == "cuda_error" and root.symptom.startswith("cuda"))
            )
        )
        again = (
            event.role == root.role
            and event.exception is None
            and event.event == root.event
            and event.process == root.process
            and (event.line <= anchor + 1 or event.text == root.text)
            and not _later(root, event)
        )
        if (echo and event.exception is None) or again:
            found.append(event)
            if near and event.line > anchor:
                anchor = event.line
    return found


def _cascade(root: Event, told: Event, alternates: set[int], events: Sequence[Event]) -> tuple[int, ...]:
    """Lines that state an error and are only consequences of the root."""
    timeline = in_order(
        [event for event in events if event.role != "clue"] + ([root] if root.role == "clue" else [])
    )
    position = {id(event): index for index, event in enumerate(timeline)}
    start = min(position[id(root)], position[id(told)])
    lines: set[int] = set()
    for event in timeline:
        if event is root or event.role == "noise":
            continue
        earlier = position[id(event)] < start
        if event.role in ("cause", "symptom", "echo") and earlier:
            continue
        lines.update((event.line, *event.related))
        if event.header is not None:
            lines.add(event.header)
    return tuple(sorted(lines - alternates - {root.line}))


def _asynchronous(root: Event, symptom: str, events: Sequence[Event]) -> bool:
    if root.asynchronous:
        return True
    if symptom.startswith("gpu_hw"):
        return any(event.asynchronous and event.symptom.startswith("cuda_") for event in events)
    members = family(symptom) or frozenset({symptom})
    return any(event.asynchronous and event.symptom in members for event in events)
