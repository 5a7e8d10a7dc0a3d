"""Small adapters for tests, without a machine behind them."""

from culpa.engines.catalogue import Catalogue, parse_catalogue
from culpa.engines.generic import GenericAdapter
from culpa.host.gpus import Gpu
from culpa.host.machine import Machine
from culpa.model import Launch

NO_GPU = Machine(gpus=(), cpus=2, memory_bytes=8 << 30, without_gpu_reason="none installed")
TWO_GPUS = Machine(
    gpus=tuple(Gpu(i, "GPU", 80 << 30, f"0000:0{i}:00.0", "9.0") for i in (0, 1)),
    cpus=8,
    memory_bytes=64 << 30,
)


def catalogue(text: str) -> Catalogue:
    """A catalogue from TOML text."""
    return parse_catalogue(text, "test.toml")


def adapter(text: str, surrounding: dict[str, str] | None = None) -> GenericAdapter:
    """The generic adapter over a catalogue; only a PATH is inherited unless more is given."""
    return GenericAdapter(catalogue(text), surrounding or {"PATH": "/usr/bin:/bin"})


def launch(line: str, **env: str | None) -> Launch:
    """A launch from words that hold no blanks."""
    return Launch(tuple(line.split()), tuple(env.items()))
