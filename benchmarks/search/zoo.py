"""The reference engine's faults as cases of the benchmark: its table gives the truth, culpa's adapter the factors.

The launch factors are those that the adapter reads from the launch that shows the fault, with their priors; the
request factors are those of the first built-in probe that varies all that the truth names. The engine itself is not
started: the sets of the table are simulated. `culpa bench zoo` runs the same faults for real.
"""

from functools import cache

from benchmarks.search.simulate import Case
from culpa.isolate import set_up
from culpa.model import Factor
from culpa.model.options import IsolateOptions
from culpa.model.zoo import KnownFault
from culpa.probes import Limits, builtin_probes, request_factors
from culpa.zoo import asked, known_faults


@cache
def zoo_cases() -> tuple[Case, ...]:
    """A case for every fault whose set can be put together from the launch and one probe."""
    return tuple(case for case in map(_case, known_faults()) if case is not None)


def _case(fault: KnownFault) -> Case | None:
    reading = set_up(asked(fault, IsolateOptions(), with_arms=False)).reading
    launch = tuple(factor for factor in reading.factors if factor.name not in fault.skip)
    names = {name for one in fault.expected for name in one}
    request = _request_factors(names - {factor.name for factor in launch})
    if request is None:
        return None
    # An instrument that the condition names keeps the failure away.
    hiding = {factor.name for factor in launch if factor.instrument and factor.name in fault.condition}
    causes = tuple(frozenset(one) for one in fault.expected)
    return Case("zoo", (*launch, *request), causes, fault.rate, masking=frozenset(hiding))


def _request_factors(names: set[str]) -> tuple[Factor, ...] | None:
    """The factors of the plainest probe that varies all of `names`; None if no probe does."""
    for probe in builtin_probes(Limits("reference")):
        factors = request_factors(probe)
        if names <= {factor.name for factor in factors}:
            return factors
    return None
