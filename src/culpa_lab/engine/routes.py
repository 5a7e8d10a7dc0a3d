"""The HTTP application: OpenAI's endpoints, `/health`, `/version`, `/metrics`."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from culpa_lab.engine.errors import BadRequest, EngineDeadError
from culpa_lab.engine.protocol import ChatBody, CompletionBody, read_body
from culpa_lab.engine.serving import Job, Piece, Serving
from culpa_lab.model import BadTemplate

_KINDS = {
    400: "BadRequestError",
    404: "NotFoundError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}


def application(serving: Serving) -> Starlette:
    """The application around an engine."""
    routes = Routes(serving)
    return Starlette(
        routes=[
            Route("/health", routes.health),
            Route("/ping", routes.health, methods=["GET", "POST"]),
            Route("/version", routes.version),
            Route("/metrics", routes.metrics),
            Route("/v1/models", routes.models),
            Route("/v1/completions", routes.completions, methods=["POST"]),
            Route("/v1/chat/completions", routes.chat, methods=["POST"]),
            Route("/tokenize", routes.tokenize, methods=["POST"]),
        ]
    )


def failure(status: int, message: str) -> JSONResponse:
    """An error as OpenAI's API has it."""
    content = {"error": {"message": message, "type": _KINDS[status], "param": None, "code": status}}
    return JSONResponse(content, status_code=status)


