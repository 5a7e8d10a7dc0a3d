"""The text of an HTTP response, whole or as a stream of events, read into an Answer. Pure."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from culpa.probes.answer import Answer, Failure

# What servers write when a NaN reaches their JSON encoder, sampler or logits check.
_NAN_TEXT = re.compile(r"Out of range float values|(?<![\w])nan(?![\w])", re.IGNORECASE)
# vLLM clamps minus infinity to this log-probability; JSON has no infinity.
_LOWEST_LOGPROB = -9999.0
_LONGEST_ERROR = 500


class Collector:
    """Gathers the parts of one answer: a whole body, or the events of a stream one by one."""

    def __init__(self) -> None:
        self.finished = False  # a finish_reason or the end mark of the stream has come
        self.pieces = 0  # parts that carried something, for progress
        self._text: list[str] = []
        self._finish_reason: str | None = None
        self._tokens: list[str] = []
        self._logprobs: list[float] = []
        self._top: list[tuple[tuple[str, float], ...]] = []
        self._usage: Mapping[str, Any] = {}
        self._tools: dict[int, list[str]] = {}
        self._embedding: tuple[float, ...] = ()
        self._thinking = False
        self._nan: str | None = None
        self._failure: Failure | None = None
        self._error: str | None = None

    @property
    def broken(self) -> bool:
        """True once an error has come: nothing after it counts."""
        return self._failure is not None

    def fail(self, failure: Failure, error: str) -> None:
        """Note what went wrong; the first such note holds."""
        if self._failure is None:
            self._failure, self._error = failure, error

    def feed(self, text: str, what: str) -> None:
        """Take one JSON text, such as a body or the data of an event; `what` names it in messages."""
        constants: list[str] = []

        def constant(name: str) -> float:
            constants.append(name)
            return _LOWEST_LOGPROB if name == "-Infinity" else math.nan

        try:
            payload = json.loads(text, parse_constant=constant)
        except (ValueError, RecursionError) as error:
            self.fail("malformed", f"{what} is no JSON ({error}): {_shown(text)}")
            return
        bad = [name for name in constants if name != "-Infinity"]
        if bad:
            self._note_nan(f"{what} holds the number {bad[0]}")
        if not isinstance(payload, Mapping):
            self.fail("malformed", f"{what} is no JSON object: {_shown(text)}")
            return
        if payload.get("error"):
            self.fail("http_error", error_text(text))
            if _NAN_TEXT.search(text):
                self._note_nan(f"{what} says: {error_text(text)}")
            return
        try:
            self._take(payload, text)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            self.fail("malformed", f"{what} has an unexpected shape ({error}): {_shown(text)}")

    def answer(self, status: int | None, seconds: float) -> Answer:
        """All that has come so far as an Answer."""
        details = self._usage.get("prompt_tokens_details") or {}
        text = "".join(self._text)
        return Answer(
            status=status,
            text=text,
            finish_reason=self._finish_reason,
            tokens=tuple(self._tokens),
            logprobs=tuple(self._logprobs),
            top_logprobs=tuple(self._top),
            prompt_tokens=_count(self._usage.get("prompt_tokens")),
            cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None,
            completion_tokens=_count(self._usage.get("completion_tokens")),
            seconds=seconds,
            error=self._error,
            failure=self._failure,
            nan=self._nan,
            tool_calls=tuple("".join(parts) + ")" for _, parts in sorted(self._tools.items())),
            embedding=self._embedding,
            thinking=self._thinking or text.lstrip().startswith("<think>"),
        )

    def _take(self, payload: Mapping[str, Any], raw: str) -> None:
        if isinstance(payload.get("usage"), Mapping):
            self._usage = payload["usage"]
        if isinstance(payload.get("meta_info"), Mapping):
            self._take_generated(payload)
            return
        data = payload.get("data")
        if isinstance(data, list) and data and isinstance(data[0], Mapping) and "embedding" in data[0]:
            self._take_embedding(data[0]["embedding"])
        if not payload.keys() & {"choices", "data", "usage"}:
            self._text.append(raw)  # an endpoint of its own, such as the user's request may name
        for choice in payload.get("choices") or ():
            if choice.get("index", 0) == 0:
                self._take_choice(choice)

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        message = choice.get("message") or choice.get("delta") or {}
        # A reasoning model's thoughts count as text: garbage in them is garbage.
        thought = message.get("reasoning_content") or message.get("reasoning")
        self._thinking = self._thinking or bool(thought)
        for piece in (thought, message.get("content"), choice.get("text")):
            if piece:
                self._text.append(str(piece))
                self.pieces += 1
        for call in message.get("tool_calls") or ():
            self._take_tool_call(call)
        if choice.get("logprobs"):
            self._take_logprobs(choice["logprobs"])
        if choice.get("finish_reason"):
            self._finish_reason = str(choice["finish_reason"])
            self.finished = True

    def _take_generated(self, payload: Mapping[str, Any]) -> None:
        """SGLang's own endpoint: each event holds the whole text so far, and counts of its own."""
        self._usage = payload["meta_info"]
        if isinstance(payload.get("text"), str):
            self._text = [payload["text"]]
            self.pieces += 1
        reason = self._usage.get("finish_reason")
        if isinstance(reason, Mapping):
            self._finish_reason = str(reason.get("type"))
            self.finished = True

    def _take_tool_call(self, call: Mapping[str, Any]) -> None:
        function = call.get("function") or {}
        parts = self._tools.setdefault(int(call.get("index", len(self._tools))), [])
        if not parts:
            parts.append(f"{function.get('name')}(")
        parts.append(str(function.get("arguments") or ""))
        self.pieces += 1

    def _take_logprobs(self, logprobs: Mapping[str, Any]) -> None:
        if "content" in logprobs:  # chat, and llama.cpp's completions
            for entry in logprobs["content"] or ():
                top = entry.get("top_logprobs") or ()
                candidates = [(str(one["token"]), one["logprob"]) for one in top]
                self._take_token(str(entry["token"]), entry["logprob"], candidates)
            return
        tops = logprobs.get("top_logprobs") or ()
        for index, (token, logprob) in enumerate(
            zip(logprobs.get("tokens") or (), logprobs.get("token_logprobs") or (), strict=True)
        ):
            if logprob is None and not self._tokens:
                continue  # an echoed prompt's first token has nothing before it
            candidates = list((tops[index] or {}).items()) if index < len(tops) else []
            self._take_token(str(token), logprob, candidates)

    def _take_token(self, token: str, logprob: float | None, top: list[tuple[str, float | None]]) -> None:
        number = _LOWEST_LOGPROB if logprob is None or math.isnan(logprob) else float(logprob)
        values = [logprob, *(value for _, value in top)]
        # llama.cpp's JSON encoder writes NaN as null.
        if any(value is None or math.isnan(value) for value in values):
            self._note_nan(f"the log-probabilities of token {len(self._tokens) + 1} are no numbers")
        known = [(name, float(value)) for name, value in top if value is not None and not math.isnan(value)]
        self._tokens.append(token)
        self._logprobs.append(max(number, _LOWEST_LOGPROB))
        self._top.append(tuple(sorted(known, key=lambda one: -one[1])))

    def _take_embedding(self, values: Any) -> None:
        if not isinstance(values, list):  # base64: asked for by the user, not looked into
            return
        if any(value is None or math.isnan(value) for value in values):
            self._note_nan("the embedding holds values that are no numbers")
            return
        self._embedding = tuple(float(value) for value in values)

    def _note_nan(self, where: str) -> None:
        self._nan = self._nan or where


