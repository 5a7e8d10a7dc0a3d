"""What an arm that passed tells of the model: what it knew there, it must know in every other arm."""

from collections.abc import Iterator

from culpa.probes import known_from, reference_from
from culpa.record import Record
from culpa.trial import TrialResult


def learn(
    record: Record, result: TrialResult, purpose: str, wrong_output: bool, elapsed: float
) -> Iterator[str]:
    """Keep what the model knew in a trial that passed, and judge earlier passes by it; sentences for the user.

    The answers of the all-safe launch are a reference for all others. Where no wrong output is hunted, any arm that
    knew all it was asked shows that the model knows it; its texts are no measure for others.
    """
    asked = [(one.probe, one.answers) for one in result.asked]
    if purpose == "all_safe":
        record.note_reference(reference_from(asked))
        for trial in record.disown_ignorant_passes(elapsed):
            yield f"trial {trial.id} judged again: {trial.reason}"
    elif not wrong_output and (known := known_from(asked)).knows:
        record.note_reference(known)
