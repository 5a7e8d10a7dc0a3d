"""Judges the answers to a workload. Pure: the same answers and reference give the same judgement."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from culpa.probes.answer import Answer
from culpa.probes.content import Case, judge_content
from culpa.probes.judgement import Judgement, Status
from culpa.probes.reference import Reference, nearest
from culpa.probes.refusal import declined
from culpa.probes.request import Probe, Request, Span
from culpa.probes.wording import asked, failure, got

# A chat template's fixed beginning may be cached even when the prompt is new.
_CACHED_BY_TEMPLATE = 64
# Of several failures in one workload the one that says most is named.
_TELLING = ("nan_logits", "http_error", "malformed_answer", "connection_lost", "request_rejected", "")


def judge(
    probe: Probe,
    answers: Sequence[Answer],
    reference: Reference | None = None,
    cached: Sequence[int | None] = (),
) -> Judgement:
    """Judge a workload by its answers, which may be fewer than its requests if a failure ended it.

    `cached` are cached prompt tokens by the engine's own counters, for answers that don't tell them.
    A transport failure or NaN is a failure whatever the text says. A text is judged by its expectation,
    by the other answers to the same request, by its form, and by the reference where there is one.
    """
    requests = probe.requests()
    failed = _failed(probe, requests, answers)
    if failed is not None:
        return failed
    if len(answers) < len(requests):
        return Judgement("unknown", f"{len(answers)} of {len(requests)} requests were answered")
    if not probe.contents:
        return Judgement(
            "right", f"{len(answers)} requests, each with an answer or given up as it was recorded"
        )
    cases = _cases(probe, requests, answers, reference)
    found = [(case, judge_content(case)) for case in cases]
    found += _disagreements(cases)
    # Of what only precedes the workload, nothing but a failure counts.
    before = probe.preceding_requests
    verdicts = [verdict for case, verdict in found if verdict.status == "wrong" or case.index >= before]
    cache = _cache_caveat(probe, answers, cached)
    for status in ("wrong", "unknown"):
        for verdict in verdicts:
            if verdict.status == status:
                return replace(verdict, caveat=" ".join(filter(None, (verdict.caveat, cache))))
    caveats = dict.fromkeys(verdict.caveat for verdict in verdicts if verdict.caveat)
    return Judgement("right", _summary(probe, cases), caveat=" ".join(filter(None, (*caveats, cache))))


def _failed(probe: Probe, requests: Sequence[Request], answers: Sequence[Answer]) -> Judgement | None:
    """The judgement on failures that need no look at the text."""
    found = []
    for index, (request, answer) in enumerate(zip(requests, answers, strict=False)):
        symptom = _symptom(probe, request, answer)
        if symptom or (symptom == "" and index >= probe.preceding_requests):
            said = answer.nan if symptom == "nan_logits" else failure(answer)
            status: Status = "wrong" if symptom else "unsupported"
            found.append(Judgement(status, f"{asked(request)}: {said}", symptom or None, index))
    return min(found, key=lambda judgement: _TELLING.index(judgement.symptom or ""), default=None)


def _symptom(probe: Probe, request: Request, answer: Answer) -> str | None:
    """The symptom of an answer that failed, empty for a kind of request that is not supported, else None."""
    if answer.nan is not None:
        return "nan_logits"
    match answer.failure:
        case None:
            return None
        case "http_error" if request.span is not None and _declined_before(request.span, answer):
            return None
        case "http_error" if probe.source == "user":
            return "request_rejected" if answer.refused else "http_error"
        case "http_error" if declined(request, answer):
            return ""
        case "http_error":
            return "http_error"
        case "malformed":
            return "malformed_answer"
        case "connection_lost" | "not_connected":
            return "connection_lost"


def _declined_before(span: Span, answer: Answer) -> bool:
    """Whether an engine declined a recorded request as it did when it was recorded, or no response is on record."""
    return answer.refused and (span.status is None or span.status == answer.status)


def _cases(
    probe: Probe, requests: Sequence[Request], answers: Sequence[Answer], reference: Reference | None
) -> list[Case]:
    siblings: dict[str, list[Answer]] = {}
    for request, answer in zip(requests, answers, strict=True):
        # What failed and yet is here was refused before the workload began, or was when it was recorded.
        if answer.failed or answer.given_up:
            continue
        siblings.setdefault(request.canonical(), []).append(answer)
    return [
        Case(probe.name, index, request, answer, tuple(siblings[request.canonical()]), reference)
        for index, (request, answer) in enumerate(zip(requests, answers, strict=True))
        if not (answer.failed or answer.given_up)
    ]


def _disagreements(cases: Sequence[Case]) -> Iterator[tuple[Case, Judgement]]:
    """Verdicts on requests that owe the same answer each time and got different ones."""
    first: dict[str, Case] = {}
    for later in cases:
        earlier = first.setdefault(later.request.canonical(), later)
        same = (earlier.answer.text, earlier.answer.tool_calls) == (
            later.answer.text,
            later.answer.tool_calls,
        )
        if not same and later.request.deterministic:
            yield later, _disagreement(earlier, later)


def _disagreement(earlier: Case, later: Case) -> Judgement:
    comparison = nearest([earlier.answer], later.answer, later.tolerance)
    evidence = (
        f"{asked(later.request, len(later.siblings))}: first {got([earlier.answer])}, "
        f"as request {later.index + 1} {got([later.answer])} ({comparison.sentence})"
    )
    expect = later.request.expect
    right = [case for case in (earlier, later) if expect is not None and expect.met(case.answer.text)]
    if len(right) == 2:
        return Judgement("right", evidence, caveat=f"The texts differ: {evidence}.")
    if comparison.verdict == "near_tie":
        return Judgement("unknown" if right else "right", evidence, caveat=f"A near-tie: {evidence}.")
    if right:
        return (later if right == [earlier] else earlier).wrong(evidence)
    if comparison.verdict == "diverges":
        return later.wrong(evidence)
    return Judgement("unknown", evidence)


def _cache_caveat(probe: Probe, answers: Sequence[Answer], cached: Sequence[int | None]) -> str:
    """What the prefix cache did, where that makes the probe weaker than its name."""
    if probe.cache is None:
        return ""
    hits = answers[-1].cached_tokens
    if hits is None and len(cached) == len(answers):
        hits = cached[-1]
    if hits is None:
        return "The engine does not say how much of the prompt was cached."
    # A short prompt is warm if more of it was cached than the first time.
    grown = probe.cache == "warm" and hits > (answers[probe.preceding_requests].cached_tokens or 0)
    if (probe.cache == "warm") == (hits > _CACHED_BY_TEMPLATE or grown):
        return ""
    return f"Not {probe.cache}: {hits} of {answers[-1].prompt_tokens or '?'} prompt tokens came from a cache."


def _summary(probe: Probe, cases: Sequence[Case]) -> str:
    """What a workload without a fault amounted to."""
    cases = [case for case in cases if case.index >= probe.preceding_requests]
    if len({case.request.canonical() for case in cases}) == 1:
        return judge_content(cases[0]).evidence
    known = sum(case.request.expect is not None for case in cases)
    return f"{len(cases)} requests answered, {known} with a known answer, none wrong"
