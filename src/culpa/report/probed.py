"""What a trial asked and was answered, read back from its evidence, and which of it is the user's own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The probe that holds the requests of the user's file (`--request`).
USERS_PROBE = "request"
_WORDS = ("messages", "prompt", "input")
_MOST_REQUESTS = 40
_LONGEST = 240
_MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came back. `question` is the words of the prompt, `settings` the rest of the request as
    JSON; it and `answer` are cut where they are long. `failure` says why there is no answer."""

    endpoint: str
    question: str
    settings: str
    answer: str
    finish_reason: str
    status: int | None
    failure: str
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Probed:
    """One probe of a trial: how it was judged and why, and its exchanges, the first `len(exchanges)` of `requests`."""

    probe: str
    status: str
    evidence: str
    symptom: str
    caveat: str
    failed_request: int | None
    requests: int
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The probes of a trial, and the texts of it that are the user's own: prompts and their answers."""

    probes: tuple[Probed, ...] = ()
    private: tuple[str, ...] = ()


def user_texts(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The user's own questions and records, as the options of the run have them (`question => answer`)."""
    found: list[str] = []
    for name in ("questions", "records"):
        for text in options.get(name) or ():
            if isinstance(text, str):
                parts = [part.strip() for part in text.replace("=>", "\n").split("\n")]
                found += [part for part in (text.strip(), *parts) if len(part) > 3]
    return tuple(dict.fromkeys(found))


def read_probes(path: Path, users: tuple[str, ...], *, keep_prompts: bool) -> Asked:
    """The probes of a trial, as `answers.json` has them; nothing where it is not there or damaged.

    `users` are texts of the user's own: a prompt that holds one is the user's. Unless they are kept, the user's prompts
    and the answers to them give way to their lengths.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            return Asked()
        content = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return Asked()
    if not isinstance(content, list):
        return Asked()
    private: list[str] = []
    probes = tuple(_probed(one, users, keep_prompts, private) for one in content if isinstance(one, dict))
    return Asked(probes, tuple(dict.fromkeys(private)))


def _probed(one: Mapping[str, Any], users: tuple[str, ...], keep_prompts: bool, private: list[str]) -> Probed:
    judged = one.get("judgement")
    judgement: Mapping[str, Any] = judged if isinstance(judged, dict) else {}
    requests, answers = _dicts(one.get("requests")), _dicts(one.get("answers"))
    failed = judgement.get("failed_request")
    name = str(one.get("probe", ""))
    exchanges = []
    for request, answer in zip(requests, answers, strict=False):
        question, text = asked_text(request), str(answer.get("text") or "")
        if not keep_prompts and (name == USERS_PROBE or any(text in question for text in users)):
            private += [question, text]
            question = f"[prompt, {len(question):,} characters]"
            text = f"[answer, {len(text):,} characters]"
        exchanges.append(_exchange(request, answer, question, text))
    return Probed(
        probe=name,
        status=str(judgement.get("status", "")),
        evidence=str(judgement.get("evidence", "")),
        symptom=str(judgement.get("symptom") or ""),
        caveat=str(judgement.get("caveat") or ""),
        failed_request=failed if isinstance(failed, int) else None,
        requests=len(requests),
        exchanges=tuple(exchanges[:_MOST_REQUESTS]),
    )


def _exchange(request: Mapping[str, Any], answer: Mapping[str, Any], question: str, text: str) -> Exchange:
    body = request.get("body")
    settings = (
        {key: value for key, value in body.items() if key not in _WORDS} if isinstance(body, dict) else {}
    )
    return Exchange(
        endpoint=str(request.get("endpoint", "")),
        question=_cut(question),
        settings=_cut(json.dumps(settings, ensure_ascii=False)),
        answer=_cut(text),
        finish_reason=str(answer.get("finish_reason") or ""),
        status=_whole(answer.get("status")),
        failure=_cut(": ".join(str(answer[key]) for key in ("failure", "error") if answer.get(key))),
        prompt_tokens=_whole(answer.get("prompt_tokens")),
        cached_tokens=_whole(answer.get("cached_tokens")),
        completion_tokens=_whole(answer.get("completion_tokens")),
        seconds=float(seconds) if isinstance(seconds := answer.get("seconds"), int | float) else None,
    )


def asked_text(request: Mapping[str, Any]) -> str:
    """The words of a request: the contents of its messages, its prompt, its input."""
    body = request.get("body")
    if not isinstance(body, dict):
        return ""
    messages = body.get("messages")
    if isinstance(messages, list):
        return "\n".join(_content(one.get("content")) for one in messages if isinstance(one, dict))
    for key in ("prompt", "input"):
        if key in body:
            return _content(body[key])
    return ""


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_content(part.get("text") if isinstance(part, dict) else part) for part in content)
    return "" if content is None else str(content)


def _dicts(found: Any) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _whole(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _cut(text: str) -> str:
    """The two ends of a long text: a question stands at the end of its prompt."""
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} … {text[-half:]}"
