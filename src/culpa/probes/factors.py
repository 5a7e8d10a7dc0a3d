"""What can be made plainer in a failing workload: each a cheap factor beside those of the launch."""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from culpa.model import Factor
from culpa.probes.request import (
    CHAT,
    COMPLETIONS,
    Probe,
    Request,
    Round,
    answer_limit,
    estimated_prompt_tokens,
    overlap,
)

ABSENT = "absent"
PLAIN_PROMPT_TOKENS = 16
PLAIN_ANSWER_TOKENS = 16

# How often public reports of serving failures name such a factor as decisive (of 166), and a low weight for
# kinds of request that none of them names.
_REPORTS = 166
_PRIORS = {
    "concurrency": 16 / _REPORTS,
    "prompt_tokens": 11 / _REPORTS,
    "structured_output": 4 / _REPORTS,
}
_UNNAMED = 1 / _REPORTS

# Fields that are varied together under one name, because some mean nothing without the others.
FIELD_GROUPS: dict[str, tuple[str, ...]] = {
    "structured_output": (
        "response_format", "structured_outputs", "json_schema", "grammar", "guided_json", "guided_regex",
        "guided_choice", "guided_grammar", "guided_decoding_backend",
    ),
    "tools": ("tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
    "stream": ("stream", "stream_options"),
    "logprobs": ("logprobs", "top_logprobs", "prompt_logprobs"),
}  # fmt: skip
_GROUP_OF = {field: name for name, fields in FIELD_GROUPS.items() for field in fields}
PROMPT_FIELDS = frozenset({"messages", "prompt", "input"})
LIMIT_FIELDS = ("max_tokens", "max_completion_tokens", "n_predict")
_NOT_VARIED = PROMPT_FIELDS | {"model", "temperature", *LIMIT_FIELDS}

_MEANINGS = {
    "temperature": "the failure needs sampling",
    "structured_output": "the failure needs output held to a grammar or schema",
    "tools": "the failure needs tool definitions in the prompt or the tool-call parser",
    "stream": "the failure needs streaming",
    "logprobs": "log-probabilities hide the failure",
    "endpoint": "the failure needs this endpoint, chat template included",
    "media": "the failure needs parts of the prompt that are no text",
    "prompt_tokens": "the failure needs a long prompt",
    "max_tokens": "the failure needs a long answer",
    "concurrency": "the failure needs requests at once",
    "repeats": "the failure needs the same request again",
    "order": "the failure needs this order of requests",
    "preceding_requests": "the failure needs the requests asked before it",
}


def request_factors(probe: Probe) -> tuple[Factor, ...]:
    """The factors of a workload, each with the level found as suspect and a plainer one as safe.

    Fields of the bodies go to `absent` (temperature to 0), `endpoint` to the other text endpoint, the numbers
    `prompt_tokens`, `max_tokens`, `concurrency`, `repeats` and `preceding_requests` down. Whatever is plain
    already is no factor. Log-probabilities that only the comparison with a reference asks for are an
    instrument.
    """
    requests = [request for one in probe.rounds for request in one]
    bodies = [request.body for request in requests]
    found = [*_field_factors(bodies), *_instrument(requests), *_endpoint(requests)]
    return (*found, *_sizes(probe, requests), *_sequence(probe))


def field_names(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of the factors that stand for fields of the bodies, in the order of the fields."""
    names = [_GROUP_OF.get(field, field) for body in bodies for field in body if field not in _NOT_VARIED]
    return list(dict.fromkeys(names))


def runs_of(rounds: Sequence[Round]) -> list[list[Round]]:
    """The rounds in runs of equal ones: what is asked again and again stands together."""
    return [list(run) for _, run in groupby(rounds, key=round_text)]


def round_text(one: Round) -> str:
    """The round as text: equal rounds, equal texts, whether measured or not."""
    return "\n".join(request.canonical() for request in one)


def order_of(rounds: Sequence[Round]) -> str:
    """The order of the rounds as letters, such as `A,B,A`; empty where no round comes back after another."""
    texts = [round_text(run[0]) for run in runs_of(rounds)]
    kinds = list(dict.fromkeys(texts))
    if len(kinds) == len(texts) or len(kinds) > 26:
        return ""
    return ",".join("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[kinds.index(text)] for text in texts)


def earlier_rounds(probe: Probe) -> tuple[Round, ...]:
    """The rounds asked before the last run of equal ones; in a workload with an order, before all of it."""
    if order_of(probe.rounds):
        return probe.preceding
    return probe.preceding + tuple(one for run in runs_of(probe.rounds)[:-1] for one in run)


def media_parts(body: Mapping[str, Any]) -> bool:
    """True if a message carries parts that are no text, such as images."""
    return any(
        isinstance(part, Mapping) and part.get("type") not in (None, "text")
        for message in body.get("messages") or ()
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for part in message["content"]
    )


def _factor(name: str, suspect: str, safe: str, **fields: Any) -> Factor:
    return Factor(
        name,
        suspect,
        (safe,),
        scope="request",
        prior=_PRIORS.get(name, _UNNAMED),
        meaning=_MEANINGS.get(name, f"the failure needs the request field {name!r}"),
        **fields,
    )


def _field_factors(bodies: Sequence[Mapping[str, Any]]) -> list[Factor]:
    factors = []
    temperatures = [body.get("temperature") for body in bodies if "input" not in body]
    sampled = [one for one in temperatures if one != 0]
    if sampled:
        factors.append(_factor("temperature", "default" if sampled[0] is None else _shown(sampled[0]), "0"))
    for name in field_names(bodies):
        fields = FIELD_GROUPS.get(name, (name,))
        values = [(field, body[field]) for body in bodies for field in fields if field in body]
        # Off is as good as absent for the groups of fields, but may be the opposite of a default elsewhere.
        switched_on = [one for one in values if name not in FIELD_GROUPS or one[1] not in (False, None)]
        if switched_on:
            factors.append(_factor(name, _level(name, *switched_on[0]), ABSENT))
    if any(media_parts(body) for body in bodies):
        factors.append(_factor("media", "present", ABSENT))
    return factors


def _instrument(requests: Sequence[Request]) -> list[Factor]:
    asked = any("logprobs" in field_names([request.body]) for request in requests)
    if asked or not any(request.measured for request in requests):
        return []
    return [_factor("logprobs", "measured", ABSENT, instrument=True)]


def _endpoint(requests: Sequence[Request]) -> list[Factor]:
    endpoints = {request.endpoint for request in requests}
    if endpoints == {CHAT}:
        return [_factor("endpoint", "chat", "completions")]
    if endpoints == {COMPLETIONS} and all(
        isinstance(request.body.get("prompt"), str) for request in requests
    ):
        return [_factor("endpoint", "completions", "chat")]
    return []


def _sizes(probe: Probe, requests: Sequence[Request]) -> list[Factor]:
    factors = []
    tokens = max(estimated_prompt_tokens(request.body, probe.tokens_per_character) for request in requests)
    plain = max(
        [PLAIN_PROMPT_TOKENS, *(request.recipe.minimum_tokens for request in requests if request.recipe)]
    )
    if tokens > 2 * plain:
        factors.append(_factor("prompt_tokens", str(tokens), str(plain), numeric=True, minimum=plain))
    if any("input" not in request.body for request in requests):
        limit = max(answer_limit(request.body, -1) for request in requests)
        if any(answer_limit(request.body, -1) < 0 for request in requests):
            factors.append(_factor("max_tokens", ABSENT, str(PLAIN_ANSWER_TOKENS)))
        elif limit > 2 * PLAIN_ANSWER_TOKENS:
            factors.append(_factor("max_tokens", str(limit), str(PLAIN_ANSWER_TOKENS), numeric=True))
    return factors


def _sequence(probe: Probe) -> list[Factor]:
    factors = []
    at_once = max(overlap(one) for one in probe.rounds)
    if at_once > 1:
        factors.append(_factor("concurrency", str(at_once), "1", numeric=True))
    repeats = max(len(run) for run in runs_of(probe.rounds))
    if repeats > 1:
        factors.append(_factor("repeats", str(repeats), "1", numeric=True))
    order = order_of(probe.rounds)
    if order:
        factors.append(_factor("order", order, order[-1]))
    earlier = sum(len(one) for one in earlier_rounds(probe))
    if earlier:
        factors.append(_factor("preceding_requests", str(earlier), "0", numeric=True, minimum=0))
    return factors


def _level(name: str, field: str, value: Any) -> str:
    """A field's value as a level: short enough for a table."""
    if isinstance(value, Mapping) and isinstance(value.get("type"), str):
        return str(value["type"])
    if isinstance(value, Mapping | list):
        return field if field != name else "present"
    return _shown(value)


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= 40 else text[:37] + "..."
    return f"{text!r}" if text in (ABSENT, "") else text
