"""The table of engine facts: kernel block sizes, quantisation, version notes."""

import tomllib
from functools import cache
from importlib import resources

from pydantic import BaseModel, ConfigDict, Field


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str = Field(pattern=r"^https://")


class BackendTable(_Table):
    """An attention backend and the block sizes that its kernels take."""

    name: str
    multiple: int | None = None
    sizes: list[int] = []

    @property
    def smallest(self) -> int:
        """The smallest kernel block."""
        return self.multiple or min(self.sizes)

    def takes(self, block_size: int) -> bool:
        """Whether a block of this many tokens can be cut into kernel blocks."""
        if self.multiple is not None:
            return block_size % self.multiple == 0
        return any(block_size % size == 0 for size in self.sizes)


class QuantizationTable(_Table):
    """Bits of a quantised weight; `group` weights share a scale and a zero point of 16 and 4 bits."""

    names: list[str]
    bits: float
    group: int | None = None
    experts_only: bool = False


class NoteTable(_Table):
    """What changed before and after a release."""

    id: str
    before: str
    older: str
    newer: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    checked: list[str]
    backend: list[BackendTable]
    quantization: list[QuantizationTable]
    note: list[NoteTable]


@cache
def _file() -> _File:
    text = resources.files("culpa.layout").joinpath("data", "engine.toml").read_text(encoding="utf-8")
    return _File.model_validate(tomllib.loads(text))


def find_backend(name: str | None) -> BackendTable | None:
    """The backend of that name; None where it is not given or not in the table."""
    wanted = (name or "").upper()
    return next((backend for backend in _file().backend if backend.name == wanted), None)


def find_quantization(name: str | None) -> QuantizationTable | None:
    """The quantisation method of that name, or None."""
    wanted = (name or "").lower()
    return next((method for method in _file().quantization if wanted in method.names), None)


def version_note(name: str) -> NoteTable:
    """The version note of that id."""
    return next(note for note in _file().note if note.id == name)


def checked_versions() -> tuple[str, ...]:
    """The releases whose own planner gave the same results for every random model of the tests."""
    return tuple(_file().checked)
