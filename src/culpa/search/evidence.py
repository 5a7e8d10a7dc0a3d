"""The history sorted by configuration: which trials failed, passed, or said nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from culpa.model import Configuration, Count, Observation, Outcome
from culpa.search.space import Reading, Space

_REFINING = {"level", "threshold", "relation"}


@dataclass(frozen=True, slots=True)
class Cell:
    """All trials of one configuration, by the numbers that sentences name them by.

    `spoiled` are those that ended as OTHER or UNTESTABLE: no evidence for or against a hypothesis. `refining`
    marks trials of third levels that were chosen because the set was known: they tell of those levels only.
    """

    configuration: Configuration
    reading: Reading
    failed: tuple[int, ...] = ()
    passed: tuple[int, ...] = ()
    spoiled: tuple[int, ...] = ()
    refining: bool = False

    @property
    def attempts(self) -> int:
        return len(self.failed) + len(self.passed) + len(self.spoiled)

    @property
    def count(self) -> Count:
        """How often it failed, of the trials that were evidence."""
        return Count(len(self.failed), len(self.failed) + len(self.passed))


class Evidence:
    """What the history says, read in one space. Immutable once built."""

    def __init__(self, space: Space, history: Sequence[Observation]) -> None:
        self.history = tuple(history)
        self.space = space
        found: dict[Configuration, tuple[list[int], list[int], list[int]]] = {}
        numbers = [trial.trial or place for place, trial in enumerate(history, start=1)]
        if len(set(numbers)) < len(numbers):
            raise ValueError("two trials of the history have the same number")
        self.trials = dict(zip(numbers, history, strict=True))
        for number, observation in self.trials.items():
            failed, passed, spoiled = found.setdefault(observation.configuration, ([], [], []))
            if observation.outcome is Outcome.FAIL:
                failed.append(number)
            elif observation.outcome is Outcome.PASS:
                passed.append(number)
            else:
                spoiled.append(number)
        self.by_configuration = {
            configuration: self._cell(configuration, *numbers) for configuration, numbers in found.items()
        }
        self.cells = tuple(self.by_configuration.values())
        self.by_mask = {cell.reading.low: cell for cell in self.cells if cell.reading.exact}

    def _cell(
        self, configuration: Configuration, failed: list[int], passed: list[int], spoiled: list[int]
    ) -> Cell:
        reading = self.space.read(configuration)
        purposes = {self.trials[number].purpose for number in (*failed, *passed, *spoiled)}
        refining = reading.low != reading.high and purposes <= _REFINING
        return Cell(configuration, reading, tuple(failed), tuple(passed), tuple(spoiled), refining)

    def at(self, mask: int) -> Cell:
        """The trials of the configuration that a mask stands for (an empty cell if there are none)."""
        cell = self.by_mask.get(mask)
        return cell if cell is not None else self.of(self.space.configuration(mask))

    def of(self, configuration: Configuration) -> Cell:
        """The trials of a configuration (an empty cell if there are none)."""
        cell = self.by_configuration.get(configuration)
        return cell if cell is not None else Cell(configuration, self.space.read(configuration))

    @property
    def any_failed(self) -> bool:
        return any(cell.failed for cell in self.cells)

    def passed_without(self, bit: int) -> tuple[int, ...]:
        """Trials that passed with the factor of this bit at its stand-in safe level."""
        return tuple(
            sorted(number for cell in self.cells if not cell.reading.high & bit for number in cell.passed)
        )

    def failed_without(self, bit: int) -> tuple[int, ...]:
        """Trials that failed although the factor of this bit was at a level that is not the suspect one."""
        return tuple(
            sorted(number for cell in self.cells if not cell.reading.low & bit for number in cell.failed)
        )
