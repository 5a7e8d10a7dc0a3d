"""uvicorn around the application: its log lines in vLLM's form, and a quick end."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterator
from http import HTTPStatus
from multiprocessing.connection import Connection

import uvicorn

from culpa_lab.engine.async_llm import AsyncLLM
from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.loggers import Metrics
from culpa_lab.engine.logs import log
from culpa_lab.engine.routes import application
from culpa_lab.engine.serving import Serving
from culpa_lab.model import ModelConfig, Tokenizer

_LAST_WORDS_SECONDS = 0.3


def serve_http(
    config: EngineConfig,
    model: ModelConfig,
    tokenizer: Tokenizer,
    metrics: Metrics,
    core: Connection,
    listening: socket.socket,
) -> int:
    """Serve until SIGTERM or SIGINT (0) or until the engine has died (1)."""
    return asyncio.run(_serve(config, model, tokenizer, metrics, core, listening))


async def _serve(
    config: EngineConfig,
    model: ModelConfig,
    tokenizer: Tokenizer,
    metrics: Metrics,
    core: Connection,
    listening: socket.socket,
) -> int:
    loop = asyncio.get_running_loop()

    def died() -> None:
        # Requests in flight still get their answer: 500.
        loop.call_later(_LAST_WORDS_SECONDS, stop)

    engine = AsyncLLM(core, metrics, died)
    app = application(Serving(config, model, tokenizer, engine))
    for name in ("uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers = [_Through()]
        logger.propagate = False
    server = _Server(
        uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1, ws="none", lifespan="off")
    )

    def stop() -> None:
        server.should_exit = True

    def stop_now() -> None:
        server.should_exit = server.force_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_now)
    engine.start()
    lines = asyncio.create_task(_write_lines(metrics))
    log.raw("INFO:     Application startup complete.")
    await server.serve(sockets=[listening])
    lines.cancel()
    return 1 if engine.dead else 0


async def _write_lines(metrics: Metrics) -> None:
    while True:
        await asyncio.sleep(1)
        metrics.write_line()


class _Server(uvicorn.Server):
    """uvicorn's server without its own handling of signals, which waits for requests that never end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the event loop."""
        yield


class _Through(logging.Handler):
    """uvicorn's lines in the form that they have in vLLM's log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        text = record.getMessage()
        if record.name == "uvicorn.access":
            status = text.rsplit(" ", 1)[-1]
            if status.isdigit():
                text = f"{text} {HTTPStatus(int(status)).phrase}"
        level = f"{record.levelname}:"
        log.raw(f"{level:<9} {text}")
        if record.exc_info and record.exc_info[1] is not None:
            log.exception("Exception in ASGI application", record.exc_info[1])
