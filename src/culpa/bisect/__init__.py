"""`culpa bisect`: the version with which a failure came in, or with which it went away."""

from culpa.bisect.run import (
    BisectAsked,
    BisectRun,
    BisectSetup,
    carry_out,
    new_bisection,
    plan_of,
    resumed_bisection,
    set_up,
)

__all__ = [
    "BisectAsked",
    "BisectRun",
    "BisectSetup",
    "carry_out",
    "new_bisection",
    "plan_of",
    "resumed_bisection",
    "set_up",
]
