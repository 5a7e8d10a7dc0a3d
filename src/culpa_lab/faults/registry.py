"""Which faults there are, and how they are armed in a process."""

from collections.abc import Callable
from importlib import import_module

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

Arm = Callable[[Hooks, EngineConfig], None]

FAULTS: dict[str, tuple[str, ...]] = {
    "incident": ("incident",),
}
"""The faults by name, each with the modules of this package that arm it."""


def hooks_for(config: EngineConfig) -> Hooks:
    """The mechanisms of a process: right ones, but for those that an armed fault exchanges."""
    hooks = Hooks()
    for name in config.armed:
        for module in FAULTS[name]:
            arm: Arm = import_module(f"culpa_lab.faults.{module}").arm
            arm(hooks, config)
    return hooks
