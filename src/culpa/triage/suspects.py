"""Which rank is at fault where nobody says so: the one that is behind, or the one that everybody lost."""

from collections.abc import Sequence

from culpa.triage.events import Event
from culpa.triage.facts import Facts
from culpa.triage.lines import Ranks

#: So many ranks must have spoken before the silence of another one means anything.
_FEWEST_SPEAKERS = 2
_LOST = frozenset(
    {"peer_gone", "nccl_error", "nccl_timeout", "hang_timeout", "engine_dead", "teardown", "silent_death"}
)


def behind(events: Sequence[Event], facts: Facts) -> Ranks:
    """The rank that is behind in a hang: its count of finished or started collectives is the lowest, or it is the only
    one that did not notice the hang. Nothing if several are level, since then the log does not tell."""
    hung = [
        event
        for event in events
        if event.role == "symptom" and event.symptom in ("nccl_timeout", "hang_timeout")
    ]
    named = [event for event in hung if event.ranks]
    metrics = {name for event in named for name in event.progress}
    for metric in sorted(metrics):
        lowest: dict[Ranks, int] = {}
        for event in named:
            if metric in event.progress:
                value = event.progress[metric]
                lowest[event.ranks] = min(value, lowest.get(event.ranks, value))
        if len(lowest) < 2:
            continue
        least = min(lowest.values())
        last = [ranks for ranks, value in lowest.items() if value == least]
        if len(last) == 1:
            return last[0]
    accused = {event.ranks for event in named if "on rank" in event.text and event.symptom == "hang_timeout"}
    if len(accused) == 1:
        return next(iter(accused))
    return _silent({event.ranks for event in named}, facts)


def lost(events: Sequence[Event], facts: Facts) -> Ranks:
    """The rank that everybody lost: the only one that reports nothing while all others report that a peer is gone."""
    speakers = {
        event.ranks or facts.ranks_of(event.pid)
        for event in events
        if event.kind != "kernel"
        and event.role in ("consequence", "symptom", "cause", "header")
        and event.symptom in _LOST
    }
    return _silent({ranks for ranks in speakers if ranks}, facts)


def mourned(events: Sequence[Event], facts: Facts) -> Ranks:
    """The rank that others report as dead, if they agree on one."""
    dead = {event.dead_rank for event in events if event.dead_rank is not None}
    workers = {event.worker for event in events if event.worker is not None}
    if not dead and len(workers) == 1:
        return by_index(workers.pop(), facts)
    if len(dead) != 1:
        return ()
    rank = dead.pop()
    if facts.only_tensor_parallel:
        return (("tp", rank),)
    if rank == 0 and len(facts.rank_names.get("rank", ())) < 2 and not facts.several:
        return ()  # the only one that there is
    return (("rank", rank),)


def by_index(worker: int, facts: Facts) -> Ranks:
    """The place of a worker by its local index: by the process that named it, or, where tensor parallelism alone tells
    the workers of one machine apart, by its number."""
    pid = facts.worker(worker)
    if pid is not None:
        return facts.ranks_of(pid)
    places = [dict(ranks) for ranks in facts.places if "tp" in dict(ranks)]
    others = {tuple((name, value) for name, value in place.items() if name != "tp") for place in places}
    numbers = {place["tp"] for place in places}
    if len(others) != 1 or numbers != set(range(len(numbers))) or worker not in numbers:
        return ()
    if max(facts.worlds, default=0) > len(numbers):
        return ()  # there are more, perhaps on other machines, with indices of their own
    return next(ranks for ranks in facts.places if dict(ranks).get("tp") == worker)


def _silent(spoken: set[Ranks], facts: Facts) -> Ranks:
    """The one known rank that is not among those who spoke, if they are enough and all of one kind."""
    if len(spoken) < _FEWEST_SPEAKERS:
        return ()
    kinds = {tuple(name for name, _ in ranks) for ranks in spoken}
    if len(kinds) > 1:
        if kinds != {("rank",), ("tp",)} or not facts.only_tensor_parallel:
            return ()
        spoken = {(("tp", ranks[0][1]),) for ranks in spoken}
        kinds = {("tp",)}
    kind = next(iter(kinds))
    known = {ranks for ranks in facts.places if tuple(name for name, _ in ranks) == kind}
    if kind == ("rank",) and len(facts.worlds) == 1 and (size := max(facts.worlds)) <= 4096:
        known |= {(("rank", number),) for number in range(size)}
    missing = known - spoken
    if len(missing) != 1:
        return ()
    return next(iter(missing))
