"""What is wrong with the factors and arms that a search is given."""

from collections.abc import Sequence

from culpa.model import Arm, Configuration, Factor, all_suspect


def check_numbers(factors: Sequence[Factor]) -> None:
    """Raise ValueError for a numeric factor with a level that is no integer."""
    for factor in factors:
        for level in (factor.suspect, *factor.safe) if factor.numeric else ():
            if not level.removeprefix("-").isdecimal():
                raise ValueError(f"factor {factor.name} is numeric: {level!r} is no integer")


def checked_arms(factors: Sequence[Factor], arms: Sequence[Arm]) -> list[tuple[Arm, Configuration]]:
    """The arms with their configurations. Raises ValueError for a factor or level that there is not."""
    by_name = {factor.name: factor for factor in factors}
    baseline = all_suspect(factors)
    checked = []
    for arm in arms:
        for name, level in arm.levels:
            factor = by_name.get(name)
            if factor is None:
                raise ValueError(f"arm {arm.name}: there is no factor {name!r}")
            if level != factor.suspect and level not in factor.safe:
                _check_between(arm, factor, level)
        checked.append((arm, baseline.with_levels(dict(arm.levels))))
    return checked


def _check_between(arm: Arm, factor: Factor, level: str) -> None:
    """A level that is neither suspect nor safe: any number of a numeric factor that is not below its minimum."""
    if not factor.numeric:
        raise ValueError(f"arm {arm.name}: factor {factor.name} has no level {level!r}")
    if not level.removeprefix("-").isdecimal():
        raise ValueError(f"arm {arm.name}: factor {factor.name} is numeric: {level!r} is no integer")
    if int(level) < factor.minimum:
        raise ValueError(
            f"arm {arm.name}: factor {factor.name} can't be below {factor.minimum}, as {level} is"
        )
