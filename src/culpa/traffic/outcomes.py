"""What came of a request when it was asked again, against what had come of it when it was recorded."""

from dataclasses import dataclass
from typing import Literal

from culpa.probes import Answer
from culpa.probes.responses import Collector, event_data, read_body, read_error
from culpa.traffic.recorded import Recorded

# `same`: the same text where the same is owed. `answered`: as before, texts not comparable. `differs`: another text at
# temperature 0. `changed`: another status. `recovered`: answered now, not then. `failed`: no answer, but then there was
# one. `failed again`: none then, none now. `given up`: as its client did. `unsent`: the engine was gone by then.
Verdict = Literal[
    "same", "answered", "differs", "changed", "recovered", "failed", "failed again", "given up", "unsent"
]
FAILURES: frozenset[Verdict] = frozenset({"failed", "failed again", "changed"})


@dataclass(frozen=True, slots=True)
class Replayed:
    """One request asked again. `tokens` are those of the answers then and now, None where the engine was silent."""

    index: int
    path: str
    verdict: Verdict
    then: str
    now: str
    tokens: tuple[int | None, int | None]
    seconds: float

    @property
    def failed(self) -> bool:
        """Whether the engine failed at it."""
        return self.verdict in FAILURES


def answer_then(one: Recorded) -> Answer | None:
    """The recorded response as an answer; None where none was recorded, or not in whole. Raises BadRecording."""
    if one.status is None or one.outcome != "answered":
        return None
    text = one.response_text() if one.whole else None
    if text is None:
        return None
    seconds = (one.ended or one.at) - one.at
    if one.status >= 400:
        return read_error(one.status, text, seconds)
    if "event-stream" not in one.response_type:
        return read_body(one.status, text, seconds)
    collector = Collector()
    for line in text.split("\n"):
        data = event_data(line.rstrip("\r"))
        if data is not None and data != "[DONE]":
            collector.feed(data, "an event of the stream")
    return collector.answer(one.status, seconds)


def compared(one: Recorded, answer: Answer | None) -> Replayed:
    """The verdict on one request; no answer means that it was not sent. Raises BadRecording."""
    if answer is None:
        return Replayed(one.index, one.path, "unsent", _then(one), "not sent", (None, None), 0.0)
    before = answer_then(one)
    return Replayed(
        index=one.index,
        path=one.path,
        verdict=_verdict(one, before, answer),
        then=_then(one),
        now=_said(answer),
        tokens=(
            before.completion_tokens if before is not None else one.completion_tokens,
            answer.completion_tokens,
        ),
        seconds=round(answer.seconds, 4),
    )


def _verdict(one: Recorded, before: Answer | None, now: Answer) -> Verdict:
    if now.given_up:
        return "given up"
    unreadable = before is not None and before.failure == "malformed"
    if (
        unreadable and now.failure == "malformed"
    ):  # a page that is no JSON, such as that of a control endpoint
        return "answered" if now.status == one.status else "changed"
    if now.failed and not now.refused:
        return "failed again" if one.failed else "failed"
    if one.failed:
        return "recovered"
    if one.outcome != "answered" or one.status is None:
        return "answered"
    if now.status != one.status:
        return "changed"
    if before is None or not _owed(one) or now.failed:
        return "answered"
    return "same" if (before.text, before.tool_calls) == (now.text, now.tool_calls) else "differs"


def _owed(one: Recorded) -> bool:
    body = one.body()
    if body is None or "input" in body:
        return False
    sampling = body.get("sampling_params")  # of SGLang's own endpoint
    asked = sampling if isinstance(sampling, dict) else body
    return asked.get("temperature") == 0


def _then(one: Recorded) -> str:
    match one.outcome:
        case "answered":
            return f"HTTP {one.status}"
        case "cancelled":
            return f"given up by its client after {one.pieces} pieces"
        case "unknown":
            return "not recorded"
        case "lost":
            return f"lost ({one.said or 'the connection broke'})"
        case _:
            return "unanswered when the recording ended"


def _said(answer: Answer) -> str:
    if answer.given_up:
        return "given up"
    if answer.nan:
        return answer.nan
    if answer.failure in ("connection_lost", "not_connected"):
        return answer.error or "the connection broke"
    if answer.failed:
        return f"HTTP {answer.status}: {answer.error}"
    return f"HTTP {answer.status}"