def read_body(status: int, text: str, seconds: float) -> Answer:
    """A whole response body as an Answer."""
    collector = Collector()
    if status >= 400:
        return read_error(status, text, seconds)
    collector.feed(text, "the response")
    return collector.answer(status, seconds)


def read_error(status: int, text: str, seconds: float) -> Answer:
    """An error response as an Answer: the engine's own words, and whether they speak of NaN."""
    said = error_text(text)
    nan = f"HTTP {status} says: {said}" if status >= 500 and _NAN_TEXT.search(text) else None
    return Answer(status=status, seconds=seconds, failure="http_error", error=said, nan=nan)


def error_text(text: str) -> str:
    """The message within an error body, or the start of the body itself; one line, at most 500 characters."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _shown(text)
    for key in ("error", "message", "detail", "msg"):
        if isinstance(found, Mapping) and found.get(key):
            found = found[key]
    return _shown(found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))


def event_data(line: str) -> str | None:
    """The data that one line of an event stream carries, or None for comments, blanks and other fields.

    OpenAI-compatible servers put each event on one `data:` line; llama.cpp has used `error:` for errors.
    """
    name, separator, value = line.partition(":")
    if separator and name in ("data", "error"):
        return value.strip()
    return None


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not math.isnan(value) else None


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_ERROR else line[:_LONGEST_ERROR] + "..."
