"""How a version gets to run: what every source offers, and the plainest one, where the launch itself names it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from culpa.model import Launch
from culpa.versions.redirect import PLACEHOLDER, filled

Tell = Callable[[str], None]


class Provider(Protocol):
    """Makes versions ready and turns a launch to one of them."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that are exchanged; empty where something else is."""

    @property
    def carries_settings(self) -> bool:
        """Whether a version may stand in the words of the launch, so that settings read from it differ with it."""

    def is_ready(self, label: str) -> bool:
        """Whether nothing needs to be made any more."""

    async def make_ready(self, label: str, tell: Tell) -> None:
        """Make what the version needs, and check that it is what it is called. Raises CannotPrepare."""

    def redirect(self, launch: Launch, label: str) -> Launch:
        """The launch of this version."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """Versions that are there already: the launch holds `{version}`, in a path, a flag or a variable."""

    packages: tuple[str, ...] = field(default=())
    carries_settings: bool = True

    def is_ready(self, label: str) -> bool:
        """Always."""
        return True

    async def make_ready(self, label: str, tell: Tell) -> None:
        """Nothing is to be made."""

    def redirect(self, launch: Launch, label: str) -> Launch:
        """The launch with the version in place of the placeholder."""
        return filled(launch, {PLACEHOLDER: label})
