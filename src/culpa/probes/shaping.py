"""A workload with its request factors at given levels."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from culpa.model import Configuration
from culpa.probes.factors import (
    FIELD_GROUPS,
    LIMIT_FIELDS,
    earlier_rounds,
    order_of,
    request_factors,
    round_text,
    runs_of,
)
from culpa.probes.kinds import prompt_body
from culpa.probes.prompts import LongPrompt
from culpa.probes.request import (
    CHAT,
    COMPLETIONS,
    Probe,
    Request,
    Round,
    estimated_prompt_tokens,
)

# Fields that only the endpoint with that name understands.
_ONLY_CHAT = FIELD_GROUPS["tools"] + (
    "messages",
    "chat_template_kwargs",
    "chat_template",
    "add_generation_prompt",
)
_ONLY_COMPLETIONS = ("prompt", "echo", "suffix", "best_of")


def shaped(probe: Probe, levels: Configuration) -> Probe:
    """The workload with each request factor at the level that the configuration gives it.

    A factor that the configuration doesn't name, or names at its suspect level, changes nothing. What a
    factor at its safe level leaves without meaning goes with it (stream options without streaming, tools on
    the completions endpoint). `concurrency` sends the same requests in smaller rounds, so that their number
    stays; `repeats` sends fewer. A changed prompt is still judged by what was expected of it, but an answer
    that misses it then needs a reference.
    """
    changes = {
        factor.name: levels[factor.name]
        for factor in request_factors(probe)
        if factor.name in levels and levels[factor.name] != factor.suspect
    }
    if not changes:
        return probe
    result = _sequenced(probe, changes)
    return _each(result, lambda request: _reshaped(request, changes, probe.tokens_per_character))


def conflict(probe: Probe, levels: Configuration) -> str | None:
    """Why these levels can't go together, or None: engines refuse several answers without sampling."""
    factors = {factor.name: factor for factor in request_factors(probe)}

    def level(name: str) -> str:
        return levels.get(name, factors[name].suspect) if name in factors else ""

    several = next(
        (name for name in ("n", "best_of") if level(name).isdigit() and int(level(name)) > 1), None
    )
    if several and level("temperature") == "0":
        return f"{several}={level(several)} needs sampling, and temperature is 0"
    return None


def with_new_sessions(probe: Probe, seed: int) -> Probe:
    """The same workload with long prompts that no cache has seen, to be asked again on a living engine.

    Records and sizes stay. The reference does not hold these prompts, only what it knows of their kind.
    """

    def renewed(request: Request) -> Request:
        if not isinstance(request.recipe, LongPrompt):
            return request
        recipe = replace(request.recipe, seed=request.recipe.seed + 1_000_003 * (seed + 1))
        body = {**request.body, **prompt_body(recipe, "messages" in request.body)}
        return replace(request, body=body, recipe=recipe)

    return _each(probe, renewed)


def _each(probe: Probe, change: Callable[[Request], Request]) -> Probe:
    def changed(rounds: tuple[Round, ...]) -> tuple[Round, ...]:
        return tuple(tuple(change(request) for request in one) for one in rounds)

    return replace(probe, rounds=changed(probe.rounds), preceding=changed(probe.preceding))


def _sequenced(probe: Probe, changes: Mapping[str, str]) -> Probe:
    """Fewer rounds, and fewer requests in each."""
    rounds, preceding = probe.rounds, probe.preceding
    if "preceding_requests" in changes:
        earlier = earlier_rounds(probe)
        rounds = probe.rounds[len(earlier) - len(probe.preceding) :]
        preceding = _last(earlier, int(changes["preceding_requests"]))
    if "order" in changes and order_of(rounds):
        last = round_text(rounds[-1])
        rounds = tuple(one for one in rounds if round_text(one) == last)[-1:]
    if "repeats" in changes:
        rounds = tuple(one for run in runs_of(rounds) for one in run[: int(changes["repeats"])])
    if "concurrency" in changes:
        most = int(changes["concurrency"])
        rounds = tuple(one[at : at + most] for one in rounds for at in range(0, len(one), most))
    cache = probe.cache
    if cache == "warm" and len(rounds) == 1:
        cache = None  # asked once, nothing of it can be cached
    return replace(probe, rounds=rounds, preceding=preceding, cache=cache)


def _last(rounds: tuple[Round, ...], count: int) -> tuple[Round, ...]:
    """The last `count` requests, in the rounds that they stand in."""
    kept: list[Round] = []
    for one in reversed(rounds):
        if count <= 0:
            break
        kept.append(one[-count:])
        count -= len(kept[-1])
    return tuple(reversed(kept))


