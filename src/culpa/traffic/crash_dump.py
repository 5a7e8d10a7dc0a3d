"""Reads SGLang's crash dumps and request dumps: pickles of the requests of the last minutes.

Their form: `{"server_args": ..., "requests": [(request, output, start, end), ...]}`, or the bare list; times are
seconds since the epoch (`scripts/playground/replay_request_dump.py` of sgl-project/sglang). A request that was under
way when the engine died has an output without a finish reason.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from culpa.traffic.inert import Record, read_pickle
from culpa.traffic.reading import Recording
from culpa.traffic.recorded import BadRecording, Inline, Outcome, Recorded

_PATHS: Final = {"GenerateReqInput": "/generate", "EmbeddingReqInput": "/encode"}
#: Fields that a client sets. Ids are given anew, and what the server added for itself is no part of the request.
_FIELDS: Final = (
    "text", "input_ids", "input_embeds", "image_data", "video_data", "audio_data", "sampling_params", "return_logprob",
    "logprob_start_len", "top_logprobs_num", "token_ids_logprob", "return_text_in_logprobs", "stream", "modalities",
    "lora_path", "session_params", "custom_logit_processor", "return_hidden_states", "priority",
)  # fmt: skip
_MAGIC: Final = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_DEEPEST: Final = 50


def is_pickle(path: Path) -> bool:
    """Whether a file is a pickle, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(2) in _MAGIC
    except OSError:
        return False


def read_crash_dumps(paths: Sequence[Path], source: Path) -> Recording:
    """The requests of one or more dumps as one recording. Raises BadRecording."""
    found: list[tuple[float, Recorded]] = []
    notes = []
    for path in paths:
        content = read_pickle(path)
        entries = content.get("requests") if isinstance(content, Mapping) else content
        if not isinstance(entries, list | tuple):
            raise BadRecording(f"{path}: is no dump of SGLang: there is no list of requests in it")
        read = [one for entry in entries if (one := _recorded(entry)) is not None]
        if len(read) < len(entries):
            notes.append(f"{path.name}: {len(entries) - len(read)} of {len(entries)} entries are no requests")
        found += read
    if not found:
        raise BadRecording(f"{source}: holds no request of a kind that can be asked again")
    found.sort(key=lambda pair: pair[0])
    first = found[0][0]
    requests = tuple(
        Recorded(
            index=index,
            at=start - first,
            path=one.path,
            content=one.content,
            outcome=one.outcome,
            ended=None if one.ended is None else max(start, one.ended) - first,
            status=one.status,
            response=one.response,
            prompt_tokens=one.prompt_tokens,
            completion_tokens=one.completion_tokens,
        )
        for index, (start, one) in enumerate(found)
    )
    died = any(one.open for one in requests)
    return Recording(
        requests,
        str(source),
        sealed="dumped by SGLang at its end" if died else "",
        died=died,
        notes=tuple(notes),
    )


def _recorded(entry: Any) -> tuple[float, Recorded] | None:
    """An entry with its time of start, in seconds since the epoch; None where it is no request."""
    if not isinstance(entry, tuple | list) or len(entry) < 4:
        return None
    request, output, start, end = entry[:4]
    fields = _fields_of(request)
    if fields is None or not _is_time(start) or not _is_time(end):
        return None
    path, known = fields
    body = {name: plain for name in _FIELDS if (plain := _plain(known.get(name), 0)) is not None}
    if "text" in body:
        body.pop("input_ids", None)  # made by the engine from the text
    if not body.keys() & {"text", "input_ids", "input_embeds"}:
        return None
    told = output if isinstance(output, Mapping) else {}
    meta = told.get("meta_info")
    meta = meta if isinstance(meta, Mapping) else {}
    finished = meta.get("finish_reason") is not None or "embedding" in told
    aborted = isinstance(meta.get("finish_reason"), Mapping) and meta["finish_reason"].get("type") == "abort"
    outcome: Outcome = "cancelled" if aborted else "answered" if finished else "unanswered"
    response = _plain({name: told[name] for name in ("text", "embedding") if name in told}, 0) or {}
    response["meta_info"] = _plain(dict(meta), 0)
    return float(start), Recorded(
        index=0,
        at=0.0,
        path=path,
        content=Inline(json.dumps(body).encode("ascii")),
        outcome=outcome,
        ended=float(end) if finished else None,
        status=200 if outcome == "answered" else None,
        response=Inline(json.dumps(response).encode("ascii")) if outcome == "answered" else None,
        prompt_tokens=_count(meta.get("prompt_tokens")),
        completion_tokens=_count(meta.get("completion_tokens")),
    )


def _fields_of(request: Any) -> tuple[str, Mapping[str, Any]] | None:
    if isinstance(request, Record):
        path = _PATHS.get(request.name.rpartition(".")[2])
        return None if path is None else (path, request.fields)
    return ("/generate", request) if isinstance(request, Mapping) else None


def _plain(value: Any, depth: int) -> Any:
    """A value as JSON has it; None for what it can't hold."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {
            key: kept
            for key, one in value.items()
            if isinstance(key, str) and (kept := _plain(one, depth + 1)) is not None
        }
    if isinstance(value, list | tuple):
        if all(type(one) is int for one in value):
            return list(value)
        return [_plain(one, depth + 1) for one in value]
    return value if isinstance(value, str | bool | int | float) else None


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
