"""`--enforce-eager` does not reach the workers of a pipeline.

The workers' settings are made from a copy that was taken before the flag was applied. The line with the configuration
tells what is in effect; nothing else does.
"""

from dataclasses import replace

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks


def configure(config: EngineConfig) -> EngineConfig:
    """Take the flag back where there is more than one stage."""
    if config.stages == 1 or not config.enforce_eager:
        return config
    return replace(config, enforce_eager=False, cudagraph_mode="FULL_AND_PIECEWISE")


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Nothing is exchanged: the settings themselves are wrong."""
