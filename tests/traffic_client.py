"""Mixed traffic for an engine: clients that talk, stream, hang up and come back."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2


@dataclass(frozen=True)
class Ask:
    """One request of the traffic; `hangs_up_after` is the number of events after which its client goes away."""

    path: str
    body: dict[str, Any]
    hangs_up_after: int | None = None


@dataclass
class Sent:
    """What clients saw: how many were sent, answered, given up and lost."""

    sent: int = 0
    answered: int = 0
    given_up: int = 0
    lost: int = 0
    bodies: list[dict[str, Any]] = field(default_factory=list)


def mixed(count: int, seed: int = 0, longest: int = 60) -> list[Ask]:
    """Completions of ids and of text, chats, streams, some of them given up; shared beginnings now and then."""
    rng = random.Random(seed)
    shared = [[rng.randrange(30, 250) for _ in range(24)] for _ in range(5)]
    asks = []
    for number in range(count):
        kind = rng.random()
        limit = {"max_tokens": rng.randrange(1, 4), "temperature": 0}
        if kind < 0.5:
            ids = list(rng.choice(shared)) if rng.random() < 0.3 else []
            ids += [rng.randrange(30, 250) for _ in range(rng.randrange(5, longest - len(ids)))]
            ids += [1] * (len(ids) % 16 == 0)  # none that ends on a block boundary
            asks.append(Ask("/v1/completions", {"prompt": ids, **limit}))
        elif kind < 0.75:
            text = f"Request {number} has something to ask of you"
            asks.append(
                Ask("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **limit})
            )
        else:
            body = {"prompt": f"Count from {number} on", "stream": True, "temperature": 0, "max_tokens": 12}
            gone = rng.randrange(1, 4) if rng.random() < 0.3 else None
            asks.append(Ask("/v1/completions", body, gone))
    return asks


async def send_all(base_url: str, asks: Sequence[Ask], at_once: int = 4) -> Sent:
    """Send the requests in their order, so many at once; the first one that is lost ends it."""
    seen = Sent()
    gate = asyncio.Semaphore(at_once)
    lost = asyncio.Event()
    async with httpx2.AsyncClient(base_url=base_url, timeout=None, trust_env=False) as http:

        async def one(ask: Ask) -> None:
            try:
                if ask.hangs_up_after is None:
                    response = await http.post(ask.path, json=ask.body)
                    seen.answered += response.status_code < 500
                    if response.status_code >= 500:
                        raise httpx2.RemoteProtocolError(str(response.status_code))
                    return
                async with http.stream("POST", ask.path, json=ask.body) as response:
                    events = 0
                    async for line in response.aiter_lines():
                        events += line.startswith("data:")
                        if events >= ask.hangs_up_after:
                            seen.given_up += 1
                            return
            except httpx2.HTTPError:
                seen.lost += 1
                lost.set()
            finally:
                gate.release()

        async with asyncio.TaskGroup() as group:
            for ask in asks:
                await gate.acquire()
                if lost.is_set():
                    break
                seen.sent += 1
                seen.bodies.append(ask.body)
                group.create_task(one(ask))
    return seen
