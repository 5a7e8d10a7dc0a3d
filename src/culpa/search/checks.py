"""What is wrong with the factors and arms that a search is given."""

import re
from collections.abc import Sequence

from culpa.model import Arm, Configuration, Factor, all_suspect

_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def check_numbers(factors: Sequence[Factor]) -> None:
    """Raise ValueError for a numeric factor with a level that is no integer, or has more decimals than it may."""
    for factor in factors:
        for level in (factor.suspect, *factor.safe) if factor.numeric else ():
            if not _is_number(factor, level):
                raise ValueError(f"factor {factor.name} is numeric: {level!r} is {_no_number(factor)}")


def _is_number(factor: Factor, level: str) -> bool:
    try:
        factor.steps(level)
    except ValueError:
        return False
    return _PLAIN.fullmatch(level) is not None


def _no_number(factor: Factor) -> str:
    return f"no number with at most {factor.decimals} decimals" if factor.decimals else "no integer"


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
    """A level that is neither suspect nor safe: any of an ordered factor that lies within its ends."""
    if factor.order and level in factor.order:
        return
    if not factor.numeric:
        raise ValueError(f"arm {arm.name}: factor {factor.name} has no level {level!r}")
    if not _is_number(factor, level):
        raise ValueError(
            f"arm {arm.name}: factor {factor.name} is numeric: {level!r} is {_no_number(factor)}"
        )
    lowest, highest = factor.ends
    if not lowest <= factor.steps(level) <= highest:
        side, end = ("below", lowest) if factor.steps(level) < lowest else ("above", highest)
        raise ValueError(
            f"arm {arm.name}: factor {factor.name} can't be {side} {factor.level(end)}, as {level} is"
        )
