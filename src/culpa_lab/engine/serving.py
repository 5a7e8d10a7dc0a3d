"""From a request body to tokens and back to text: what completions and chat completions share."""

import itertools
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from culpa_lab.engine.async_llm import AsyncLLM
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.errors import BadRequest
from culpa_lab.engine.protocol import ChatBody, CompletionBody
from culpa_lab.engine.request import NewRequest
from culpa_lab.engine.steps import Sampling, TokenLogprobs
from culpa_lab.model import ModelConfig, Tokenizer


@dataclass(frozen=True, slots=True)
class Piece:
    """New text of an answer with the tokens that it came from."""

    text: str
    tokens: tuple[tuple[int, TokenLogprobs | None], ...]
    finish: str | None


@dataclass
class Usage:
    """Tokens of a request."""

    prompt: int
    completion: int = 0
    cached: int = 0

    def to_json(self, details: bool) -> dict[str, Any]:
        """OpenAI's `usage`; cached tokens only if the engine was asked to tell them."""
        return {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached} if details else None,
        }


@dataclass
class Job:
    """One prompt on its way, with what has been made of it."""

    request: NewRequest
    usage: Usage
    pieces: list[Piece] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def finish(self) -> str | None:
        """Why it ended."""
        return self.pieces[-1].finish if self.pieces else None

    @property
    def tokens(self) -> list[tuple[int, TokenLogprobs | None]]:
        """The answer's tokens so far."""
        return [token for piece in self.pieces for token in piece.tokens]


