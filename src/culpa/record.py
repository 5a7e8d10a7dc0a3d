"""Everything that an experiment has seen so far, kept in step with its journal, so that a resumed run knows the same.

The trials are the truth. Beside them stand the limits of the engine and the sizes of its probes, the failure
that is hunted, and the reference answers, each written once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from culpa.evidence import WRONG_OUTPUT
from culpa.hunt import Sizes
from culpa.model import Configuration, Observation, Outcome, Signature, Trial
from culpa.model.told import Told
from culpa.model.trial import NO_TEST
from culpa.probes import Limits, Reference
from culpa.store import BadRunFolder, Journal

# Failures of a request on an engine that lives on: time alone does not bring them.
ANSWERED = WRONG_OUTPUT | {"http_error", "request_rejected", "runaway_answer", "hang"}
# Trials that serve the measurement and say nothing about the fault.
NOT_EVIDENCE = frozenset({"calibration", *NO_TEST})


@dataclass(frozen=True, slots=True)
class Hunted:
    """The failure that the experiment is about.

    `probe` is the name of the failing one, None at start-up; `seconds_up` how long the engine had been ready;
    `failed_request` is the index of the request of that probe at which the failure showed.
    """

    signature: Signature
    probe: str | None
    seconds_up: float = 0.0
    failed_request: int | None = None

    @property
    def watch_seconds(self) -> float:
        """How long a pass must have lived: a little longer than the failing engine did. 0 if answers failed."""
        return 0.0 if self.signature.symptom in ANSWERED else self.seconds_up * 1.1


class Record:
    """The memory of one run. Every `note_*` is on disk before it returns. Raises BadRunFolder for a bad journal."""

    def __init__(self, journal: Journal, entries: Iterable[Mapping[str, Any]] = ()) -> None:
        from pydantic import TypeAdapter

        self._journal = journal
        self._trials = TypeAdapter(Trial)
        self._limits = TypeAdapter(Limits)
        self._references = TypeAdapter(Reference)
        self._signatures = TypeAdapter(Signature)
        self._sizes = TypeAdapter(Sizes)
        self._told = TypeAdapter(Told)
        self.trials: dict[int, Trial] = {}
        self.limits: Limits | None = None
        self.sizes: Sizes | None = None
        self.hunted: Hunted | None = None
        self.reference: Reference | None = None
        self.notes: list[str] = []
        self.dropped: set[str] = set()
        self.reasons: dict[int, str] = {}
        self.told: dict[int, Told] = {}
        self.seconds_before = 0.0
        self.last_id = 0
        for entry in entries:
            try:
                self._take(entry)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise BadRunFolder(
                    f"{journal.folder}: the journal is damaged: an entry of kind {entry['kind']!r} can't be read "
                    f"({type(error).__name__})"
                ) from None

    def _take(self, entry: Mapping[str, Any]) -> None:
        kind = entry["kind"]
        if kind == "trial":
            trial = self._trials.validate_python(entry["trial"])
            self.trials[trial.id] = trial
        elif kind == "limits":
            self.limits = self._limits.validate_python(entry["limits"])
            self.sizes = self._sizes.validate_python(entry["sizes"])
        elif kind == "hunted":
            self.hunted = Hunted(
                self._signatures.validate_python(entry["signature"]),
                entry["probe"],
                float(entry["seconds_up"]),
                entry["failed_request"],
            )
        elif kind == "reference":
            self.reference = self._references.validate_python(entry["reference"])
        elif kind == "dropped":
            self.dropped.add(entry["factor"])
        elif kind == "note":
            self.notes.append(entry["text"])
        elif kind == "trial_started":
            self.last_id = max(self.last_id, int(entry["id"]))
            self.reasons[int(entry["id"])] = str(entry.get("why", ""))
        elif kind == "told":
            told = self._told.validate_python(entry["told"])
            self.told[told.trial] = told
        if "elapsed" in entry:
            self.seconds_before = float(entry["elapsed"])

    def next_id(self, elapsed: float, why: str = "") -> int:
        """Reserve the number of the next trial, and keep why it is run; numbers of trials that were cut off are
        not used again."""
        self.last_id = max([self.last_id, *self.trials]) + 1
        self.reasons[self.last_id] = why
        self._journal.append("trial_started", id=self.last_id, elapsed=round(elapsed, 3), why=why)
        return self.last_id

    def note_told(self, told: Told) -> None:
        """Keep what a trial was expected to tell and what it told."""
        self.told[told.trial] = told
        self._journal.append("told", told=self._told.dump_python(told, mode="json"))

    def note_trial(self, trial: Trial, elapsed: float) -> None:
        """Keep a finished trial; a later entry with the same number replaces an earlier one."""
        self.trials[trial.id] = trial
        self._journal.append(
            "trial", trial=self._trials.dump_python(trial, mode="json"), elapsed=round(elapsed, 3)
        )

    def note_limits(self, limits: Limits, sizes: Sizes) -> None:
        """Keep what the probes are made for: they must not change in the middle of a run."""
        self.limits, self.sizes = limits, sizes
        self._journal.append(
            "limits",
            limits=self._limits.dump_python(limits, mode="json"),
            sizes=self._sizes.dump_python(sizes, mode="json"),
        )

    def note_hunted(self, hunted: Hunted) -> None:
        """Keep what the experiment is about."""
        self.hunted = hunted
        self._journal.append(
            "hunted",
            signature=self._signatures.dump_python(hunted.signature, mode="json"),
            probe=hunted.probe,
            seconds_up=round(hunted.seconds_up, 3),
            failed_request=hunted.failed_request,
        )

    def note_reference(self, reference: Reference) -> None:
        """Keep the answers of the reference configuration."""
        self.reference = reference
        self._journal.append("reference", reference=self._references.dump_python(reference, mode="json"))

    def drop_factor(self, name: str) -> None:
        """Vary a request factor no more: the engine does not take the other level at all."""
        self.dropped.add(name)
        self._journal.append("dropped", factor=name)

    def note(self, text: str) -> bool:
        """Keep a sentence for the report; False if it is known already."""
        if text in self.notes:
            return False
        self.notes.append(text)
        self._journal.append("note", text=text)
        return True

    def ordered(self) -> tuple[Trial, ...]:
        """All finished trials, oldest first."""
        return tuple(self.trials[number] for number in sorted(self.trials))

    def baselines(self) -> tuple[Trial, ...]:
        """The trials of the launch as it is."""
        return tuple(trial for trial in self.ordered() if trial.purpose == "baseline")

    def known_answers(self) -> frozenset[str]:
        """What the model answered rightly each time in the launch as it is (`RequestResult.asked`): it knows that."""
        answered = [one for trial in self.baselines() for one in trial.requests if one.status != "failed"]
        missed = {one.asked for one in answered if one.status != "right"}
        return frozenset(one.asked for one in answered if one.asked not in missed)

    @property
    def ignorant_passes(self) -> bool:
        """Whether an arm passed with answers that missed what was expected, so that it is open if they are right."""
        return any(_ignorant(trial) for trial in self.trials.values())

    def disown_ignorant_passes(self, elapsed: float) -> list[Trial]:
        """Once the reference knows all that was asked: earlier passes that missed it failed in another way."""
        if self.reference is None or not self.reference.knows:
            return []
        disowned = [
            replace(
                trial,
                outcome=Outcome.OTHER,
                signature=Signature("wrong_answer"),
                reason="it missed what the all-safe launch knew",
            )
            for trial in self.ordered()
            if _ignorant(trial)
        ]
        for trial in disowned:
            self.note_trial(trial, elapsed)
        return disowned

    def history(self, suspects: Configuration) -> list[Observation]:
        """What search may know, with every configuration completed.

        Trials that ran before the failing request was known had every request factor at its suspect level.
        """
        return [
            replace(trial.observation(), configuration=_over(suspects, trial.configuration))
            for trial in self.ordered()
            if trial.purpose not in NOT_EVIDENCE
        ]

    def count_outcomes(self, trials: Sequence[Trial]) -> tuple[int, int]:
        """How many of these trials failed with the hunted signature, and how many were evidence at all."""
        failed = sum(trial.outcome is Outcome.FAIL for trial in trials)
        return failed, failed + sum(trial.outcome is Outcome.PASS for trial in trials)


def _ignorant(trial: Trial) -> bool:
    passed = trial.outcome is Outcome.PASS and trial.purpose not in {"baseline", "all_safe", *NOT_EVIDENCE}
    return passed and any(one.status == "missed" for one in trial.requests)


def _over(suspects: Configuration, levels: Configuration) -> Configuration:
    """The levels of the factors that are varied now, the suspect one where none is given."""
    return suspects.with_levels({name: levels[name] for name in levels if name in suspects})
