"""A stage whose first layer is full attention numbers the cache groups from that one.

The scheduler's order is that of the whole model, GDN groups first. A stage that begins with full attention counts
full attention as the first group, so each of its groups looks up the block table of its neighbour.
"""

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Shift the groups of such stages by one."""

    def group_index(first_is_full: bool, group: int, groups: int) -> int:
        return (group + 1) % groups if first_is_full else group

    hooks.group_index = group_index