def _reshaped(request: Request, changes: Mapping[str, str], tokens_per_character: float) -> Request:
    """One request with its fields, endpoint and sizes changed."""
    body = dict(request.body)
    for name in changes:
        for field in FIELD_GROUPS.get(name, (name,)):
            if field not in ("temperature", *LIMIT_FIELDS, "endpoint", "media"):
                body.pop(field, None)
    if changes.get("temperature") == "0" and "input" not in body:
        body["temperature"] = 0
    if "max_tokens" in changes and "input" not in body:
        _limit_answer(body, int(changes["max_tokens"]))
    if "media" in changes:
        body["messages"] = [_without_media(message) for message in body.get("messages") or ()]
    result = replace(request, body=body, measured=request.measured and "logprobs" not in changes)
    if "prompt_tokens" in changes:
        result = _resized(result, int(changes["prompt_tokens"]), tokens_per_character)
    if "endpoint" in changes:
        result = _moved(result, chat=changes["endpoint"] == "chat")
    if result.expect is not None and result.fingerprint() != request.fingerprint():
        # What the user vouches for holds for the request as they wrote it.
        result = replace(result, expect=replace(result.expect, certain=False))
    return result


def _limit_answer(body: dict[str, Any], tokens: int) -> None:
    for field in [field for field in LIMIT_FIELDS if field in body] or ["max_tokens"]:
        current = body.get(field)
        body[field] = min(current, tokens) if isinstance(current, int) and current >= 0 else tokens


def _without_media(message: Any) -> Any:
    if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
        return message
    parts = [
        part
        for part in message["content"]
        if not isinstance(part, Mapping) or part.get("type") in (None, "text")
    ]
    return {**message, "content": parts or ""}


def _resized(request: Request, tokens: int, tokens_per_character: float) -> Request:
    """The request with a shorter prompt. A synthetic one keeps its record; a given one keeps its end."""
    if estimated_prompt_tokens(request.body, tokens_per_character) <= tokens:
        return request
    if isinstance(request.recipe, LongPrompt):
        recipe = request.recipe.with_tokens(tokens)
        body = {**request.body, **prompt_body(recipe, "messages" in request.body)}
        return replace(request, body=body, recipe=recipe)
    if request.recipe is not None:
        return request  # a question is as short as it gets
    characters = max(1, int(tokens / tokens_per_character))
    body = dict(request.body)
    if isinstance(body.get("messages"), list):
        body["messages"] = _last_characters(body["messages"], characters)
    for key in ("prompt", "input"):
        if key in body:
            body[key] = _cut(body[key], tokens, characters)
    return replace(request, body=body)


def _cut(value: Any, tokens: int, characters: int) -> Any:
    """The end of a prompt that is text, token ids, or a list of either."""
    if isinstance(value, str):
        return _end(value, characters)
    if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
        return value[-tokens:]
    if isinstance(value, list):
        return [_cut(item, tokens, characters) for item in value]
    return value


def _last_characters(messages: list[Any], characters: int) -> list[Any]:
    """The last messages that fit, the first of them cut; at least the last one remains."""
    kept: list[Any] = []
    for message in reversed(messages):
        if characters <= 0 and kept:
            break
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str):
            message = {**message, "content": _end(content, max(1, characters))}
            characters -= len(message["content"])
        elif isinstance(content, list):
            parts = []
            for part in reversed(content):
                if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                    if characters <= 0:
                        continue
                    part = {**part, "text": _end(part["text"], characters)}
                    characters -= len(part["text"])
                parts.append(part)
            message = {**message, "content": parts[::-1]}
        kept.append(message)
    kept.reverse()
    # Chat templates want a user's turn first: an answer or a tool's result can't open a conversation.
    start = next(
        (
            at
            for at, one in enumerate(kept)
            if not isinstance(one, Mapping) or one.get("role") in ("user", "system")
        ),
        None,
    )
    if start is None:
        return [{**kept[-1], "role": "user"}]
    return kept[start:]


def _end(text: str, characters: int) -> str:
    """The last characters, from the start of a word where there is one."""
    if len(text) <= characters:
        return text
    end = text[-characters:]
    return end.split(" ", 1)[1] if " " in end.strip() and not text[-characters - 1].isspace() else end


def _moved(request: Request, chat: bool) -> Request:
    """The request on the other text endpoint."""
    body = dict(request.body)
    if chat == (request.endpoint == CHAT) or "input" in body:
        return request
    if request.recipe is not None:
        content = prompt_body(request.recipe, chat)
    elif chat:
        content = {"messages": [{"role": "user", "content": body["prompt"]}]}
    else:
        content = {"prompt": request.question}
    for field in _ONLY_COMPLETIONS if chat else _ONLY_CHAT:
        body.pop(field, None)
    if chat and "logprobs" in body:
        body["top_logprobs"], body["logprobs"] = body["logprobs"], True
    elif "logprobs" in body:
        body["logprobs"] = body.pop("top_logprobs", 1) if body["logprobs"] else None
    if not chat and "max_completion_tokens" in body:
        body["max_tokens"] = body.pop("max_completion_tokens")
    expect = request.expect
    if expect is not None and request.recipe is not None:
        expect = replace(expect, first_line=not chat)
    return replace(request, endpoint=CHAT if chat else COMPLETIONS, body={**content, **body}, expect=expect)
