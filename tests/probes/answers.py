"""Short ways to write probes and answers in tests of the probes."""

from typing import Any

from culpa.probes import Answer, Expectation, Probe, Request

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"


def said(text: str, finish_reason: str = "stop", **fields: Any) -> Answer:
    """An answer that came whole."""
    return Answer(status=200, text=text, finish_reason=finish_reason, **fields)


def measured(*steps: tuple[str, float, dict[str, float]], finish_reason: str = "stop") -> Answer:
    """An answer with log-probabilities: for each token its own, and those of other candidates."""
    return said(
        "".join(token for token, _, _ in steps),
        finish_reason,
        tokens=tuple(token for token, _, _ in steps),
        logprobs=tuple(logprob for _, logprob, _ in steps),
        top_logprobs=tuple(
            tuple(sorted({token: logprob, **others}.items(), key=lambda one: -one[1]))
            for token, logprob, others in steps
        ),
    )


def chat(
    text: str = "What is 2+2?", expect: str | None = None, certain: bool = False, **fields: Any
) -> Request:
    """A chat request at temperature 0."""
    body = {"messages": [{"role": "user", "content": text}], "temperature": 0, "max_tokens": 16, **fields}
    body = {key: value for key, value in body.items() if value is not None}
    return Request(CHAT, body, expect=Expectation(expect, certain=certain) if expect else None)


def probe(*requests: Request, **fields: Any) -> Probe:
    """A workload of requests, one after the other."""
    return Probe("test", tuple((request,) for request in requests), **fields)
