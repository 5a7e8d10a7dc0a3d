"""Reads what vLLM's benchmark reads and writes, and requests in the forms in which people pass them on.

- JSON lines with `prompt` and perhaps `output_tokens` (its custom data set), or with whole bodies (`messages`, `prompt`
  and other fields of the API), or as OpenAI's batches have them (`method`, `url`, `body`);
- ShareGPT's JSON array (`conversations`): the first turn is asked, the second gives the length of the answer;
- a result of `vllm bench serve --save-result --save-detailed`: it holds lengths and times but no prompts, so prompts
  of these lengths are made up.

Without times the requests go out at once, as that benchmark sends them.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from culpa.traffic.reading import Recording
from culpa.traffic.recorded import BadRecording, Inline, Recorded

_ENDPOINTS: Final = {
    "messages": "/v1/chat/completions",
    "prompt": "/v1/completions",
    "input": "/v1/embeddings",
}
_MOST_BYTES: Final = 2 << 30
_DETAILED: Final = ("input_lens", "output_lens", "start_times")
_CHARACTERS_PER_TOKEN: Final = 4
#: Tokens of all prompts that are made up from lengths: they are held in memory.
_MOST_MADE_UP: Final = 100_000_000
_WORDS: Final = ("the", "of", "and", "to", "in", "is", "was", "for", "that", "on", "with", "as")


def read_bench_lines(path: Path) -> Recording:
    """The requests of such a file. Raises BadRecording."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadRecording(f"{path}: is larger than {_MOST_BYTES >> 30} GiB")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRecording(f"{path}: can't be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadRecording(f"{path}: is neither a recording nor UTF-8 text (byte {error.start})") from None
    whole = _json(text)
    if isinstance(whole, dict) and all(isinstance(whole.get(name), list) for name in _DETAILED):
        return _detailed(path, whole)
    if isinstance(whole, list):
        entries = [(f"{path}, entry {number}", entry) for number, entry in enumerate(whole, 1)]
    elif isinstance(whole, dict):
        entries = [(str(path), whole)]
    else:
        entries = _lines(path, text)
    asked = [one for place, entry in entries if (one := _asked(place, entry)) is not None]
    requests = tuple(_request(index, *one) for index, one in enumerate(asked))
    if not requests:
        raise BadRecording(f"{path}: holds no request")
    return Recording(requests, str(path))


def _lines(path: Path, text: str) -> list[tuple[str, Any]]:
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            entry = _json(line)
            if entry is None:
                raise BadRecording(f"{path}, line {number}: is no JSON")
            entries.append((f"{path}, line {number}", entry))
    return entries


def _asked(place: str, entry: Any) -> tuple[str, dict[str, Any]] | None:
    """Path and body of an entry; None for a conversation with nothing to ask."""
    if not isinstance(entry, dict):
        raise BadRecording(f"{place}: a request must be a JSON object, not {type(entry).__name__}")
    if isinstance(entry.get("conversations"), list):
        return _conversation(entry["conversations"])
    body = entry.get("body")
    if isinstance(body, dict):
        named = entry.get("url", entry.get("endpoint"))
        path = named if isinstance(named, str) and named.startswith("/") else _endpoint(place, body)
        return path, body
    body = dict(entry)
    tokens = body.pop("output_tokens", None)
    if isinstance(tokens, int | float) and tokens == tokens and tokens >= 1:
        body.setdefault("max_tokens", int(tokens))
    return _endpoint(place, body), body


def _endpoint(place: str, body: Mapping[str, Any]) -> str:
    for key, path in _ENDPOINTS.items():
        if key in body:
            return path
    raise BadRecording(
        f"{place}: has none of {', '.join(_ENDPOINTS)}, conversations or body, so what it asks is unknown"
    )


def _conversation(turns: list[Any]) -> tuple[str, dict[str, Any]] | None:
    texts = [
        turn["value"] for turn in turns[:2] if isinstance(turn, dict) and isinstance(turn.get("value"), str)
    ]
    if len(texts) < 2:
        return None
    limit = max(1, len(texts[1]) // _CHARACTERS_PER_TOKEN)
    return "/v1/completions", {"prompt": texts[0], "max_tokens": limit, "temperature": 0}


def _request(index: int, path: str, body: Mapping[str, Any]) -> Recorded:
    return Recorded(index, 0.0, path, Inline(json.dumps(body).encode("ascii")), outcome="unknown")


def _detailed(path: Path, result: Mapping[str, Any]) -> Recording:
    """Requests of the lengths and times of a detailed result."""
    starts, inputs, outputs = (result[name] for name in ("start_times", "input_lens", "output_lens"))
    count = len(starts)
    if len(inputs) != count or len(outputs) != count or not count:
        raise BadRecording(
            f"{path}: start_times, input_lens and output_lens must be of one length, and not empty"
        )
    numbers = [*starts, *inputs, *outputs]
    if any(
        isinstance(one, bool) or not isinstance(one, int | float) or not 0 <= one < 1e12 for one in numbers
    ):
        raise BadRecording(f"{path}: start_times, input_lens and output_lens must be numbers of at least 0")
    if sum(inputs) > _MOST_MADE_UP:
        raise BadRecording(
            f"{path}: input_lens are {sum(inputs):,.0f} tokens in all; prompts of {_MOST_MADE_UP:,} at most are made up"
        )
    seconds = _column(result, "latencies", count)
    errors = _column(result, "errors", count)
    chat = "chat" in f"{result.get('endpoint_type', '')}{result.get('backend', '')}"
    model = result.get("model_id")
    order = sorted(range(count), key=lambda place: starts[place])
    first = starts[order[0]]
    requests = []
    for index, place in enumerate(order):
        prompt = _prompt(place, int(inputs[place]))
        body: dict[str, Any] = {"model": model} if isinstance(model, str) else {}
        body |= {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
        body |= {
            "max_tokens": max(1, int(outputs[place])),
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
        }
        at = starts[place] - first
        lost = bool(errors[place])
        lasted = seconds[place]
        known = isinstance(lasted, int | float) and not isinstance(lasted, bool) and not lost
        requests.append(
            Recorded(
                index,
                at,
                "/v1/chat/completions" if chat else "/v1/completions",
                Inline(json.dumps(body).encode("ascii")),
                outcome="lost" if lost else "answered" if known else "unknown",
                ended=at + max(0.0, lasted) if known else None,
                status=200 if known else None,
                prompt_tokens=int(inputs[place]),
                completion_tokens=int(outputs[place]),
                said=" ".join(str(errors[place]).split())[-200:] if lost else "",
            )
        )
    note = "the result holds no prompts: prompts of its lengths were made up, which share no beginning"
    return Recording(tuple(requests), str(path), shapes=True, notes=(note,))


def _column(result: Mapping[str, Any], name: str, count: int) -> list[Any]:
    value = result.get(name)
    return value if isinstance(value, list) and len(value) == count else [None] * count


def _prompt(place: int, tokens: int) -> str:
    """About so many tokens, other ones for each place from the beginning on."""
    words = [f"{place}:", *(_WORDS[(place + at * at) % len(_WORDS)] for at in range(max(0, tokens - 2)))]
    return " ".join(words)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
