"""The verdict on the content of one answer: by its expectation, the reference, and its form. Pure."""

from dataclasses import dataclass

from culpa.probes.answer import Answer
from culpa.probes.degeneration import degeneration, flipped
from culpa.probes.form import form_fault
from culpa.probes.judgement import Judgement
from culpa.probes.reference import UNMEASURED_TOLERANCE, Comparison, Reference, nearest, tolerance_floor
from culpa.probes.request import Request
from culpa.probes.wording import asked, got


@dataclass(frozen=True, slots=True)
class Case:
    """One answer to judge, at place `index` of the workload; `siblings` are all answers to its request."""

    probe: str
    index: int
    request: Request
    answer: Answer
    siblings: tuple[Answer, ...]
    reference: Reference | None

    @property
    def references(self) -> tuple[Answer, ...]:
        """What the reference answered to this request."""
        return self.reference.to(self.request) if self.reference is not None else ()

    @property
    def tolerance(self) -> float:
        """How far log-probabilities may be apart, in nats."""
        tokens = self.answer.prompt_tokens or 0
        if self.reference is None:
            return max(UNMEASURED_TOLERANCE, tolerance_floor(tokens))
        return self.reference.tolerance_at(tokens)

    def comparison(self) -> Comparison | None:
        """The comparison with the reference, where both exist and the same answer is owed."""
        if not self.references or not self.request.deterministic:
            return None
        return nearest(self.references, self.answer, self.tolerance)

    def evidence(self, expected: str = "") -> str:
        """What was asked, expected and got."""
        words = f"{asked(self.request, len(self.siblings))}: {expected}"
        return f"{words}got {got(self.siblings)}"

    def degenerate(self) -> str | None:
        """Why the answer is degenerate although the reference's answers to the request are not."""
        prompt = self.request.question
        reason = degeneration(self.answer.text, prompt, self.answer.tokens)
        if reason is None or any(degeneration(one.text, prompt, one.tokens) for one in self.references):
            return None
        if flipped(self.answer.finish_reason, [one.finish_reason for one in self.references]):
            reason += ", and it ran to its limit where the reference stopped"
        return reason

    def wrong(self, evidence: str) -> Judgement:
        """A wrong answer, called gibberish if it is degenerate and the reference (if any) was not."""
        reason = self.degenerate()
        if reason is None:
            return Judgement("wrong", evidence, "wrong_answer", self.index)
        return Judgement("wrong", f"{evidence}; degenerate: {reason}", "gibberish", self.index)


def judge_content(case: Case) -> Judgement:
    """The verdict on an answer that came whole."""
    if case.request.expect is not None:
        return _by_expectation(case)
    comparison = case.comparison()
    if comparison is not None:
        return _by_comparison(case, comparison, case.evidence())
    return _by_form(case)


def _by_expectation(case: Case) -> Judgement:
    """A missing text is a failure only if the user or the reference vouches that the model knows."""
    expect, references = case.request.expect, case.references
    assert expect is not None
    evidence = case.evidence(f"{expect.describe()} expected, ")
    if expect.met(case.answer.text):
        return Judgement("right", evidence)
    if expect.certain:
        return case.wrong(evidence)
    comparison = case.comparison()
    if references and all(expect.met(one.text) for one in references):
        if comparison is not None and comparison.verdict == "near_tie":
            return Judgement("unknown", evidence, caveat=_near_tie(comparison))
        times = len(references)
        return case.wrong(f"{evidence}; the reference was right {times} of {times} times")
    if case.reference is not None and not references and case.probe in case.reference.knows:
        return case.wrong(f"{evidence}; the reference was right on all such questions")
    if comparison is not None:
        return _by_comparison(case, comparison, evidence)
    if case.answer.thinking and case.answer.finish_reason == "length":
        caveat = "The answer was cut within the model's thoughts: it needs more room, or a reference."
    else:
        caveat = "The model may not know: this needs a reference."
    return Judgement("unknown", evidence, caveat=caveat)


def _by_comparison(case: Case, comparison: Comparison, evidence: str) -> Judgement:
    """The verdict where the reference does not know either, but owes the same answer."""
    evidence = f"{evidence}; against the reference: {comparison.sentence}"
    match comparison.verdict:
        case "same":
            return Judgement("right", evidence)
        case "near_tie":
            return Judgement("right", evidence, caveat=_near_tie(comparison))
        case "undecided":
            return case.wrong(evidence) if case.degenerate() else Judgement("unknown", evidence)
        case "deviates" | "diverges":
            return case.wrong(evidence)


def _by_form(case: Case) -> Judgement:
    """The verdict where only the form can be judged, as of a sampled answer."""
    body, references = case.request.body, case.references
    fault = form_fault(body, case.answer)
    if fault is not None:
        evidence = case.evidence(f"{fault}, ")
        kept = sum(form_fault(body, one) is None for one in references)
        if kept and kept == len(references):
            return case.wrong(f"{evidence}; the reference kept the form {kept} of {kept} times")
        caveat = "" if references else "Engine or model may not do this: it needs a reference."
        return Judgement("unknown", evidence, caveat=caveat)
    # An answer that may not stop degenerates by nature.
    reason = None if body.get("ignore_eos") else case.degenerate()
    if reason is None:
        return Judgement("right", case.evidence())
    if references:
        return Judgement("wrong", f"{case.evidence()}; degenerate: {reason}", "gibberish", case.index)
    evidence = f"{case.evidence()}; degenerate: {reason}"
    return Judgement("unknown", evidence, caveat="Small models degenerate by nature: this needs a reference.")


def _near_tie(comparison: Comparison) -> str:
    return f"It left the reference at a near-tie: {comparison.sentence}."
