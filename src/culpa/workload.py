"""The workload in which the hunted failure showed, and what of it can be varied."""

from culpa.evidence import WRONG_OUTPUT, asked_as
from culpa.hunt import Sizes, Suite, unmeasured
from culpa.model import Factor
from culpa.model.options import IsolateOptions
from culpa.probes import Probe, request_factors
from culpa.record import Record
from culpa.selection import most_of

ENDPOINT = "endpoint"


def hunts_wrong_output(record: Record) -> bool:
    """Whether the hunted failure lies in the answers themselves."""
    return record.hunted is not None and record.hunted.signature.symptom in WRONG_OUTPUT


def hunted_probe(record: Record, suite: Suite) -> Probe | None:
    """The workload as it was asked when the failure showed; None where the launch fails before any request."""
    hunted, limits = record.hunted, record.limits
    if hunted is None or hunted.probe is None or limits is None:
        return None
    probe = suite.failing(limits, record.sizes or Sizes(), hunted.probe, hunted.failed_request)
    known = record.known_answers()
    probe = probe.vouched(lambda request: asked_as(request) in known)
    # Log-probabilities are asked for to compare answers; where a crash is hunted, they only disturb.
    return probe if hunts_wrong_output(record) else unmeasured(probe)


def varied_in_request(
    probe: Probe | None, record: Record, options: IsolateOptions, room: int
) -> tuple[Factor, ...]:
    """The factors of the failing request that are varied beside those of the launch, at most `room` of them."""
    extra = request_factors(probe) if probe is not None else ()
    chosen = [
        factor
        for factor in extra
        if factor.name not in options.skip
        and factor.name not in record.dropped
        # What culpa itself asks for on top, to compare answers, is no setting of the user's.
        and not factor.instrument
        # Without the chat template the known answer is no longer known: such an arm could not be judged.
        and not (factor.name == ENDPOINT and hunts_wrong_output(record))
        and (not options.only or factor.name in options.only)
    ]
    return most_of(chosen, room)
