"""The last block of a request is given back when its end is scheduled, with steps in flight that use it.

Asynchronous scheduling counts tokens that are still being sampled. Two steps before an answer reaches its limit, the
memory behind its last block is taken away by the count of what is scheduled, and the steps after it touch a page that
is no longer mapped. Without prefix caching memory is never taken away.
"""

from typing import TYPE_CHECKING

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

if TYPE_CHECKING:
    from culpa_lab.engine.kv_cache_manager import KVCacheManager
    from culpa_lab.engine.request import Request


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Count steps in flight as if they had ended."""

    def scheduled(cache: "KVCacheManager", request: "Request", left: int) -> None:
        in_flight = request.placeholders > 1
        if in_flight and left <= 2 and request.kv and request.kv[0]:
            cache.pool.withdraw(request.kv[0][-1])

    hooks.scheduled = scheduled
