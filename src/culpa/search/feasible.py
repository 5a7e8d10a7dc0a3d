"""Which configurations can run at all, and the nearest one that can."""

from collections.abc import Callable
from itertools import combinations

from culpa.model import Configuration
from culpa.search.space import Space

CanRun = Callable[[Configuration], str | None]


class Feasible:
    """Remembers what `can_run` says of each configuration (it must be a pure function)."""

    def __init__(self, space: Space, can_run: CanRun) -> None:
        self._space = space
        self._can_run = can_run
        self._known: dict[int, str | None] = {}
        self.held, self.reasons = self._held()

    def reason(self, mask: int) -> str | None:
        """Why this configuration can't run, None if it can."""
        if mask not in self._known:
            self._known[mask] = self._can_run(self._space.configuration(mask))
        return self._known[mask]

    def refuses(self, configuration: Configuration) -> str | None:
        """Why a configuration with any levels can't run, None if it can."""
        return self._can_run(configuration)

    def nearest(self, mask: int, fixed: int, usable: Callable[[int], bool]) -> int | None:
        """The usable configuration with the fewest factors put back to suspect, apart from `fixed` ones."""
        if usable(mask):
            return mask
        free = self._space.members(self._space.full & ~mask & ~fixed)
        for count in (1, 2):
            for bits in combinations(free, count):
                tried = mask | sum(bits)
                if usable(tried):
                    return tried
        grown = mask
        for bit in free:
            grown |= bit
            if usable(grown):
                return self._shrunk(grown, mask, usable)
        return None

    def _shrunk(self, grown: int, mask: int, usable: Callable[[int], bool]) -> int:
        for bit in self._space.members(grown & ~mask):
            if usable(grown & ~bit):
                grown &= ~bit
        return grown

    def _held(self) -> tuple[int, dict[int, str]]:
        """Factors that no configuration can have at their safe level, each with the reason."""
        held, reasons = 0, {}
        full = self._space.full
        for bit in self._space.members(full):
            alone = self.reason(full & ~bit)
            if alone is None or self.reason(0) is None:
                continue
            others = self._space.members(full & ~bit)
            if any(self.reason(full & ~bit & ~other) is None for other in others):
                continue
            if any(self.reason(other) is None for other in others):
                continue
            held |= bit
            reasons[bit] = alone
        return held, reasons
