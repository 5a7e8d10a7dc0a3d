"""Engine adapters: what a launch command means, which factors it has, and how a level is applied to it."""

from culpa.engines.base import EngineAdapter, Prepared, Reading
from culpa.engines.catalogue import closest, read_catalogue
from culpa.engines.command import parse_command
from culpa.engines.errors import BadFactors, BadLaunch
from culpa.engines.registry import find_adapter

__all__ = [
    "BadFactors",
    "BadLaunch",
    "EngineAdapter",
    "Prepared",
    "Reading",
    "closest",
    "find_adapter",
    "parse_command",
    "read_catalogue",
]
