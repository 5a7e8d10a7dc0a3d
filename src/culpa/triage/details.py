"""What a signature and the named groups of its expression tell of an event."""

import re
from typing import TypeVar

from culpa.triage.events import Event
from culpa.triage.tables import SignatureRule

_MAX_PROCESSES = 1024

_K = TypeVar("_K")
_V = TypeVar("_V")


def bounded(store: dict[_K, _V], key: _K, value: _V) -> None:
    """Store a value and forget the oldest beyond a fixed number."""
    store[key] = value
    if len(store) > _MAX_PROCESSES:
        store.pop(next(iter(store)))


def details(event: Event, rule: SignatureRule, match: re.Match[str]) -> None:
    """What a signature and its named groups tell."""
    if event.kind is None and len(rule.processes) == 1:
        event.kind = rule.processes[0]
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    event.explains = rule.explains
    event.asynchronous = rule.asynchronous
    event.survivable = rule.survivable
    for name, value in found.items():
        if name.startswith("code"):
            event.exit_code = int(value)
        elif name == "signal":
            event.exit_code = -int(value)
        elif name.startswith("quoted"):
            event.quoted = value
        elif name.startswith("progress"):
            event.progress[name] = int(value)
        elif name == "worker":
            event.worker = int(value)
        elif name.startswith("dead_rank"):
            event.dead_rank = int(value)
        elif name.startswith("rank"):
            event.ranks = (("rank", int(value)),)
        elif name == "device":
            event.ranks = (("device", int(value)),)
        elif name == "pid" and value.isdigit():
            event.pid = int(value)
