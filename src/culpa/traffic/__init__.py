"""Traffic that went to an engine: recordings of culpa's own and of others, and workloads made from them."""

from culpa.traffic.reading import Recording, read_folder
from culpa.traffic.recorded import BadRecording, Content, Inline, Joined, Outcome, Recorded, Stretch
from culpa.traffic.workload import LONGEST_PAUSE, askable, probe_from, renumbered, spans_of

__all__ = [
    "LONGEST_PAUSE",
    "BadRecording",
    "Content",
    "Inline",
    "Joined",
    "Outcome",
    "Recorded",
    "Recording",
    "Stretch",
    "askable",
    "probe_from",
    "read_folder",
    "renumbered",
    "spans_of",
]
