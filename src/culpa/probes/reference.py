"""Comparison with a reference: token by token, with a tolerance measured from the reference itself."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from culpa.probes.answer import Answer
from culpa.probes.request import Probe, Request

# Log-probabilities of a bfloat16 model moved by 0.03 to 0.07 nats between pipeline sizes.
TOLERANCE_FLOOR = 0.1
# At 25,000 tokens of prompt they moved by 0.23 nats between the same healthy launches: rounding errors add up like
# a random walk, so the floor grows with the root of the length from here on.
_FLOOR_TOKENS = 1000
# The largest difference among a few pairs understates what more pairs would show.
_MARGIN = 2.0
# Without a reference there is no measured tolerance: only a difference beyond any usual noise counts.
UNMEASURED_TOLERANCE = 0.5
# Cosine similarity of embeddings of the same text; reduced precision keeps it above 0.999.
_LEAST_SIMILARITY = 0.99

Verdict = Literal["same", "near_tie", "deviates", "diverges", "undecided"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How an answer differs from another one to the same request.

    `tokens` were compared before the end or the first divergence; `deviation` is the largest difference of
    log-probability among them, in nats, None where one side has none; `gap` is by how many nats the reference
    preferred its own token at the divergence.
    """

    verdict: Verdict
    sentence: str
    tokens: int = 0
    deviation: float | None = None
    gap: float | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """Answers of the all-safe configuration, by the fingerprint of their request.

    `noise` is the largest difference of log-probability between answers of the reference to the same request
    (repeats, cold and warm, alone and at once), in nats, over `pairs` pairs; `tolerance` follows from it.
    `knows` names the probes whose expectations the reference met every time.
    """

    answers: Mapping[str, tuple[Answer, ...]]
    noise: float
    pairs: int
    tolerance: float
    knows: frozenset[str] = frozenset()

    def tolerance_at(self, prompt_tokens: int) -> float:
        """The tolerance for an answer to a prompt of this length, in nats."""
        return max(self.tolerance, tolerance_floor(prompt_tokens))

    def to(self, request: Request) -> tuple[Answer, ...]:
        """The reference's answers to this request, those with log-probabilities first."""
        found = self.answers.get(request.fingerprint(), ())
        return tuple(sorted(found, key=lambda answer: not answer.top_logprobs))


def tolerance_floor(prompt_tokens: int) -> float:
    """The least tolerance for a prompt of this length, in nats, whatever noise was measured."""
    return TOLERANCE_FLOOR * math.sqrt(max(1.0, prompt_tokens / _FLOOR_TOKENS))


def reference_from(
    asked: Iterable[tuple[Probe, Sequence[Answer]]], floor: float = TOLERANCE_FLOOR
) -> Reference:
    """Build a reference from probes that were asked under the all-safe configuration.

    Ask the same requests several times and in several shapes (again, warm, two at once), so that the noise
    can be measured. The tolerance is twice the noise, and at least `floor` nats. Failed answers are left out.
    """
    answers: dict[str, list[Answer]] = {}
    met: dict[str, list[bool]] = {}
    for probe, given in asked:
        for request, answer in zip(probe.requests(), given, strict=False):
            if answer.failed:
                continue
            answers.setdefault(request.fingerprint(), []).append(answer)
            if request.expect is not None:
                met.setdefault(probe.name, []).append(request.expect.met(answer.text))
    deviations = [
        deviation
        for same in answers.values()
        for first, second in combinations(same, 2)
        if (deviation := _common(first, second)[1]) is not None
    ]
    noise = max(deviations, default=0.0)
    return Reference(
        answers={fingerprint: tuple(same) for fingerprint, same in answers.items()},
        noise=noise,
        pairs=len(deviations),
        tolerance=max(floor, _MARGIN * noise),
        knows=frozenset(name for name, results in met.items() if all(results)),
    )


def known_from(asked: Iterable[tuple[Probe, Sequence[Answer]]]) -> Reference:
    """A reference without answers: only which probes' questions the model knows, asked under any configuration."""
    return replace(reference_from(asked), answers={}, noise=0.0, pairs=0, tolerance=TOLERANCE_FLOOR)


def compare(reference: Answer, answer: Answer, tolerance: float) -> Comparison:
    """Compare an answer with a reference answer to the same request, up to the first divergence.

    A divergence where the reference preferred its own token by less than `tolerance` is a near-tie. A
    deviation beyond the tolerance before any divergence is a difference of its own. Without log-probabilities
    of the answer its text is laid against the reference's tokens; without any at all it is undecided.
    """
    if reference.embedding and answer.embedding:
        return _compare_embeddings(reference.embedding, answer.embedding)
    if reference.tokens and answer.tokens:
        return _compare_tokens(reference, answer, tolerance)
    if _said(reference) == _said(answer):
        return Comparison("same", f"the same {len(answer.text)} characters")
    if reference.top_logprobs:
        return _compare_text(reference, answer, tolerance)
    return Comparison(
        "undecided", "the texts differ, and there are no log-probabilities that would show a near-tie"
    )


