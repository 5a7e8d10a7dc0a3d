"""The plainest value of a number at which a case still fails, found by halving."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import isqrt

MOST_TRIALS = 12
_FAR_APART = 4  # ratio of the ends from which on they are halved on a logarithmic scale
_NEAR_ENOUGH = 0.01  # share of the value within which a boundary is as good as exact, for large numbers


@dataclass(frozen=True, slots=True)
class Boundary:
    """`failing` is the plainest value that was seen to fail, `passing` the nearest one that did not. `monotone` is
    False where a value between `failing` and the first one passed: then nothing is claimed between them."""

    name: str
    failing: int
    passing: int
    monotone: bool = True

    def sentence(self) -> str:
        """What was shown, in a sentence."""
        if not self.monotone:
            return (
                f"{self.name}: not monotone, a value between two failing ones passed; left at {self.failing}"
            )
        between = "" if abs(self.failing - self.passing) <= 1 else ", the boundary lies between"
        return f"{self.name}: fails at {self.failing}, not at {self.passing}{between}"


async def boundary(
    name: str, suspect: int, safe: int, fails: Callable[[int], Awaitable[bool]], *, exact: bool = False
) -> Boundary:
    """The boundary between `suspect`, which fails, and `safe`.

    The safe end is tried first: a number that does not matter goes there at once. Then the interval is halved, on a
    logarithmic scale while its ends are far apart, until the ends are neighbours or (unless `exact`) within a
    hundredth. At last a value in the middle of what is taken to fail is tried: if it passes, the number has no
    threshold, and stays as it was.
    """
    if await fails(safe):
        return Boundary(name, safe, safe)
    failing, passing = suspect, safe
    for _ in range(MOST_TRIALS):
        if abs(failing - passing) <= (1 if exact else max(1, int(_NEAR_ENOUGH * abs(failing)))):
            break
        value = middle(failing, passing)
        if await fails(value):
            failing = value
        else:
            passing = value
    if abs(suspect - failing) > 1 and not await fails(middle(suspect, failing)):
        return Boundary(name, suspect, passing, monotone=False)
    return Boundary(name, failing, passing)


def middle(one: int, other: int) -> int:
    """A value strictly between two that are not neighbours."""
    low, high = sorted((one, other))
    value = isqrt(low * high) if low > 0 and high >= low * _FAR_APART else (low + high) // 2
    return max(low + 1, min(value, high - 1))
