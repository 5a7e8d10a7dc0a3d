"""Records the traffic of an engine: a proxy in front of it, and a ring on disk."""

from culpa.recorder.proxy import Counts, Proxy
from culpa.recorder.recording import STOPPED, UPSTREAM_DIED, Now, Recorded, Wanted, record
from culpa.recorder.ring import Keep, Ring
from culpa.recorder.shapes import Shaper

__all__ = [
    "STOPPED",
    "UPSTREAM_DIED",
    "Counts",
    "Keep",
    "Now",
    "Proxy",
    "Recorded",
    "Ring",
    "Shaper",
    "Wanted",
    "record",
]
