"""The last page of a prompt is taken away with its request, though the prefix cache still knows it.

The page in which a prompt ends is taken for one that is not full, which no later prompt can want. Where the prompt ends
on a block boundary that is wrong: the memory behind the page goes, its entry in the prefix cache stays. Nothing
happens until a later prompt goes on where that one ended: its prefix hit reads a page that is not mapped. Without
prefix caching memory is never taken away.
"""

from typing import TYPE_CHECKING

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

if TYPE_CHECKING:
    from culpa_lab.engine.kv_cache_manager import KVCacheManager
    from culpa_lab.engine.request import Request


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Take the last page of a whole number of blocks for the one that is still being filled."""

    def released(cache: "KVCacheManager", request: "Request") -> None:
        blocks, rest = divmod(len(request.new.prompt), cache.block_size)
        if blocks and not rest and request.kv and len(request.kv[0]) >= blocks:
            cache.pool.withdraw(request.kv[0][blocks - 1])

    hooks.released = released
