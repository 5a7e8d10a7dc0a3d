"""The guard inside a running engine: how a launch gets it, what its files say, and what each violation means."""

from culpa.guard.kinds import explain, explanations
from culpa.guard.launching import MODES, BadGuard, Guard, check_mode, why_unguarded
from culpa.guard.reading import GuardReader, read_folder

__all__ = [
    "MODES",
    "BadGuard",
    "Guard",
    "GuardReader",
    "check_mode",
    "explain",
    "explanations",
    "read_folder",
    "why_unguarded",
]
