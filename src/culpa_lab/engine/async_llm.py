"""The API server's side of the engine core: requests out, tokens back, and the news of its death."""

import asyncio
from collections.abc import AsyncIterator, Callable
from multiprocessing.connection import Connection

from culpa_lab.engine.errors import EngineDeadError
from culpa_lab.engine.loggers import Metrics
from culpa_lab.engine.logs import log
from culpa_lab.engine.messages import Abort, Add, Dead, Outputs
from culpa_lab.engine.request import NewRequest
from culpa_lab.engine.scheduler import Output


class AsyncLLM:
    """Hands requests to the engine core and their tokens to whoever asked."""

    def __init__(self, core: Connection, metrics: Metrics, on_death: Callable[[], None]) -> None:
        self._core = core
        self._queues: dict[str, asyncio.Queue[Output | None]] = {}
        self._on_death = on_death
        self.metrics = metrics
        self.dead = False

    def start(self) -> None:
        """Listen to the core from within the running event loop."""
        asyncio.get_running_loop().add_reader(self._core.fileno(), self._receive)

    async def generate(self, request: NewRequest) -> AsyncIterator[Output]:
        """The outputs of a request; whoever stops listening aborts it. Raises EngineDeadError."""
        if self.dead:
            raise EngineDeadError
        queue: asyncio.Queue[Output | None] = asyncio.Queue()
        self._queues[request.id] = queue
        finish = None
        try:
            self._send(Add(request))
            while finish is None:
                output = await queue.get()
                if output is None:
                    raise EngineDeadError
                finish = output.finish
                yield output
        finally:
            del self._queues[request.id]
            if finish is None and not self.dead:
                self._send(Abort(request.id))

    def _send(self, message: Add | Abort) -> None:
        try:
            self._core.send(message)
        except (BrokenPipeError, ConnectionResetError):
            self._die()
            raise EngineDeadError from None

    def _receive(self) -> None:
        try:
            while self._core.poll():
                message = self._core.recv()
                if isinstance(message, Dead):
                    self._die()
                    return
                assert isinstance(message, Outputs)
                self.metrics.step(message.stats)
                for output in message.outputs:
                    queue = self._queues.get(output.request)
                    if queue is not None:
                        queue.put_nowait(output)
        except (EOFError, ConnectionResetError):
            self._die()

    def _die(self) -> None:
        if self.dead:
            return
        self.dead = True
        asyncio.get_running_loop().remove_reader(self._core.fileno())
        try:
            raise EngineDeadError
        except EngineDeadError as error:
            log.exception("AsyncLLM output_handler failed.", error)
        for queue in self._queues.values():
            queue.put_nowait(None)
        self._on_death()
