"""Which rank failed first, as far as the log supports a name: a wrong one is worse than none."""

from collections.abc import Sequence
from dataclasses import dataclass

from culpa.triage.events import Event
from culpa.triage.facts import Facts
from culpa.triage.lines import Ranks
from culpa.triage.normal import family
from culpa.triage.order import apart, in_order
from culpa.triage.suspects import behind, by_index, lost, mourned

#: These depend on configuration, model and GPU type alone: every rank fails alike, whoever prints first.
_ALIKE_EVERYWHERE = frozenset(
    {"triton_smem", "triton_compile", "ptxas_fatal", "weights_load", "kv_cache_too_small", "startup_memory"}
)
_HARDWARE = frozenset({"gpu_hw_ecc", "gpu_hw_lost"})
#: A deterministic exception reaches all ranks of a step within this many seconds.
_SAME_STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who an event belongs to, after all that the log tells: printed name, kind, and place."""

    label: str | None
    kind: str | None
    ranks: Ranks


def speaker_of(event: Event, facts: Facts) -> Speaker:
    """The process of an event: by its prefix, its pid, or as the only speaker of its section."""
    label = event.process if event.ranks else facts.label_of(event.pid) or event.process
    kind = facts.kind_of(event.pid) or (event.kind if event.kind != "kernel" else None)
    ranks = event.ranks or facts.ranks_of(event.pid)
    if label is None and kind is None and (only := facts.only_speaker(event.section)) is not None:
        label, kind = facts.label_of(only.pid) or only.process, only.role
        ranks = ranks or only.ranks or facts.ranks_of(only.pid)
    return Speaker(label, kind, _meaningful(ranks, facts))


def first_failed(root: Event, causes: Sequence[Event], events: Sequence[Event], facts: Facts) -> Speaker:
    """The speaker of the root, with ranks only where the evidence supports them."""
    speaker = speaker_of(root, facts)
    if root.role == "symptom" and root.symptom in ("hang_timeout", "nccl_timeout"):
        # Who waits is not who is waited for.
        return Speaker(speaker.label, speaker.kind, behind(events, facts))
    if root.symptom in ("host_oom_kill", "silent_death"):
        ranks = speaker.ranks if root.kind == "kernel" or root.symptom == "host_oom_kill" else ()
        if root.worker is not None:
            ranks = ranks or by_index(root.worker, facts)
        return Speaker(speaker.label, speaker.kind, ranks or mourned(events, facts))
    if root.role in ("consequence", "header") and root.symptom in ("peer_gone", "nccl_error", "engine_dead"):
        return Speaker(speaker.label, speaker.kind, lost(events, facts))
    members = family(root.symptom)
    alike = [
        event
        for event in causes
        if event is not root
        and (
            event.symptom in members
            if members
            else event.symptom == root.symptom and event.event == root.event
        )
    ]
    if speaker.ranks:
        if any(_undecided(root, event, facts, speaker.ranks) for event in alike):
            return Speaker(speaker.label, speaker.kind, ())
        return speaker
    if speaker.label is not None and root.kind != "kernel":
        return speaker
    if members is None and root.symptom not in ("device_side_assert", *_HARDWARE):
        return speaker
    # The root itself carries no name: the first that reports the same fault has it, if that is only one.
    named = in_order([event for event in causes if event is not root and _same_fault(root, event)])
    named = [event for event in named if speaker_of(event, facts).ranks]
    if not named:
        return Speaker(speaker.label, speaker.kind, mourned(events, facts))
    first = speaker_of(named[0], facts)
    if any(_undecided(named[0], event, facts, first.ranks) for event in named[1:]):
        return Speaker(speaker.label, speaker.kind or first.kind, ())
    return first


def _same_fault(root: Event, event: Event) -> bool:
    members = family(root.symptom)
    if root.symptom in _HARDWARE:
        # Whose GPU is gone gets an error of CUDA itself; the others only lose their peer.
        return event.kind != "kernel" and (event.symptom in _HARDWARE or event.symptom.startswith("cuda_"))
    return event.symptom in members if members else event.symptom == root.symptom


def _undecided(root: Event, other: Event, facts: Facts, ranks: Ranks) -> bool:
    """Whether another rank reports the same and the clocks do not say that it came later."""
    theirs = speaker_of(other, facts).ranks
    if not theirs or theirs == ranks:
        return False
    if root.symptom in _ALIKE_EVERYWHERE:
        return True
    distance = apart(root.moment, other.moment)
    if distance is None:
        return True
    seconds, resolution = distance
    if family(root.symptom) is not None:
        return abs(seconds) < resolution
    return abs(seconds) <= _SAME_STEP_SECONDS


def _meaningful(ranks: Ranks, facts: Facts) -> Ranks:
    """A global rank 0 that is the only one ever named may be a single process: it places nothing."""
    if (
        len(ranks) == 1
        and ranks[0][0] == "rank"
        and ranks[0][1] == 0
        and len(facts.rank_names.get("rank", ())) < 2
    ):
        return ()
    return ranks


def rank_name(ranks: Ranks) -> str | None:
    """PP1, PP0_TP1, rank3, device1; None for no ranks."""
    if not ranks:
        return None
    return "_".join(
        f"{name.upper() if name not in ('rank', 'device') else name}{value}" for name, value in ranks
    )
