"""Request bodies of OpenAI's API as this engine takes them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from culpa_lab.engine.errors import BadRequest

_MOST_LOGPROBS = 20


class StreamOptions(BaseModel):
    """What a stream holds besides text."""

    model_config = ConfigDict(extra="ignore")
    include_usage: bool = False


class _Common(BaseModel):
    # Clients send fields of many engines: what changes nothing here is ignored, as vLLM does.
    model_config = ConfigDict(extra="ignore")

    model: str | None = None
    max_tokens: int | None = Field(None, ge=1)
    temperature: float | None = Field(None, ge=0)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1)
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    min_tokens: int = Field(0, ge=0)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = Field(1, ge=1)
    presence_penalty: float | None = 0.0
    frequency_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0
    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    prompt_logprobs: int | None = None

    @model_validator(mode="after")
    def _supported(self) -> "_Common":
        if self.n != 1:
            raise ValueError("n other than 1 is not supported")
        if self.presence_penalty or self.frequency_penalty or self.repetition_penalty not in (None, 1.0):
            raise ValueError("penalties are not supported")
        if self.structured_outputs or (self.response_format or {}).get("type", "text") != "text":
            raise ValueError("structured output is not supported")
        if self.prompt_logprobs is not None:
            raise ValueError("prompt_logprobs is not supported")
        return self

    @property
    def stop_texts(self) -> list[str]:
        """Texts that end the answer."""
        texts = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [text for text in texts if text]


class CompletionBody(_Common):
    """`POST /v1/completions`."""

    prompt: str | list[int] | list[str] | list[list[int]]
    logprobs: int | None = Field(None, ge=0, le=_MOST_LOGPROBS)
    echo: bool = False
    suffix: str | None = None

    @model_validator(mode="after")
    def _no_echo(self) -> "CompletionBody":
        if self.echo or self.suffix:
            raise ValueError("echo and suffix are not supported")
        return self

    @property
    def alternatives(self) -> int | None:
        """Log-probabilities to report for each token, None for none."""
        return self.logprobs

    @property
    def limit(self) -> int | None:
        """Tokens of the answer at most."""
        return 16 if self.max_tokens is None else self.max_tokens


class ChatBody(_Common):
    """`POST /v1/chat/completions`."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = False
    top_logprobs: int | None = Field(None, ge=0, le=_MOST_LOGPROBS)
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None

    @model_validator(mode="after")
    def _no_tools(self) -> "ChatBody":
        if self.tools and self.tool_choice != "none":
            raise ValueError('"auto" tool choice is not supported: this engine has no tool parser')
        if self.top_logprobs and not self.logprobs:
            raise ValueError("when using `top_logprobs`, `logprobs` must be set to true")
        return self

    @property
    def alternatives(self) -> int | None:
        """Log-probabilities to report for each token, None for none."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def limit(self) -> int | None:
        """Tokens of the answer at most; None for as many as fit."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens


def read_body(kind: type[CompletionBody] | type[ChatBody], raw: bytes) -> Any:
    """A body of this kind. Raises BadRequest with one line that names the field."""
    from pydantic import ValidationError

    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"{place}: {first['msg']}" if place else str(first["msg"])) from None
