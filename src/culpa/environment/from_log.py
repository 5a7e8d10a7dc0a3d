"""The environment of an engine as its logs tell it, and nothing beyond."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from culpa.environment.engine import setting_facts
from culpa.environment.log_lines import LineFacts
from culpa.environment.secrets import shown
from culpa.model.diagnosis import SettingValue
from culpa.model.environment import Environment, Fact
from culpa.sources import SourceError, read_log
from culpa.triage.document import LogDocument

_MOST_LINE = 1 << 20
#: What a maintainer asks for: where a log is silent, that is said.
ASKED_FOR = (
    "engine.name", "engine.version", "engine.image", "python.version", "package.torch", "torch.cuda", "package.triton",
    "package.flashinfer-python", "package.nvidia-nccl", "backend.attention", "backend.gdn", "gpu.count", "gpu.driver",
    "gpu.0.name", "gpu.0.sm", "gpu.0.bus", "gpu.0.ecc", "gpu.0.remapped_rows", "gpu.0.throttling", "gpu.0.mig",
    "link.0-1", "system.os", "system.kernel", "container.shm", "container.memlock", "launch.command",
)  # fmt: skip
NOT_IN_LOG = "not in this log"


def read_from_logs(paths: Sequence[Path | None]) -> Environment:
    """What the logs say of the environment they were written in. Raises SourceError for what can't be read."""
    document = LogDocument("generic")
    lines = LineFacts()
    for path in paths:
        name = "standard input" if path is None else path.name
        document.begin(name)
        for number, block in _blocks(_fed(read_log(path), document)):
            lines.feed(block, name, number)
        document.end()
    if document.reader.lines == 0:
        names = ", ".join("standard input" if path is None else str(path) for path in paths)
        raise SourceError(f"{names}: there is nothing to read in it")
    said = document.reader.context.configuration
    settings: dict[str, SettingValue] = dict(said.values())
    facts = [*_engine(said.engine, said.version), *lines.facts()]
    known = {fact.key for fact in facts}
    gpus = document.reader.context.gpus.known()
    for index, bus, model in gpus:
        facts += [Fact(f"gpu.{index}.bus", bus, "the log")]
        if model and f"gpu.{index}.name" not in known:
            facts += [Fact(f"gpu.{index}.name", shown(model), "the log")]
    facts += setting_facts(settings, "the log")
    arch = settings.get("gpu_arch")
    if arch and "," not in str(arch) and "gpu.0.sm" not in known:
        facts.append(Fact("gpu.0.sm", str(arch), "the log"))
    counted = {
        fact.key.split(".")[1] for fact in facts if fact.key.startswith("gpu.") and fact.key.endswith(".name")
    }
    if counted and all(index.isdigit() for index in counted):
        facts.append(Fact("gpu.count", str(len(counted)), "the log"))
    origin = "log: " + ", ".join("standard input" if path is None else shown(str(path)) for path in paths)
    told = Environment(origin, tuple(facts), tuple(settings.items()))
    nccl = any(fact.key.startswith("package.nvidia-nccl") for fact in facts)
    silent = [
        Fact(key, None, reason=NOT_IN_LOG) for key in ASKED_FOR if not (key == "package.nvidia-nccl" and nccl)
    ]
    return Environment(told.origin, told.completed(silent), told.settings)


def _engine(name: str | None, version: str | None) -> Iterator[Fact]:
    if name is not None:
        yield Fact("engine.name", name, "the log")
    if version is not None:
        yield Fact("engine.version", version, "the log")


def _fed(pieces: Iterable[bytes], document: LogDocument) -> Iterator[bytes]:
    for piece in pieces:
        document.feed(piece)
        yield piece


def _blocks(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Whole lines with the number of the first of them. A line without an end is cut, not kept."""
    rest, number = b"", 1
    for piece in pieces:
        whole, newline, tail = (rest + piece).rpartition(b"\n")
        rest = tail[:_MOST_LINE]
        if newline:
            yield number, whole
            number += whole.count(b"\n") + 1
    if rest:
        yield number, rest
