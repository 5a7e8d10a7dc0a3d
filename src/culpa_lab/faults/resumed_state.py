"""A request that was preempted resumes with the state that its new block happens to hold.

A request that starts over after its blocks were taken is not a new one to the code that clears states.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Clear for new requests only."""
    hooks.resumes_clean = lambda preemptions: preemptions == 0