class Routes:
    """Handlers of all endpoints."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._config = serving.config
        self._started = int(time.time())

    async def health(self, _: Request) -> Response:
        """200 while the engine lives, 503 after."""
        return Response(status_code=503 if self._serving.engine.dead else 200)

    async def version(self, _: Request) -> Response:
        """The engine's version."""
        return JSONResponse({"version": self._config.version})

    async def metrics(self, _: Request) -> Response:
        """Counters in Prometheus' text format."""
        page = self._serving.engine.metrics.page()
        return PlainTextResponse(page, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def models(self, _: Request) -> Response:
        """The one model."""
        name = self._config.served_model_name
        entry = {
            "id": name,
            "object": "model",
            "created": self._started,
            "owned_by": "vllm",
            "root": str(self._config.model),
            "parent": None,
            "max_model_len": self._config.max_model_len,
        }
        return JSONResponse({"object": "list", "data": [entry]})

    async def tokenize(self, request: Request) -> Response:
        """Token ids of a text or of messages."""
        try:
            body = await request.json()
            if isinstance(body.get("messages"), list):
                ids = self._serving.tokenizer.apply_chat_template(body["messages"])
            else:
                ids = self._serving.tokenizer.encode(str(body["prompt"]))
        except (ValueError, KeyError, AttributeError) as error:
            return failure(400, f"neither prompt nor messages can be read: {error}")
        return JSONResponse({"count": len(ids), "max_model_len": self._config.max_model_len, "tokens": ids})

    async def completions(self, request: Request) -> Response:
        """`POST /v1/completions`."""
        return await self._answer(request, CompletionBody, self._complete)

    async def chat(self, request: Request) -> Response:
        """`POST /v1/chat/completions`."""
        return await self._answer(request, ChatBody, self._chat)

    async def _answer(
        self, request: Request, kind: type[Any], handle: Callable[[Request, Any], Awaitable[Response]]
    ) -> Response:
        try:
            body = read_body(kind, await request.body())
            if body.model is not None and body.model != self._config.served_model_name:
                return failure(404, f"The model `{body.model}` does not exist.")
            return await handle(request, body)
        except (BadRequest, BadTemplate) as error:
            return failure(400, str(error))
        except EngineDeadError as error:
            return failure(500, str(error))
        except ClientDisconnect:
            return Response(status_code=499)
        except ValueError as error:  # a number that JSON can't hold: NaN
            return failure(500, str(error))

    async def _chat(self, request: Request, body: ChatBody) -> Response:
        job = self._serving.chat(body)
        if body.stream:
            return self._stream(job, body, "chat.completion.chunk", _chat_delta(self._serving, body))
        await self._finish(request, [job], body)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": job.text, "tool_calls": []},
            "logprobs": self._serving.chat_logprobs(job.tokens) if body.logprobs else None,
            "finish_reason": job.finish,
        }
        return JSONResponse(self._whole(job, "chat.completion", [choice], [job]))

    async def _complete(self, request: Request, body: CompletionBody) -> Response:
        jobs = self._serving.completions(body)
        if body.stream:
            if len(jobs) > 1:
                raise BadRequest("prompt: a stream answers one prompt only")
            return self._stream(jobs[0], body, "text_completion", _completion_delta(self._serving, body))
        await self._finish(request, jobs, body)
        choices = [
            {
                "index": index,
                "text": job.text,
                "logprobs": self._serving.completion_logprobs(job.tokens)
                if body.logprobs is not None
                else None,
                "finish_reason": job.finish,
            }
            for index, job in enumerate(jobs)
        ]
        return JSONResponse(self._whole(jobs[0], "text_completion", choices, jobs))

    async def _finish(self, request: Request, jobs: list[Job], body: ChatBody | CompletionBody) -> None:
        """Run jobs to their end. Raises ClientDisconnect as soon as nobody waits for them any more."""

        async def run(job: Job) -> None:
            async for _ in self._serving.run(job, body.stop_texts):
                pass

        async def gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass

        async def all_jobs() -> None:
            await asyncio.gather(*(run(job) for job in jobs))

        work = asyncio.create_task(all_jobs())
        watch = asyncio.create_task(gone())
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise ClientDisconnect
            await work
        finally:
            for task in (work, watch):
                task.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    def _whole(self, job: Job, kind: str, choices: list[dict[str, Any]], jobs: list[Job]) -> dict[str, Any]:
        usage = jobs[0].usage
        for other in jobs[1:]:
            usage.prompt += other.usage.prompt
            usage.completion += other.usage.completion
            usage.cached += other.usage.cached
        return {
            **self._head(job, kind),
            "choices": choices,
            "usage": usage.to_json(self._config.enable_prompt_tokens_details),
        }

    def _head(self, job: Job, kind: str) -> dict[str, Any]:
        name = self._config.served_model_name
        return {"id": job.request.id, "object": kind, "created": int(time.time()), "model": name}

    def _stream(
        self,
        job: Job,
        body: ChatBody | CompletionBody,
        kind: str,
        delta: Callable[[Piece, bool], dict[str, Any]],
    ) -> Response:
        head = self._head(job, kind)
        with_usage = body.stream_options is not None and body.stream_options.include_usage

        async def events() -> AsyncIterator[str]:
            first = True
            pieces = self._serving.run(job, body.stop_texts)
            try:
                async for piece in pieces:
                    yield _event({**head, "choices": [delta(piece, first)]})
                    first = False
                if with_usage:
                    usage = job.usage.to_json(self._config.enable_prompt_tokens_details)
                    yield _event({**head, "choices": [], "usage": usage})
            except (EngineDeadError, ValueError) as error:
                yield _event(
                    {"error": {"message": str(error), "type": _KINDS[500], "param": None, "code": 500}}
                )
            finally:
                await pieces.aclose()  # type: ignore[attr-defined]
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, allow_nan=False, ensure_ascii=False)}\n\n"


def _chat_delta(serving: Serving, body: ChatBody) -> Callable[[Piece, bool], dict[str, Any]]:
    def delta(piece: Piece, first: bool) -> dict[str, Any]:
        message = {"role": "assistant", "content": piece.text} if first else {"content": piece.text}
        logprobs = serving.chat_logprobs(piece.tokens) if body.logprobs else None
        return {"index": 0, "delta": message, "logprobs": logprobs, "finish_reason": piece.finish}

    return delta


def _completion_delta(serving: Serving, body: CompletionBody) -> Callable[[Piece, bool], dict[str, Any]]:
    def delta(piece: Piece, first: bool) -> dict[str, Any]:
        logprobs = serving.completion_logprobs(piece.tokens) if body.logprobs is not None else None
        return {"index": 0, "text": piece.text, "logprobs": logprobs, "finish_reason": piece.finish}

    return delta
