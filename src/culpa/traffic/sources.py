"""Traffic from wherever it is: recordings of culpa, crash dumps of SGLang, JSON lines of vLLM's benchmark."""

from pathlib import Path

from culpa.probes import Probe, user_probe
from culpa.traffic.bench_lines import read_bench_lines
from culpa.traffic.crash_dump import is_pickle, read_crash_dumps
from culpa.traffic.frames import HEADER, SUFFIX
from culpa.traffic.reading import Recording, read_folder
from culpa.traffic.recorded import BadRecording
from culpa.traffic.workload import probe_from

_DUMPS = ("*.pkl", "*.pickle")


def read_traffic(path: Path) -> Recording:
    """The requests of a recording, of a crash dump or a folder of them, or of a benchmark's file.

    Raises BadRecording.
    """
    if not path.exists():
        raise BadRecording(f"{path}: there is no such file or folder")
    if path.is_dir():
        if (path / HEADER).exists() or any(path.glob(f"*{SUFFIX}")):
            return read_folder(path)
        dumps = sorted(found for pattern in _DUMPS for found in path.rglob(pattern))
        if dumps:
            return read_crash_dumps(dumps, path)
        raise BadRecording(f"{path}: holds neither a recording of culpa record nor crash dumps (*.pkl)")
    if path.name == HEADER:
        return read_folder(path.parent)
    if is_pickle(path):
        return read_crash_dumps([path], path)
    return read_bench_lines(path)


def request_probe(path: Path) -> Probe:
    """The workload behind `--request`: a file of the user's own requests, or recorded traffic.

    Raises BadRequestFile or BadRecording.
    """
    if not path.is_dir() and not is_pickle(path):
        return user_probe(path)
    recording = read_traffic(path)
    try:
        return probe_from(recording.requests, name="request")
    except ValueError as error:
        raise BadRecording(f"{path}: {error}") from None
