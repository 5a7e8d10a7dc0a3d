"""What an engine gave back to one request, and how far a workload has got."""

from dataclasses import dataclass
from typing import Literal

Failure = Literal["not_connected", "connection_lost", "http_error", "malformed"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, or what came in its place. Sending never raises: a failure is data.

    `status` is the HTTP status, None where no response began. `text` is that of the first choice. `tokens`,
    `logprobs` (natural logarithms) and `top_logprobs` (for each token the candidates, likeliest first) are
    as long as the engine told them. Token counts are the engine's own (`usage`), None where it is silent.
    `failure` classes what went wrong and `error` says it in the engine's or the transport's words; `nan`
    says where a number that is no number was seen. `tool_calls` are written as `name(arguments)`.
    `thinking` is True if the text begins with a reasoning model's thoughts, which count as text. `given_up` is True
    if the request was given up by us before its answer was whole, as its recorded client did: nothing is owed then.
    """

    status: int | None = None
    text: str = ""
    finish_reason: str | None = None
    tokens: tuple[str, ...] = ()
    logprobs: tuple[float, ...] = ()
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] = ()
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0
    error: str | None = None
    failure: Failure | None = None
    nan: str | None = None
    tool_calls: tuple[str, ...] = ()
    embedding: tuple[float, ...] = ()
    thinking: bool = False
    given_up: bool = False

    @property
    def failed(self) -> bool:
        """True if there is no complete answer, or one that holds a number that is no number."""
        return self.failure is not None or self.nan is not None

    @property
    def refused(self) -> bool:
        """True if the engine understood and declined: a 4xx status, or 501 (not implemented)."""
        return self.status is not None and (400 <= self.status < 500 or self.status == 501)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a workload is: requests in all, sent and answered, and pieces of text received so far.

    A count that grows tells a slow engine from a hung one. Only streamed requests show tokens before
    their answer is complete.
    """

    requests: int
    sent: int = 0
    answered: int = 0
    tokens: int = 0