def nearest(references: Sequence[Answer], answer: Answer, tolerance: float) -> Comparison:
    """The comparison with that reference answer which is nearest; needs at least one.

    If log-probabilities are there on both sides they decide: an equal text must not hide that they moved.
    """
    measured = [reference for reference in references if reference.logprobs]
    if answer.logprobs and measured:
        references = measured
    ranking: tuple[Verdict, ...] = ("same", "near_tie", "undecided", "deviates", "diverges")
    found = (compare(reference, answer, tolerance) for reference in references)
    return min(found, key=lambda comparison: ranking.index(comparison.verdict))


def _said(answer: Answer) -> tuple[str, tuple[str, ...]]:
    return answer.text, answer.tool_calls


def _common(first: Answer, second: Answer) -> tuple[int, float | None]:
    """How many tokens two answers share at the start, and the largest deviation of log-probability there."""
    shared = 0
    deviation: float | None = None
    measured = min(len(first.logprobs), len(second.logprobs))
    for index, (mine, other) in enumerate(zip(first.tokens, second.tokens, strict=False)):
        if mine != other:
            break
        shared += 1
        if index < measured:
            deviation = max(deviation or 0.0, abs(first.logprobs[index] - second.logprobs[index]))
    return shared, deviation


def _compare_tokens(reference: Answer, answer: Answer, tolerance: float) -> Comparison:
    shared, deviation = _common(reference, answer)
    apart = f"log-probabilities up to {deviation:.2f} nats apart" if deviation is not None else "no numbers"
    if deviation is not None and deviation > tolerance:
        sentence = f"{shared} equal tokens, but {apart} (tolerance {tolerance:.2f})"
        return Comparison("deviates", sentence, shared, deviation)
    if shared == len(reference.tokens) == len(answer.tokens):
        return Comparison("same", f"the same {shared} tokens, {apart}", shared, deviation)
    if shared in (len(reference.tokens), len(answer.tokens)):
        if _said(reference) == _said(answer):  # only one of the two lists its end-of-text token
            return Comparison("same", f"the same text, {apart}", shared, deviation)
        sentence = f"one of the two ends after {shared} equal tokens"
        return Comparison("undecided", sentence, shared, deviation)
    return _diverged(reference, shared, answer.tokens[shared], tolerance, deviation)


def _compare_text(reference: Answer, answer: Answer, tolerance: float) -> Comparison:
    """Lay a text without log-probabilities against the reference's tokens, to find where it leaves them."""
    rest = answer.text
    if not reference.text.startswith("".join(reference.tokens)[: len(reference.text)]):
        return Comparison("undecided", "the texts differ, and the reference's tokens don't spell its text")
    for index, token in enumerate(reference.tokens):
        if token and rest.startswith(token):
            rest = rest[len(token) :]
            continue
        if not token and not rest:
            return Comparison("same", f"the same text of {index} tokens", index)
        if not rest:
            return Comparison("undecided", f"the answer ends after {index} equal tokens", index)
        chosen = max(
            (name for name, _ in reference.top_logprobs[index] if name and rest.startswith(name)),
            key=len,
            default=rest[:20],
        )
        return _diverged(reference, index, chosen, tolerance)
    return Comparison("undecided", f"the answer goes on after {len(reference.tokens)} equal tokens")


def _diverged(
    reference: Answer, at: int, chosen: str, tolerance: float, deviation: float | None = None
) -> Comparison:
    """Judge a divergence by what the reference thought of the token that was chosen instead of its own."""
    candidates = dict(reference.top_logprobs[at]) if at < len(reference.top_logprobs) else {}
    if len(candidates) < 2:
        sentence = f"the tokens part after {at}, and no candidates are named there"
        return Comparison("undecided", sentence, at, deviation)
    gap = reference.logprobs[at] - candidates.get(chosen, min(candidates.values()))
    rated = f"rated {gap:.2f} nats {'' if chosen in candidates else 'or more '}below {reference.tokens[at]!r}"
    verdict: Verdict = "diverges"
    if gap < tolerance:  # below the listed candidates the true gap may be larger
        verdict = "near_tie" if chosen in candidates else "undecided"
    sentence = f"{at} equal tokens, then {chosen!r}, which the reference {rated} (tolerance {tolerance:.2f})"
    return Comparison(verdict, sentence, at, deviation, gap)


def _compare_embeddings(reference: Sequence[float], answer: Sequence[float]) -> Comparison:
    if len(reference) != len(answer):
        return Comparison("diverges", f"{len(answer)} dimensions instead of {len(reference)}")
    product = sum(one * other for one, other in zip(reference, answer, strict=True))
    lengths = math.hypot(*reference) * math.hypot(*answer)
    similarity = product / lengths if lengths else float(math.hypot(*reference) == math.hypot(*answer))
    verdict: Verdict = "same" if similarity >= _LEAST_SIMILARITY else "diverges"
    return Comparison(verdict, f"cosine similarity {similarity:.4f} (at least {_LEAST_SIMILARITY})")