class Serving:
    """Makes requests for the engine and text of its tokens."""

    def __init__(
        self, config: EngineConfig, model: ModelConfig, tokenizer: Tokenizer, engine: AsyncLLM
    ) -> None:
        self.config = config
        self.engine = engine
        self.tokenizer = tokenizer
        self._model = model
        self._numbers = itertools.count()
        self._seeds = random.Random(config.seed)

    def chat(self, body: ChatBody) -> Job:
        """The job of a chat. Raises BadRequest, or BadTemplate for messages that the template refuses."""
        return self._job("chatcmpl", self.tokenizer.apply_chat_template(body.messages), body)

    def completions(self, body: CompletionBody) -> list[Job]:
        """The jobs of a completion, one a prompt. Raises BadRequest."""
        given = body.prompt
        prompts: Sequence[str | Sequence[int]]
        single = isinstance(given, str) or (given and isinstance(given[0], int))
        prompts = [given] if single else given  # type: ignore[list-item,assignment]
        if not prompts:
            raise BadRequest("prompt: there is none")
        found = [self.tokenizer.encode(one) if isinstance(one, str) else list(one) for one in prompts]
        return [self._job("cmpl", ids, body) for ids in found]

    async def run(self, job: Job, stop: Sequence[str]) -> AsyncIterator[Piece]:
        """The pieces of an answer as they come. Raises EngineDeadError."""
        stream = self.tokenizer.stream()
        text = _Held(stop)
        eos = job.request.stop_tokens
        outputs = self.engine.generate(job.request)
        try:
            async for output in outputs:
                assert output.sampled is not None
                token = output.sampled.token
                job.usage.completion += 1
                job.usage.cached = output.cached
                ends = output.finish == "stop" and token in eos
                new = "" if ends else stream.push(token)
                if output.finish is not None:
                    new += stream.finish()
                shown, stopped = text.push(new, last=output.finish is not None)
                finish = "stop" if stopped else output.finish
                piece = Piece(shown, ((token, output.sampled.logprobs),), finish)
                job.pieces.append(piece)
                yield piece
                if finish is not None:
                    return
        finally:
            await outputs.aclose()  # type: ignore[attr-defined]
            if not self.engine.dead:
                self.engine.metrics.finished(job.finish or "abort")

    def _job(self, kind: str, ids: list[int], body: ChatBody | CompletionBody) -> Job:
        config = self.config
        if not ids:
            raise BadRequest("the prompt is empty")
        if not all(0 <= token < self._model.vocab_size for token in ids):
            raise BadRequest(f"prompt: token ids must be between 0 and {self._model.vocab_size - 1}")
        room = config.max_model_len - len(ids)
        if room < 1:
            raise BadRequest(
                f"This model's maximum context length is {config.max_model_len} tokens. However, your request has "
                f"{len(ids)} input tokens. Please reduce the length of the input messages."
            )
        if body.limit is not None and body.limit > room:
            raise BadRequest(
                f"'max_tokens' or 'max_completion_tokens' is too large: {body.limit}. This model's maximum context "
                f"length is {config.max_model_len} tokens and your request has {len(ids)} input tokens "
                f"({body.limit} > {config.max_model_len} - {len(ids)})."
            )
        sampling = Sampling(
            temperature=1.0 if body.temperature is None else body.temperature,
            top_p=1.0 if body.top_p is None else body.top_p,
            top_k=max(0, body.top_k or 0),
            seed=self._seeds.getrandbits(63) if body.seed is None else body.seed & (2**63 - 1),
            logprobs=body.alternatives,
        )
        request = NewRequest(
            id=f"{kind}-{next(self._numbers):x}{self._seeds.getrandbits(48):012x}",
            prompt=tuple(ids),
            max_tokens=room if body.limit is None else body.limit,
            sampling=sampling,
            stop_tokens=frozenset(body.stop_token_ids or ()) | frozenset(self._model.eos_token_ids),
            ignore_eos=body.ignore_eos,
            min_tokens=body.min_tokens,
        )
        return Job(request, Usage(len(ids)))

    def chat_logprobs(self, tokens: Sequence[tuple[int, TokenLogprobs | None]]) -> dict[str, Any]:
        """OpenAI's `logprobs` of a chat's choice."""
        return {
            "content": [
                {
                    **self._entry(token, found.logprob),
                    "top_logprobs": [self._entry(one, value) for one, value in found.top],
                }
                for token, found in tokens
                if found is not None
            ]
        }

    def completion_logprobs(
        self, tokens: Sequence[tuple[int, TokenLogprobs | None]], offset: int = 0
    ) -> dict[str, Any]:
        """OpenAI's `logprobs` of a completion's choice."""
        texts, values, tops, offsets = [], [], [], []
        for token, found in tokens:
            if found is None:
                continue
            text = self.tokenizer.token(token)
            texts.append(text)
            values.append(found.logprob)
            top: Mapping[str, float] = {text: found.logprob}
            top = {**{self.tokenizer.token(one): value for one, value in reversed(found.top)}, **top}
            tops.append(dict(sorted(top.items(), key=lambda item: -item[1])))
            offsets.append(offset)
            offset += len(text)
        return {"text_offset": offsets, "token_logprobs": values, "tokens": texts, "top_logprobs": tops}

    def _entry(self, token: int, value: float) -> dict[str, Any]:
        text = self.tokenizer.token(token)
        return {
            "token": text,
            "logprob": max(value, -9999.0) if value == value else value,
            "bytes": list(text.encode()),
        }


class _Held:
    """Text with what may be the beginning of a stop text held back."""

    def __init__(self, stop: Sequence[str]) -> None:
        self._stop = stop
        self._held = ""

    def push(self, text: str, last: bool) -> tuple[str, bool]:
        """The text that may be shown now, and whether a stop text has ended the answer."""
        self._held += text
        found = [self._held.find(one) for one in self._stop if one in self._held]
        if found:
            return self._held[: min(found)], True
        keep = 0
        if not last:
            for one in self._stop:
                for length in range(min(len(one) - 1, len(self._held)), 0, -1):
                    if self._held.endswith(one[:length]):
                        keep = max(keep, length)
                        break
        shown = self._held[: len(self._held) - keep]
        self._held = self._held[len(shown) :]
        return shown, False
