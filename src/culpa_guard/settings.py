"""How the guard is switched on: environment variables, read once per process."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SWITCH = "CULPA_GUARD"
OUT = "CULPA_GUARD_OUT"
PLANT = "CULPA_GUARD_PLANT"
PAGES = "CULPA_GUARD_PAGES"


class BadSetting(ValueError):
    """A variable that can't be understood; the message says which and what it may be."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault that the self-test asks for: its name and what it is given."""

    fault: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Settings:
    """mode: `log` or `raise`. every: check every N-th step. out: folder of the lines, None for standard error.

    pages: cache blocks whose content is checked per step; 0 leaves all checks of content out.
    """

    mode: str
    every: int = 1
    out: Path | None = None
    pages: int = 0
    plants: tuple[Planted, ...] = ()

    @property
    def planted(self) -> Planted | None:
        """The first planted fault."""
        return self.plants[0] if self.plants else None

    @property
    def text(self) -> str:
        """The mode as the user wrote it."""
        return self.mode if self.every == 1 else f"sample:{self.every}"


def read_settings(environment: Mapping[str, str] = os.environ) -> Settings | None:
    """The settings, or None where the guard is not switched on.

    Raises:
        BadSetting: a variable is set to something that can't be understood.
    """
    switch = environment.get(SWITCH, "").strip()
    if not switch:
        return None
    mode, every = _mode(switch)
    folder = environment.get(OUT, "").strip()
    return Settings(
        mode=mode,
        every=every,
        out=Path(folder) if folder else None,
        pages=_count(environment.get(PAGES, "").strip() or "0", PAGES),
        plants=read_plants(environment.get(PLANT, "").strip()),
    )


def read_plants(text: str) -> tuple[Planted, ...]:
    """`fault:key=value:key=value`, several with commas between them, taken apart.

    Raises:
        BadSetting: an option without a name or a value.
    """
    return tuple(_plant(part) for part in text.split(",") if part)


def _plant(text: str) -> Planted:
    fault, *words = text.split(":")
    options: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise BadSetting(f"{PLANT}: {word!r} is not name=value")
        options[name] = value
    return Planted(fault, options)


def _mode(switch: str) -> tuple[str, int]:
    if switch in ("log", "raise"):
        return switch, 1
    name, colon, number = switch.partition(":")
    if name == "sample" and colon:
        every = _count(number, SWITCH)
        if every >= 1:
            return "log", every
    raise BadSetting(f"{SWITCH}: {switch!r} is none of log, raise, sample:N (N at least 1)")


def _count(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise BadSetting(f"{name}: {text!r} is not a whole number")
    return int(text)
