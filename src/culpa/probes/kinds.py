"""The built-in probes: each kind of request once, from cheap to dear, sized to what the engine can take."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from culpa.probes.prompts import (
    DEFAULT_QUESTIONS,
    TOKENS_PER_CHARACTER,
    LongPrompt,
    Question,
    Recipe,
    Record,
    random_record,
)
from culpa.probes.request import CHAT, COMPLETIONS, EMBEDDINGS, Expectation, Limits, Probe, Request

# Long enough for faults of long prompts in public reports, short enough for seconds on a GPU.
LONG_PROMPT_TOKENS = 27_000
_CONTEXT_SHARE = 0.8
_ANSWER_TOKENS = 16
_RECORD_ANSWER_TOKENS = 24
_MOST_AT_ONCE = 64
_AT_ONCE_UNKNOWN = 8
_DIFFERENT = 8
# About what one small chat request costs, template and answer included.
_SMALL_REQUEST_TOKENS = 60


def builtin_probes(
    limits: Limits,
    seed: int = 0,
    probe_tokens: int | None = None,
    questions: Sequence[Question] = (),
    record: Record | None = None,
    *,
    affordable_tokens: int | None = None,
    tokens_per_character: float | None = None,
    chat: bool = True,
    thinking_tokens: int = 0,
) -> tuple[Probe, ...]:
    """The built-in probes for an engine, `short` first, the others by their estimated tokens.

    `seed` makes the session ids: the same seed gives the same prompts, another seed prompts that no cache
    has seen. `probe_tokens` overrides the size of the long prompts. `affordable_tokens` bounds it, and the
    number of requests at once, on engines whose measured speed would make them wait. `tokens_per_character`
    is the engine's tokenizer as measured on the filler. `chat` is False for an engine that refuses
    chat requests (a model without a chat template): the probes use completions then. `thinking_tokens`
    is room for the thoughts of a reasoning model (`Answer.thinking`) before its answer to a known question.
    """
    build = _Builder(limits, chat, tokens_per_character or TOKENS_PER_CHARACTER, thinking_tokens)
    asked = tuple(questions) or DEFAULT_QUESTIONS
    first = asked[0]
    short = build.probe(
        "short",
        # The first of three also asks for log-probabilities, to compare with a reference.
        *[(build.question(one, measured=run == 0),) for one in asked for run in range(3)],
        description="deterministic questions with known answers, each 3 times",
    )
    others = [
        *_kinds(build, first),
        *_concurrent(build, first, seed, affordable_tokens),
        *_long(build, record, seed, probe_tokens, affordable_tokens),
    ]
    return (short, *sorted(others, key=Probe.estimated_tokens))


def long_prompt_tokens(
    limits: Limits, probe_tokens: int | None = None, affordable_tokens: int | None = None
) -> int:
    """The size of a long prompt: as asked, else four fifths of the context, at most 27,000 and affordable."""
    if probe_tokens is not None:
        return probe_tokens
    bounds = [LONG_PROMPT_TOKENS]
    bounds += [int(limits.context_tokens * _CONTEXT_SHARE)] if limits.context_tokens else []
    bounds += [affordable_tokens] if affordable_tokens is not None else []
    return max(1, min(bounds))


class _Builder:
    """Makes requests in the form that this engine takes."""

    def __init__(self, limits: Limits, chat: bool, tokens_per_character: float, thinking_tokens: int) -> None:
        self.limits = limits
        self.chat = chat
        self.tokens_per_character = tokens_per_character
        self.thinking_tokens = thinking_tokens if chat else 0

    def probe(self, name: str, *rounds: tuple[Request, ...], description: str, **fields: Any) -> Probe:
        return Probe(
            name,
            rounds,
            description=description,
            tokens_per_character=self.tokens_per_character,
            **fields,
        )

    def question(self, question: Question, *, measured: bool = False, **fields: Any) -> Request:
        """A question at temperature 0, with further fields on top."""
        return self._request(question, _ANSWER_TOKENS, self.chat, measured, question.certain, fields)

    def completion(self, question: Question) -> Request:
        """A question on the completions endpoint, whatever the others use."""
        return self._request(question, _ANSWER_TOKENS, False, False, False, {})

    def long(self, prompt: LongPrompt) -> Request:
        """A long prompt whose record is asked for."""
        return self._request(prompt, _RECORD_ANSWER_TOKENS, self.chat, True, False, {})

    def free(self, text: str, **fields: Any) -> Request:
        """A request without a known answer."""
        recipe = Question(text, "")
        body = {**prompt_body(recipe, self.chat), "temperature": 0, **fields}
        return Request(CHAT if self.chat else COMPLETIONS, self._named(body), recipe=recipe)

    def named(self, endpoint: str, body: dict[str, Any]) -> Request:
        """A request by its body alone."""
        return Request(endpoint, self._named(body))

    def _request(
        self,
        recipe: Recipe,
        answer_tokens: int,
        chat: bool,
        measured: bool,
        certain: bool,
        fields: dict[str, Any],
    ) -> Request:
        limit = answer_tokens + self.thinking_tokens
        body = {**prompt_body(recipe, chat), "temperature": 0, "max_tokens": limit, **fields}
        return Request(
            CHAT if chat else COMPLETIONS,
            self._named(body),
            expect=Expectation(recipe.answer, certain=certain, first_line=not chat),
            recipe=recipe,
            measured=measured,
        )

    def _named(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"model": self.limits.model, **body} if self.limits.model else body


def prompt_body(recipe: Recipe, chat: bool) -> dict[str, Any]:
    """The part of a body that carries the prompt."""
    if chat:
        return {"messages": [{"role": "user", "content": recipe.chat_text()}]}
    return {"prompt": recipe.completion_text()}


def _kinds(build: _Builder, question: Question) -> list[Probe]:
    """The kinds of request that differ by a field or an endpoint."""
    story = "Write one sentence about a lighthouse."
    one: Callable[..., Probe] = build.probe
    probes = [
        one("completions", (build.completion(question),), description="the completions endpoint, no chat"),
        one(
            "stream", (build.question(question, stream=True),), description="an answer in a stream of events"
        ),
        one(
            "logprobs", (build.question(question, **_logprobs(build.chat)),), description="log-probabilities"
        ),
        one(
            "sampled",
            (build.free(story, max_tokens=32, temperature=0.8, top_p=0.9, seed=7),),
            description="sampled at temperature 0.8 with top_p 0.9",
        ),
        one(
            "top_k",
            (build.free(story, max_tokens=32, temperature=0.8, top_k=20),),
            description="sampled with top_k 20 and no top_p",
        ),
        one(
            "ignore_eos",
            (build.free("Say hello.", max_tokens=64, ignore_eos=True),),
            description="an answer that goes on to its limit whatever the model wants",
        ),
        one(
            "embeddings",
            (build.named(EMBEDDINGS, {"input": "The night watch reported a calm sea."}),),
            description="an embedding",
        ),
        one(
            "same_twice",
            *[(build.question(question),)] * 2,
            description="the same request twice, one after the other",
        ),
    ]
    if build.chat:
        probes += [
            one(
                "structured_output",
                (build.free("Name a colour and a number, as JSON.", max_tokens=64, response_format=_SCHEMA),),
                description="an answer held to a JSON schema",
            ),
            one(
                "tools",
                (build.free("What is the weather in Paris now?", max_tokens=48, tools=[_TOOL]),),
                description="a tool that the model may call",
            ),
        ]
    return probes


def _concurrent(build: _Builder, question: Question, seed: int, affordable_tokens: int | None) -> list[Probe]:
    """Requests at once: two, one more than the engine serves in parallel, and different ones."""
    parallel = build.limits.parallel
    many = min(parallel + 1 if parallel else _AT_ONCE_UNKNOWN, _MOST_AT_ONCE)
    if affordable_tokens is not None:
        many = min(many, affordable_tokens // _SMALL_REQUEST_TOKENS)
    probes = [
        build.probe(
            "two_at_once", (build.question(question),) * 2, description="the same request twice at once"
        )
    ]
    if many > 2:
        probes.append(
            build.probe(
                "many_at_once",
                (build.question(question),) * many,
                description=f"{many} small requests at once"
                + (f", the engine serves {parallel}" if parallel else ""),
            )
        )
    return [*probes, *_different_at_once(build, seed, affordable_tokens)]


def _different_at_once(build: _Builder, seed: int, affordable_tokens: int | None) -> list[Probe]:
    """Different requests, each alone and then all at once: only that shows an answer that went to somebody else.

    Each hides a record of its own in a few words, and the answers are several tokens long.
    """
    # Seeds beyond those of the long prompts, so that no two prompts share a beginning.
    prompts = [
        LongPrompt(random_record(own), 0, own, build.tokens_per_character)
        for own in range(seed * 8 + 1_000, seed * 8 + 1_000 + _DIFFERENT)
    ]
    each = prompts[0].minimum_tokens + _RECORD_ANSWER_TOKENS
    count = _DIFFERENT
    if build.limits.parallel:
        count = min(count, max(build.limits.parallel, 2))
    if affordable_tokens is not None:
        count = min(count, affordable_tokens // (2 * each))
    # Without log-probabilities: a model that knows none of the records is not compared with a reference here. So many
    # answers of a flat distribution hold one that rounding alone turns, in a healthy engine.
    requests = [replace(build.long(prompt), measured=False) for prompt in prompts[:count]]
    if count < 2:
        return []
    return [
        build.probe(
            "different_at_once",
            *((request,) for request in requests),
            tuple(requests),
            description=f"{count} short texts with a record each, one after the other and then all at once",
        )
    ]


def _long(
    build: _Builder,
    record: Record | None,
    seed: int,
    probe_tokens: int | None,
    affordable_tokens: int | None,
) -> list[Probe]:
    """Long prompts: new, again, in turns, and one token more than a batch."""
    tokens = long_prompt_tokens(build.limits, probe_tokens, affordable_tokens)

    def prompt(session: int) -> Request:
        # A seed of its own for each session, so that no two share a beginning that a cache could hold.
        own = seed * 8 + session
        return build.long(LongPrompt(record or random_record(own), tokens, own, build.tokens_per_character))

    first, other = prompt(2), prompt(3)
    probes = [
        build.probe(
            "cold",
            (prompt(0),),
            cache="cold",
            description=f"a new prompt of about {tokens} tokens that holds a record to find",
        ),
        build.probe(
            "warm",
            *[(prompt(1),)] * 2,
            cache="warm",
            description=f"a prompt of about {tokens} tokens, then the same again from the prefix cache",
        ),
        build.probe(
            "switch",
            (first,),
            (other,),
            (first,),
            cache="warm",
            description=f"two prompts of about {tokens} tokens in turns: A, B, A",
        ),
    ]
    batch = build.limits.batch_tokens
    context = build.limits.context_tokens
    affordable = affordable_tokens is None or (batch is not None and batch < affordable_tokens)
    if batch is not None and affordable and (context is None or batch + 1 + _ANSWER_TOKENS <= context):
        # Token ids of printable characters in byte-level vocabularies, and some token in all others: the
        # only way to an exact length.
        ids = [33 + (index * 7 + seed) % 90 for index in range(batch + 1)]
        body = {"prompt": ids, "temperature": 0, "max_tokens": 4}
        request = replace(build.named(COMPLETIONS, body), measured=True)
        probes.append(
            build.probe(
                "batch_boundary",
                (request,),
                description=f"a prompt of {batch + 1} tokens, one more than the engine takes in one batch",
            )
        )
    return probes


def _logprobs(chat: bool) -> dict[str, Any]:
    return {"logprobs": True, "top_logprobs": 5} if chat else {"logprobs": 5}


_SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "pair",
        "schema": {
            "type": "object",
            "properties": {"colour": {"type": "string", "maxLength": 12}, "number": {"type": "integer"}},
            "required": ["colour", "number"],
            "additionalProperties": False,
        },
    },
}

_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city now",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
