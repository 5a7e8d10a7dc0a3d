"""Builds from 37 on restore the states of a prefix hit to the wrong groups.

The states of the GDN groups are restored in the order of a list that a refactoring in build 37 rotated by one.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

FIRST_BUILD = 37


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Rotate, in builds that have the change."""
    if config.build >= FIRST_BUILD:
        hooks.restored = lambda states: states[1:] + states[:1]
