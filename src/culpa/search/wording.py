"""Names and sentences that a person reads: arms, lists of trials, probabilities."""

from collections.abc import Sequence

from culpa.model import Configuration
from culpa.search.space import Space


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def trials(numbers: Sequence[int]) -> str:
    """`trial 3`, `trials 3 and 5`; long lists are cut, with their length."""
    if len(numbers) == 1:
        return f"trial {numbers[0]}"
    if len(numbers) > 4:
        shown = ", ".join(str(number) for number in numbers[:3])
        return f"trials {shown} and {len(numbers) - 3} more"
    return f"trials {listed([str(number) for number in numbers])}"


def percent(share: float) -> str:
    """A probability for a person: 97%, 0.4%, 99.7%; never quite 0 or 100."""
    points = min(max(100.0 * share, 0.1), 99.9)
    if 1.0 <= points < 99.0:
        return f"{points:.0f}%"
    return f"{points:.1f}%"


def arm_name(space: Space, mask: int) -> str:
    """A name that a person recognises for any mixture of suspect and safe levels."""
    suspect, safe = space.names(mask), space.names(space.full & ~mask)
    if not safe:
        return "baseline"
    if not suspect:
        return "all safe"
    if len(safe) <= min(3, len(suspect)):
        return f"{'+'.join(safe)} safe"
    if len(suspect) <= 4:
        return f"only {'+'.join(suspect)} suspect"
    return f"{len(suspect)} of {space.size} suspect"


def configuration_name(space: Space, configuration: Configuration) -> str:
    """`arm_name`, with the factors at a third level and the instruments that are changed spelled out."""
    reading = space.read(configuration)
    levels = configuration.as_dict()
    third = [
        f"{name}={levels[name]}"
        for name in (*space.names(reading.high & ~reading.low), *space.changed_instruments(configuration))
    ]
    if not third:
        return arm_name(space, reading.low)
    others = space.names(reading.low)
    if not others or len(others) > 4:
        return ", ".join(third)
    return f"{', '.join(third)} with {'+'.join(others)} suspect"
