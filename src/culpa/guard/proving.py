"""Which faults a self-test plants, and whether what the guard then says names each of them."""

import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from culpa.guard.reading import in_order
from culpa.model.guard import GuardRecord, PlantedFault, Proof, Violation


class PlantRun(BaseModel):
    """The faults that are planted in one life of an engine, and what is asked of it meanwhile."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str
    mode: Literal["log", "raise"]
    plants: tuple[str, ...] = Field(min_length=1)
    probes: tuple[str, ...] = Field(min_length=1)
    stages: int = Field(default=1, ge=1)
    pages: int = Field(default=1, ge=0)

    @property
    def faults(self) -> tuple[str, ...]:
        """The names of the faults."""
        return tuple(plant.split(":")[0] for plant in self.plants)


@cache
def _runs() -> tuple[PlantRun, ...]:
    text = (files("culpa.guard") / "plants.toml").read_text(encoding="utf-8")
    return tuple(PlantRun.model_validate(row) for row in tomllib.loads(text)["run"])


def plant_runs(engine: str) -> tuple[PlantRun, ...]:
    """The runs of an engine's self-test."""
    return tuple(run for run in _runs() if run.engine == engine)


def prove(run: PlantRun, record: GuardRecord) -> tuple[Proof, ...]:
    """For each fault of a run what the guard made of it. A violation that names one does not name another too."""
    used: list[Violation] = []
    proofs = []
    for fault in run.faults:
        planted = [one for one in record.planted if one.fault == fault]
        if not planted:
            proofs.append(Proof(fault, None, None, "it did not come to be planted in what was asked"))
            continue
        found, by = _named(planted, [one for one in record.violations if one not in used])
        if found is None:
            proofs.append(Proof(fault, planted[0], None, _missed(planted[0], record)))
            continue
        used.append(found)
        proofs.append(Proof(fault, by, found))
    return tuple(proofs)


def inapplicable(run: PlantRun, why: str) -> tuple[Proof, ...]:
    """The faults of a run that this launch has no place for."""
    return tuple(Proof(fault, None, None, why, applies=False) for fault in run.faults)


def _named(
    planted: Sequence[PlantedFault], violations: Sequence[Violation]
) -> tuple[Violation | None, PlantedFault | None]:
    """The first violation of a right kind that comes no earlier than the fault, on its stage or the one after."""
    for one in planted:
        for violation in sorted(violations, key=in_order):
            early = (violation.step or 0) < (one.step or 0)
            if violation.kind in one.expect and not early and _near(violation.stage, one.stage):
                return violation, one
    return None, None


def _near(seen: str | None, planted: str | None) -> bool:
    """Whether a stage sees what was done on another: a hand-over is seen by who receives it."""
    if seen is None or planted is None or seen == planted:
        return True
    numbers = [text.removeprefix("PP") for text in (planted, seen)]
    return all(one.isdigit() for one in numbers) and int(numbers[1]) == int(numbers[0]) + 1


def _missed(planted: PlantedFault, record: GuardRecord) -> str:
    """Why a fault that was planted has no violation to its name."""
    after = [one.kind for one in record.violations if (one.step or 0) >= (planted.step or 0)]
    said = (
        f"the guard said {', '.join(dict.fromkeys(after[:3]))} instead" if after else "the guard said nothing"
    )
    return f"planted at step {planted.step}, expected {' or '.join(planted.expect) or 'nothing'}: {said}"
