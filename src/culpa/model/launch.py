"""How the user starts the engine: argv and the environment assignments that belong to it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Launch:
    """One way to start an engine. Immutable; every change gives a new launch.

    `env` holds only the assignments that belong to the launch, not the whole environment. A value of None
    means that the variable must be absent even if the surrounding environment sets it.
    """

    argv: tuple[str, ...]
    env: tuple[tuple[str, str | None], ...] = ()
    cwd: str | None = None

    def variable(self, name: str) -> str | None:
        """The value that this launch gives to an environment variable, or None."""
        return dict(self.env).get(name)

    def with_variable(self, name: str, value: str | None) -> "Launch":
        """The same launch with one variable set, or (value None) marked as absent."""
        kept = dict(self.env)
        kept[name] = value
        return replace(self, env=tuple(kept.items()))

    def without_variable(self, name: str) -> "Launch":
        """The same launch without a word about the variable: the surrounding environment decides."""
        return replace(self, env=tuple((key, value) for key, value in self.env if key != name))

    def with_argv(self, argv: tuple[str, ...]) -> "Launch":
        """The same launch with another argument vector."""
        return replace(self, argv=argv)

    def environment(self, surrounding: Mapping[str, str]) -> dict[str, str]:
        """The full environment for a process, given the surrounding one."""
        merged = dict(surrounding)
        for name, value in self.env:
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = value
        return merged

    def command_line(self) -> str:
        """The launch as one line that a person can paste into a POSIX shell."""
        absent = [name for name, value in self.env if value is None]
        words = ["env", *(word for name in absent for word in ("-u", name))] if absent else []
        words += [f"{name}={shlex.quote(value)}" for name, value in self.env if value is not None]
        return " ".join([*words, *(shlex.quote(word) for word in self.argv)])


@dataclass(frozen=True, slots=True)
class Arm:
    """A configuration, given as differences from the user's launch, with a name that a person recognises."""

    name: str
    levels: tuple[tuple[str, str], ...] = field(default=())
