"""What is asked once a set is confirmed: its members' other safe levels, boundaries of numbers, instruments."""

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations

from culpa.model import Configuration, Factor, FactorStatus
from culpa.search import numeric, relation
from culpa.search.evidence import Cell
from culpa.search.masking import Masking
from culpa.search.numeric import Plane, Threshold
from culpa.search.options import Options
from culpa.search.proposal import Proposal, Purpose
from culpa.search.relation import Relation
from culpa.search.shape import Shape
from culpa.search.situation import Cause, Situation
from culpa.search.verdict import passes_needed, verdict
from culpa.search.wording import configuration_name, listed, trials

_MOST_PASSES = 6  # a fault that shows more rarely than this can see makes a boundary too dear


class Refinement:
    """Refines one confirmed cause. `next` gives the trials, `conditions` the sentences they come to."""

    def __init__(self, situation: Situation, cause: Cause, options: Options) -> None:
        self._situation = situation
        self._cause = cause
        self._options = options
        self._space = situation.space
        self._needed = passes_needed(situation.posterior.expected_rate())
        self._ground = self._space.configuration(cause.mask | cause.held)
        self._members = tuple(self._space.factor(bit) for bit in self._space.members(cause.mask))

    def next(self) -> Proposal | None:
        """The next trial of the refinement, None if it is done."""
        return self._next_level() or self._next_number() or self._next_instrument() or self._next_masking()

    def conditions(self) -> tuple[str, ...]:
        """Sentences about other levels, thresholds and relations that trials have shown."""
        return (*self._number_sentences(), *self._level_sentences())

    # --- other safe levels ---------------------------------------------------------------------------------

    def _other_levels(self) -> Iterator[tuple[Factor, str, Configuration]]:
        for factor in self._members:
            stand_in = factor.safe.index(self._space.safe_level(self._space.mask([factor.name])))
            for level in factor.safe[stand_in + 1 :] if not factor.order else ():
                yield factor, level, self._ground.with_levels({factor.name: level})

    def _next_level(self) -> Proposal | None:
        for factor, level, configuration in self._other_levels():
            if self._untried(configuration):
                reason = f"{factor.name} has another safe level: does it pass at {level} too?"
                return self._proposal(configuration, "level", reason)
        return None

    def _spoiled_levels(self) -> Iterator[tuple[str, list[int]]]:
        """Safe levels of members that another one stands in for, with the trials that they spoiled."""
        for factor in self._members:
            stand_in = factor.safe.index(self._space.safe_level(self._space.mask([factor.name])))
            for level in factor.safe[:stand_in]:
                cells = self._situation.evidence.cells
                with_it = [cell for cell in cells if cell.configuration.get(factor.name) == level]
                numbers = sorted(number for cell in with_it for number in cell.spoiled)
                if numbers:
                    yield f"{factor.name}={level}", numbers

    def _level_sentences(self) -> Iterator[str]:
        for level, numbers in self._spoiled_levels():
            yield f"{level} could not be judged ({trials(numbers)})"
        for factor, level, configuration in self._other_levels():
            cell = self._situation.evidence.of(configuration)
            if cell.failed:
                yield f"fails with {factor.name}={level} too ({trials(cell.failed)})"
            elif cell.passed:
                yield f"passes with {factor.name}={level} too ({trials(cell.passed)})"
            elif cell.spoiled:
                yield f"{factor.name}={level} could not be judged ({trials(cell.spoiled)})"

    # --- numbers -------------------------------------------------------------------------------------------

    @cached_property
    def _plane(self) -> Plane:
        numbers = tuple(factor for factor in self._members if factor.ordered)
        return Plane(
            self._situation.evidence, self._ground, numbers, self._needed, self._situation.feasible.refuses
        )

    def _safe_value(self, factor: Factor) -> int:
        return factor.steps(self._space.safe_level(self._space.mask([factor.name])))

    def _threshold(self, factor: Factor) -> Threshold:
        return numeric.threshold(self._plane, factor, self._safe_value(factor))

    def _shape(self, factor: Factor) -> Shape:
        return Shape(self._plane, self._threshold(factor), self._safe_value(factor))

    def _relations(self) -> Iterator[Relation]:
        """Comparisons that a boundary found so far suggests."""
        for first, second in combinations(self._plane.members, 2):
            for one, other in ((first, second), (second, first)):
                fails_low = other.steps(other.suspect) < self._safe_value(other)
                found = relation.candidate(self._threshold(one), other, fails_low)
                if found is not None:
                    yield found
                    break

    def _settled(self) -> frozenset[str]:
        """Members whose boundary a confirmed relation already states."""
        return frozenset(
            name
            for found in self._relations()
            if found.holds(relation.tested_points(self._plane, found))
            for name in (found.low.name, found.high.name)
        )

    def _next_number(self) -> Proposal | None:
        if not self._options.thresholds or self._needed > _MOST_PASSES:
            return None
        settled = self._settled()
        for factor in self._plane.members:
            proposal = self._next_relation(settled)
            if proposal is None and factor.name not in settled:
                proposal = self._next_threshold(factor)
            if proposal is not None:
                return proposal
        return self._next_relation(settled)

    def _next_threshold(self, factor: Factor) -> Proposal | None:
        found = self._threshold(factor)
        landmarks = tuple(
            value + shift
            for other in self._plane.members
            if other is not factor and factor.counts and other.counts
            for value in (other.steps(other.suspect),)
            for shift in (0, -1, 1)
        )
        known = f"{factor.name} fails at {factor.level(found.failing)} and passes at {factor.level(found.passing)}"
        value = numeric.next_value(self._plane, found, landmarks)
        question = "which is it at {}, the other members as they were?"
        if value is None:
            value = self._shape(factor).next_value()
            question = "if that is a threshold, what is it at {}?"
        if value is None:
            return None
        reason = f"{known}: {question.format(factor.level(value))}"
        configuration = self._plane.configuration({factor.name: value})
        return self._proposal(configuration, "threshold", reason, bits=1.0)

    def _next_relation(self, settled: frozenset[str]) -> Proposal | None:
        for found in self._relations():
            if found.low.name in settled or found.high.name in settled:
                continue
            for low, high in found.decisive(self._safe_value(found.high)):
                values = {found.low.name: low, found.high.name: high}
                configuration = self._plane.configuration(values)
                open_ended = self._plane.verdict(values) == "open"
                if open_ended and self._situation.feasible.refuses(configuration) is None:
                    reason = f"is it {found}, or a threshold of each? They differ here"
                    return self._proposal(configuration, "relation", reason, bits=1.0)
        return None

    def _number_sentences(self) -> Iterator[str]:
        settled = self._settled()
        for found in self._relations():
            points = relation.tested_points(self._plane, found)
            if found.holds(points):
                yield relation.describe(self._plane, found, points)
            else:
                names = f"{found.low.name} and {found.high.name}"
                fits = relation.thresholds_fit(points)
                rest = "thresholds of each explain the trials as well" if fits else "the trials contradict it"
                yield f"the boundary suggests {found}, but {rest} ({names} moved together)"
        for factor in self._plane.members:
            if (
                factor.name not in settled
                and self._plane.cell({factor.name: factor.steps(factor.suspect)}).failed
            ):
                shape = self._shape(factor)
                bent = shape.exceptions()
                yield shape.describe() if bent else numeric.describe(self._plane, self._threshold(factor))

    # --- instruments ---------------------------------------------------------------------------------------

    def _with_instrument(self, factor: Factor) -> Configuration:
        return self._ground.with_levels({factor.name: factor.safe[0]})

    def _instrument_cells(self, factor: Factor) -> list[Cell]:
        """Trials with the whole set suspect and the instrument changed, other instruments as they were."""
        return [
            cell
            for cell in self._situation.evidence.cells
            if cell.reading.low & self._cause.mask == self._cause.mask
            and self._space.changed_instruments(cell.configuration) == (factor.name,)
        ]

    def _next_instrument(self) -> Proposal | None:
        for factor in self._space.instruments:
            cells = self._instrument_cells(factor)
            if any(cell.failed for cell in cells):
                continue
            configuration = self._with_instrument(factor)
            cell = self._situation.evidence.of(configuration)
            few = cell.passed and len(cell.passed) < min(self._needed, _MOST_PASSES)
            if few or self._untried(configuration):
                reason = (
                    f"{factor.name} is an instrument: does {factor.name}={factor.safe[0]} hide the failure?"
                )
                return self._proposal(configuration, "instrument", reason)
        return None

    def instrument_status(self, factor: Factor) -> FactorStatus:
        """Whether the instrument hides the failure."""
        level = factor.safe[0]
        cells = self._instrument_cells(factor)
        failed = sorted(number for cell in cells for number in cell.failed)
        if failed:
            reason = f"fails with it at {level} too ({trials(failed)})"
            return FactorStatus(factor.name, factor.suspect, level, "out", reason)
        cell = self._situation.evidence.of(self._with_instrument(factor))
        if verdict(cell, self._needed) == "passes":
            names = listed([member.name for member in self._members])
            reason = (
                f"hides the failure: passes with it at {level} although {names} are suspect "
                f"({trials(cell.passed)}); a race is likely, and this is no fix"
            )
            return FactorStatus(factor.name, factor.suspect, level, "masking", reason)
        reason = "the trials with it do not tell" if cell.attempts else "not tried"
        return FactorStatus(factor.name, factor.suspect, level, "untested", reason)

    # --- other factors that hide the failure ---------------------------------------------------------------

    @property
    def _masking(self) -> Masking:
        return Masking(self._situation, self._cause, self._needed)

    def _next_masking(self) -> Proposal | None:
        mask = self._masking.next_mask()
        if mask is None:
            return None
        names = listed([member.name for member in self._members])
        reason = f"it passed although {names} were suspect: which other factor hides the failure?"
        return self._proposal(self._space.configuration(mask), "masking", reason)

    def masking_status(self, bit: int) -> FactorStatus | None:
        """The status of a factor that hides the failure at the user's level, None if that was not shown."""
        factor = self._space.factor(bit)
        for one, failing, passing in self._masking.found():
            if one == bit:
                reason = (
                    f"hides the failure at {factor.suspect}: passes so ({trials(passing.passed)}), and fails with "
                    f"it safe and all else as it was ({trials(failing.failed)})"
                )
                return FactorStatus(
                    factor.name, factor.suspect, self._space.safe_level(bit), "masking", reason
                )
        return None

    # --- helpers -------------------------------------------------------------------------------------------

    def _untried(self, configuration: Configuration) -> bool:
        tried = self._situation.evidence.of(configuration).attempts
        return not tried and self._situation.feasible.refuses(configuration) is None

    def _proposal(
        self, configuration: Configuration, purpose: Purpose, reason: str, bits: float = 0.0
    ) -> Proposal:
        name = configuration_name(self._space, configuration)
        return Proposal(configuration, purpose, name, reason, bits)
