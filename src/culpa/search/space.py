"""Configurations as bit masks: one bit for every factor that may belong to a failing set, 1 = suspect."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from culpa.model import Configuration, Factor

MAX_FACTORS = 48  # what the enumeration of sets is sized for; bit 63 is taken by "a term that never holds"


@dataclass(frozen=True, slots=True)
class Reading:
    """A configuration as masks.

    `low` has the factors that are at their suspect level. `high` adds those at a third level (another safe
    level, a number in between), which may act like either. `instrumented` is true if an instrument is not at
    the user's level, so that a pass may be a failure that was hidden.
    """

    low: int
    high: int
    instrumented: bool

    @property
    def exact(self) -> bool:
        """Every factor at its suspect or its stand-in safe level, and every instrument at the user's."""
        return self.low == self.high and not self.instrumented


class Space:
    """The factors, the safe level that stands in for each, and the way from masks to configurations and back.

    Instruments have no bit: they stay at the user's level in everything that a mask can express.
    """

    def __init__(self, factors: Sequence[Factor], stand_in: Mapping[str, str] | None = None) -> None:
        names = [factor.name for factor in factors]
        if len(set(names)) != len(names):
            raise ValueError("factor names must be unique")
        self.factors = tuple(factors)
        self.varied = tuple(factor for factor in factors if not factor.instrument)
        self.instruments = tuple(factor for factor in factors if factor.instrument)
        if len(self.varied) > MAX_FACTORS:
            raise ValueError(f"at most {MAX_FACTORS} factors can be varied, not {len(self.varied)}")
        chosen = stand_in or {}
        self.safe = tuple(chosen.get(factor.name, factor.safe[0]) for factor in self.varied)
        self.size = len(self.varied)
        self.full = (1 << self.size) - 1
        self.launch_bits = sum(
            1 << index for index, factor in enumerate(self.varied) if factor.scope == "launch"
        )
        self._bit = {factor.name: 1 << index for index, factor in enumerate(self.varied)}

    def configuration(self, mask: int) -> Configuration:
        """The configuration that a mask stands for."""
        levels = {factor.name: factor.suspect for factor in self.instruments}
        for index, factor in enumerate(self.varied):
            levels[factor.name] = factor.suspect if mask >> index & 1 else self.safe[index]
        return Configuration.of(levels)

    def read(self, configuration: Configuration) -> Reading:
        """The masks of a configuration; a factor that it does not name is at the user's level."""
        levels = configuration.as_dict()
        low = high = 0
        for index, factor in enumerate(self.varied):
            level = levels.get(factor.name, factor.suspect)
            if level == factor.suspect:
                low |= 1 << index
            elif level != self.safe[index]:
                high |= 1 << index
        return Reading(low, low | high, bool(self.changed_instruments(configuration)))

    def changed_instruments(self, configuration: Configuration) -> tuple[str, ...]:
        """Instruments that are not at the user's level."""
        return tuple(
            item.name
            for item in self.instruments
            if configuration.get(item.name, item.suspect) != item.suspect
        )

    def launch_levels(self, configuration: Configuration) -> int | None:
        """The launch-scope part of a configuration's mask; None if a mask can't express it."""
        reading = self.read(configuration)
        changed = self.changed_instruments(configuration)
        third = (reading.high ^ reading.low) & self.launch_bits
        if third or any(item.scope == "launch" and item.name in changed for item in self.instruments):
            return None
        return reading.low & self.launch_bits

    def names(self, mask: int) -> tuple[str, ...]:
        """The names of the factors in a mask, in the order in which the factors were given."""
        return tuple(factor.name for index, factor in enumerate(self.varied) if mask >> index & 1)

    def mask(self, names: Iterable[str]) -> int:
        """The mask of some factors."""
        total = 0
        for name in names:
            total |= self._bit[name]
        return total

    def members(self, mask: int) -> tuple[int, ...]:
        """The single bits of a mask, lowest first."""
        return tuple(1 << index for index in range(self.size) if mask >> index & 1)

    def factor(self, bit: int) -> Factor:
        """The factor of a single bit."""
        return self.varied[bit.bit_length() - 1]

    def safe_level(self, bit: int) -> str:
        """The safe level that stands in for the factor of a single bit."""
        return self.safe[bit.bit_length() - 1]
