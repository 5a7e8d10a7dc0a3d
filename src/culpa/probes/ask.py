"""Asks a workload of an engine: rounds one after the other, the requests of a round at once."""

import asyncio
from collections.abc import Awaitable, Callable

from culpa.probes.answer import Answer, Progress
from culpa.probes.client import Endpoint
from culpa.probes.pacing import OnTokens, given_up, paced
from culpa.probes.prompts import filler_sample
from culpa.probes.refusal import declined
from culpa.probes.request import Probe, Request, Round, Span


async def ask(
    probe: Probe,
    endpoint: Endpoint,
    on_progress: Callable[[Progress], None] = lambda _: None,
    so_far: list[Answer] | None = None,
) -> tuple[Answer, ...]:
    """The answers in the order of `probe.requests()`; fewer where a round failed, which ends the asking.

    A kind of request that the engine refuses is no reason to stop as long as it only precedes the workload.
    Cancelling drops the requests that are under way; the answers of the rounds before are in `so_far`, which
    grows by whole rounds. `on_progress` is called at each change.
    """
    total = len(probe.requests())
    sent = answered = tokens = 0

    def tell() -> None:
        on_progress(Progress(total, sent, answered, tokens))

    def on_tokens(count: int) -> None:
        nonlocal tokens
        tokens += count
        tell()

    async def one(request: Request) -> Answer:
        nonlocal answered
        span = request.span
        if span is not None and span.given_up:

            def send(on_pieces: OnTokens) -> Awaitable[Answer]:
                def both(count: int) -> None:
                    on_tokens(count)
                    on_pieces(count)

                return endpoint.send(request, both)

            answer = await given_up(span, probe.speed, send)
        else:
            answer = await endpoint.send(request, on_tokens)
        answered += 1
        tell()
        return answer

    async def in_turn(requests: Round, spans: list[Span]) -> list[Answer]:
        async def its_turn(place: int) -> Answer:
            nonlocal sent
            sent += 1
            tell()
            return await one(requests[place])

        return await paced(spans, probe.speed, its_turn)

    async def together(requests: Round) -> list[Answer]:
        nonlocal sent
        sent += len(requests)
        tell()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(request)) for request in requests]
        return [task.result() for task in tasks]

    answers = [] if so_far is None else so_far
    for number, at_once in enumerate(probe.asked()):
        spans = [request.span for request in at_once if request.span is not None]
        came = await (in_turn(at_once, spans) if len(spans) == len(at_once) else together(at_once))
        answers += came
        precedes = number < len(probe.preceding)
        asked = zip(at_once, came, strict=True)
        if any(answer.failed and not (precedes and declined(request, answer)) for request, answer in asked):
            break
    return tuple(answers)


async def measure_tokens_per_character(endpoint: Endpoint) -> float | None:
    """How the engine's tokenizer cuts the filler of long prompts, or None where the engine doesn't say."""
    sample = filler_sample()
    count = await endpoint.count_tokens(sample)
    return count / len(sample) if count else None
