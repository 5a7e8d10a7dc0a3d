"""Traffic that went to an engine: recordings of culpa's own and of others, and workloads made from them."""

from culpa.traffic.choice import chosen
from culpa.traffic.outcomes import FAILURES, Replayed, Verdict, answer_then, compared
from culpa.traffic.reading import Recording, read_folder
from culpa.traffic.recorded import BadRecording, Content, Inline, Joined, Outcome, Recorded, Stretch
from culpa.traffic.sources import read_traffic, request_probe
from culpa.traffic.workload import LONGEST_PAUSE, askable, probe_from, renumbered, spans_of
from culpa.traffic.writing import write_folder

__all__ = [
    "FAILURES",
    "LONGEST_PAUSE",
    "BadRecording",
    "Content",
    "Inline",
    "Joined",
    "Outcome",
    "Recorded",
    "Recording",
    "Replayed",
    "Stretch",
    "Verdict",
    "answer_then",
    "askable",
    "chosen",
    "compared",
    "probe_from",
    "read_folder",
    "read_traffic",
    "renumbered",
    "request_probe",
    "spans_of",
    "write_folder",
]
