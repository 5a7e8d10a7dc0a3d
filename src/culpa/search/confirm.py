"""The confirming arms of a set: it fails with all else safe, and passes without any one member."""

from dataclasses import dataclass

from culpa.search.evidence import Cell, Evidence
from culpa.search.proposal import Purpose


@dataclass(frozen=True, slots=True)
class ConfirmingArm:
    """One confirming arm: its purpose, its mask, and the member that it leaves out (0: none)."""

    purpose: Purpose
    mask: int
    without: int


@dataclass(frozen=True)
class Confirmation:
    """How far a set is confirmed. `held` factors stay suspect in every arm: they can't be tested."""

    cause: int
    held: int
    evidence: Evidence
    repeat: int = 1

    @property
    def sufficient(self) -> Cell:
        return self.evidence.at(self.cause | self.held)

    def necessary(self) -> tuple[tuple[int, Cell], ...]:
        """Each member with the trials that made it safe on top of all else safe."""
        members = self.evidence.space.members(self.cause)
        return tuple((bit, self.evidence.at(self.cause & ~bit | self.held)) for bit in members)

    def missing(self) -> list[ConfirmingArm]:
        """Arms that are not in yet, the sufficient one first."""
        arms: list[ConfirmingArm] = []
        if not self.sufficient.failed or self.sufficient.attempts < self.repeat:
            arms.append(ConfirmingArm("sufficient", self.cause | self.held, 0))
        for bit, cell in self.necessary():
            if not cell.passed or cell.attempts < self.repeat:
                arms.append(ConfirmingArm("necessary", self.cause & ~bit | self.held, bit))
        return arms

    @property
    def complete(self) -> bool:
        return not self.missing()
