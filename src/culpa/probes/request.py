"""What is asked: a request, and a workload of requests with what is known of the right answers."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from culpa.probes.prompts import TOKENS_PER_CHARACTER, Recipe

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"

# Fields that say how an answer is delivered or measured, not what is asked.
_DELIVERY = frozenset({"model", "stream", "stream_options", "logprobs", "top_logprobs"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine can take: context and batch in tokens, requests at once. None where it doesn't say."""

    model: str
    context_tokens: int | None = None
    batch_tokens: int | None = None
    parallel: int | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a right answer holds: a text, or a regular expression.

    `certain` is False where the model may simply not know: a missing text is then no failure until a
    reference shows that the model does know. `first_line` restricts the search to the first line that is
    not empty, because a completion without a chat template runs on.
    """

    contains: str | None = None
    regex: str | None = None
    certain: bool = False
    first_line: bool = False

    def met(self, text: str) -> bool:
        """Whether the answer holds what is expected. Words and numbers match only as a whole."""
        if self.first_line:
            text = text.strip().split("\n", 1)[0]
        if self.contains is not None:
            pattern = r"(?<!\w)" * self.contains[:1].isalnum() + re.escape(self.contains)
            pattern += r"(?!\w)" * self.contains[-1:].isalnum()
            if not re.search(pattern, text, re.IGNORECASE):
                return False
        return self.regex is None or re.search(self.regex, text) is not None

    def describe(self) -> str:
        """The expectation in a few words, for evidence."""
        parts = [repr(self.contains)] if self.contains is not None else []
        parts += [f"a match of /{self.regex}/"] if self.regex is not None else []
        return " and ".join(parts) or "any text"


# An answer of so many times its own limit will not end by itself; without a limit it may be this long.
_RUNAWAY = 4
_UNLIMITED_TOKENS = 16_384


@dataclass(frozen=True, slots=True)
class Span:
    """When a recorded request was under way: seconds since the first of its workload. `end` is None where its end was
    not seen. `given_up` is True if its client did not wait for the end, after `pieces` pieces of the answer. `status`
    is the HTTP status of the recorded response, None where none began."""

    start: float
    end: float | None = None
    given_up: bool = False
    pieces: int = 0
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `body` is JSON and goes out untouched but for a missing model name.

    `recipe` is what the prompt's text was made from, so that it can be made again in another size or for
    another endpoint; None for a prompt that is given. `measured` asks for log-probabilities on top, where
    the engine supports them, to compare answers with a reference: an instrument, no part of the workload.
    `span` is set for a recorded one: the requests of its round then keep their order, overlap and cancellations
    instead of going out at once. Not hashable, since a body is a mapping.
    """

    endpoint: str
    body: Mapping[str, Any]
    expect: Expectation | None = None
    recipe: Recipe | None = None
    measured: bool = False
    span: Span | None = None

    @property
    def deterministic(self) -> bool:
        """True if the same answer must come each time: temperature 0 is asked for, or an embedding."""
        return self.endpoint == EMBEDDINGS or self.body.get("temperature") == 0

    @property
    def question(self) -> str:
        """The prompt as text, however the body carries it."""
        return prompt_text(self.body)

    def canonical(self) -> str:
        """The request as one line of text: equal requests, equal lines."""
        return self.endpoint + " " + json.dumps(self.body, sort_keys=True, ensure_ascii=False)

    def fingerprint(self) -> str:
        """Identifies what is asked, however it is delivered: streaming and log-probabilities aside."""
        asked = {key: value for key, value in self.body.items() if key not in _DELIVERY}
        text = self.endpoint + json.dumps(asked, sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


Round = tuple[Request, ...]


def overlap(one: Round) -> int:
    """How many requests of a round are under way at once: all, or as many as were when they were recorded."""
    spans = [request.span for request in one if request.span is not None]
    if len(spans) < len(one):
        return len(one)
    # At the same moment ends come first. What had no end stays under way.
    changes = [(span.start, 1) for span in spans]
    changes += [(span.end, -1) for span in spans if span.end is not None and span.end > span.start]
    at_once = most = 0
    for _, change in sorted(changes):
        at_once += change
        most = max(most, at_once)
    return most


@dataclass(frozen=True, slots=True)
class Probe:
    """A workload: rounds one after the other, the requests of a round at once, and how it is judged.

    `preceding` are rounds that are asked first because the failure may need them. `cache` says what the
    last request is about: a prompt that must not be in a cache (`cold`) or one that should be (`warm`).
    `source` "user" means that the user vouches for the requests: a refusal is then a failure. `speed` is the pace of
    recorded requests: 1 as they came, 2 twice as fast, 0 as fast as their order and overlap allow. `contents` is
    False where only counts whether the engine answers, not what.
    """

    name: str
    rounds: tuple[Round, ...]
    preceding: tuple[Round, ...] = ()
    source: Literal["builtin", "user"] = "builtin"
    cache: Literal["cold", "warm"] | None = None
    description: str = ""
    tokens_per_character: float = field(default=TOKENS_PER_CHARACTER)
    speed: float = 1.0
    contents: bool = True

    def asked(self) -> tuple[Round, ...]:
        """All rounds in the order in which they are asked."""
        return self.preceding + self.rounds

    def requests(self) -> tuple[Request, ...]:
        """All requests in the order of their answers."""
        return tuple(request for one in self.asked() for request in one)

    @property
    def preceding_requests(self) -> int:
        """How many of the requests only precede the workload."""
        return sum(len(one) for one in self.preceding)

    def estimated_tokens(self) -> int:
        """About how many tokens the workload costs, prompts and answers together."""
        return sum(
            estimated_prompt_tokens(request.body, self.tokens_per_character) + answer_limit(request.body, 256)
            for request in self.requests()
        )

    def most_tokens(self) -> int:
        """Answers of more tokens than this, all together, will not end by themselves."""
        return _RUNAWAY * sum(answer_limit(request.body, _UNLIMITED_TOKENS) for request in self.requests())

    def after(self, earlier: Sequence["Probe"]) -> "Probe":
        """The same probe asked after others, on the same engine: their requests precede it."""
        return replace(
            self, preceding=tuple(one for probe in earlier for one in probe.asked()) + self.preceding
        )

    def vouched(self, known: Callable[[Request], bool]) -> "Probe":
        """The same probe; where `known` says that the model knows the answer, missing it is a failure."""

        def sure(request: Request) -> Request:
            if request.expect is None or not known(request):
                return request
            return replace(request, expect=replace(request.expect, certain=True))

        def all_sure(rounds: tuple[Round, ...]) -> tuple[Round, ...]:
            return tuple(tuple(map(sure, one)) for one in rounds)

        return replace(self, rounds=all_sure(self.rounds), preceding=all_sure(self.preceding))

    def until(self, failed_request: int) -> "Probe":
        """The same probe cut after the round in which the failure showed (an index into `requests()`)."""
        kept: list[Round] = []
        seen = 0
        for one in self.asked():
            kept.append(one)
            seen += len(one)
            if seen > failed_request:
                break
        before = len(self.preceding)
        if len(kept) <= before:  # the failure showed in what came before: that is the workload, then
            return replace(self, preceding=(), rounds=tuple(kept), cache=None)
        return replace(self, rounds=tuple(kept[before:]))


def prompt_text(body: Mapping[str, Any]) -> str:
    """The text of messages, prompt or input; parts that are no text are left out."""
    return "\n".join(_texts(body))


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    for message in body.get("messages") or ():
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str):
            yield content
        elif isinstance(content, Sequence):
            for part in content:
                if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                    yield part["text"]
    for key in ("prompt", "input"):
        value = body.get(key)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, str):
                yield item


def estimated_prompt_tokens(body: Mapping[str, Any], tokens_per_character: float) -> int:
    """The prompt's length in tokens, at least 1: exact for token ids, else by the characters of its text."""
    prompt = body.get("prompt", body.get("input"))
    ids = 0
    if isinstance(prompt, list):
        ids = sum(
            1 if isinstance(item, int) else len(item) if isinstance(item, list) else 0 for item in prompt
        )
    characters = sum(len(text) for text in _texts(body))
    return max(1, ids + round(characters * tokens_per_character))


def answer_limit(body: Mapping[str, Any], unlimited: int) -> int:
    """The most tokens that the answer may have; `unlimited` where the body sets no limit."""
    for key in ("max_completion_tokens", "max_tokens", "n_predict"):
        value = body.get(key)
        if isinstance(value, int) and value >= 0:
            return value
    return 0 if "input" in body else unlimited
