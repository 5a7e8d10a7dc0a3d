"""What `culpa record` costs: latency and throughput against a direct connection, and the memory of a large ring.

    python -m benchmarks.record [--requests 2000] [--ring 100000] [--quick] [--json]

Direct and recorded rounds take turns in one run, at 1, 64 and 1,024 connections that are kept alive, so that both see
the same machine. The server behind is a bare asyncio protocol. For the latency it takes as long over each request as
keeps the load at 300 requests a second, some longer and some shorter, and what it took is subtracted: where everybody
asks again at once, a latency is the length of a queue. For the throughput it answers at once.

The ring is filled through the proxy at 64 connections, then as many again go through it; the recorder's memory is read
from the kernel at the half and at the end.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from culpa.host import free_port

CONNECTIONS = (1, 64, 1024)
RATE = 300.0
PROMPT = "word " * 400
BODY = json.dumps({"model": "m", "prompt": PROMPT, "max_tokens": 16, "temperature": 0}).encode()
ANSWER = json.dumps(
    {
        "id": "cmpl-1",
        "choices": [{"index": 0, "text": " and so on" * 8, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 16},
    }
).encode()


@dataclass(frozen=True)
class Cost:
    """One number of connections: medians of rounds, direct and recorded in turn."""

    connections: int
    direct_ms: float
    recorded_ms: float
    direct_per_s: float
    recorded_per_s: float

    @property
    def added_ms(self) -> float:
        """What the proxy adds at the median."""
        return self.recorded_ms - self.direct_ms


class Server(asyncio.Protocol):
    """Answers every request on a connection that is kept, as soon as its body is there."""

    RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(
        ANSWER
    )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Nothing has come yet."""
        self.transport = transport
        self.data = b""

    def data_received(self, data: bytes) -> None:
        """Answer whatever is complete."""
        self.data += data
        while (head := self.data.find(b"\r\n\r\n")) >= 0:
            lower = self.data[:head].lower()
            at = lower.find(b"content-length:")
            length = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self.data) < head + 4 + length:
                return
            self.data = self.data[head + 4 + length :]
            wait = lower.find(b"x-wait:")
            seconds = float(lower[wait + 7 :].split(b"\r\n", 1)[0]) if wait >= 0 else 0.0
            if seconds:
                asyncio.get_running_loop().call_later(seconds, self.answer)
            else:
                self.answer()

    def answer(self) -> None:
        """The answer, unless the client has gone."""
        assert isinstance(self.transport, asyncio.Transport)
        if not self.transport.is_closing():
            self.transport.write(self.RESPONSE + ANSWER)


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it has its answer, until nobody wants more."""

    REQUEST = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

    def __init__(self, load: "Load") -> None:
        self.load = load
        self.data = b""
        self.began = self.wait = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask at once, or, where latencies are measured, some time soon: a crowd at the door is no load."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        if self.load.wait:
            asyncio.get_running_loop().call_later(random.uniform(0.0, 2 * self.load.wait), self.ask)
        else:
            self.ask()

    def ask(self) -> None:
        """Send a request, if one is still wanted."""
        if self.load.left <= 0:
            self.load.ended(self)
            return
        self.load.left -= 1
        self.began = time.perf_counter()
        self.wait = self.load.wait * random.uniform(0.0, 2.0)
        wait = b"X-Wait: %.6f\r\n" % self.wait if self.wait else b""
        self.transport.write(self.REQUEST + wait + b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))

    def data_received(self, data: bytes) -> None:
        """An answer, or a part of one."""
        self.data += data
        head = self.data.find(b"\r\n\r\n")
        if head < 0 or len(self.data) < head + 4 + len(ANSWER):
            return
        if not self.data.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(self.data[:200])
        self.load.latencies.append(time.perf_counter() - self.began - self.wait)
        self.data = b""
        self.ask()

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection that breaks off spoils the round."""
        if self in self.load.clients:
            self.load.fail()


class Load:
    """So many requests over so many connections."""

    def __init__(self, requests: int, connections: int, wait: float = 0.0) -> None:
        self.left = requests
        self.wait = wait
        self.connections = connections
        self.latencies: list[float] = []
        self.clients: set[Client] = set()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ended(self, client: Client) -> None:
        """A connection is not needed any more."""
        self.clients.discard(client)
        client.transport.close()
        if not self.clients and not self.done.done():
            self.done.set_result(None)

    def fail(self) -> None:
        """The round says nothing."""
        if not self.done.done():
            self.done.set_exception(RuntimeError("a connection broke off"))

    async def run(self, port: int) -> tuple[float, float]:
        """Median latency in milliseconds, and requests a second."""
        loop = asyncio.get_running_loop()
        began = time.perf_counter()
        clients = [Client(self) for _ in range(self.connections)]
        self.clients.update(clients)
        await asyncio.gather(
            *(loop.create_connection(lambda one=one: one, "127.0.0.1", port) for one in clients)  # type: ignore[misc]
        )
        await self.done
        seconds = time.perf_counter() - began
        return statistics.median(self.latencies) * 1e3, len(self.latencies) / seconds


async def measure(direct: int, recorded: int, connections: int, requests: int, rounds: int) -> Cost:
    """Rounds in turn, after one of each that does not count."""
    found: dict[int, list[tuple[float, float]]] = {direct: [], recorded: []}
    for number in range(rounds + 1):
        for port in (direct, recorded) if number % 2 else (recorded, direct):
            wait = connections / RATE if connections > 1 else 0.0
            latency, _ = await Load(requests, connections, wait).run(port)
            _, rate = await Load(requests, connections).run(port)
            if number:
                found[port].append((latency, rate))
    middle = {
        port: [statistics.median(one[place] for one in results) for place in (0, 1)]
        for port, results in found.items()
    }
    return Cost(connections, middle[direct][0], middle[recorded][0], middle[direct][1], middle[recorded][1])


def serve(port: int) -> None:
    """The server behind, in a process of its own."""

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", port, backlog=4096)
        await server.serve_forever()

    asyncio.run(main())


class Recorder:
    """`culpa record` in a process of its own, in front of the server."""

    def __init__(self, folder: Path, upstream: int, *options: str) -> None:
        self.port = free_port()
        self.folder = folder
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "culpa", "record", "--quiet", "--wait", "30s"),
                *("--upstream", f"http://127.0.0.1:{upstream}", "--listen", f"127.0.0.1:{self.port}"),
                *("--out", str(folder), *options),
            ],
            stdout=subprocess.DEVNULL,
        )
        while True:
            try:
                psutil.Process(self.process.pid)
                if any(c.laddr.port == self.port for c in psutil.Process(self.process.pid).net_connections()):
                    return
            except psutil.Error:
                pass
            if self.process.poll() is not None:
                raise RuntimeError("culpa record did not start")
            time.sleep(0.05)

    def memory(self) -> float:
        """Its resident memory, MB."""
        return float(psutil.Process(self.process.pid).memory_info().rss) / 1e6

    def processor_seconds(self) -> float:
        """Processor time that it has used so far: what does not depend on who else is at work."""
        used = psutil.Process(self.process.pid).cpu_times()
        return float(used.user + used.system)

    def stop(self) -> None:
        """End it as a person does."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)


def ring(upstream: int, folder: Path, requests: int) -> dict[str, Any]:
    """Fill a ring, then as much again."""
    recorder = Recorder(folder, upstream, "--last-requests", str(requests), "--max-disk", "64GiB")
    try:
        start = recorder.memory()
        asyncio.run(_only(recorder.port, requests))
        half = recorder.memory()
        used = recorder.processor_seconds()
        asyncio.run(_only(recorder.port, requests))
        end = recorder.memory()
        used = recorder.processor_seconds() - used
    finally:
        recorder.stop()
    size = sum(path.stat().st_size for path in folder.iterdir())
    return {
        "requests": requests,
        "sent": 2 * requests,
        "memory_start_mb": round(start, 1),
        "memory_full_mb": round(half, 1),
        "memory_end_mb": round(end, 1),
        "disk_mb": round(size / 1e6, 1),
        "processor_ms_per_request": round(used / requests * 1e3, 3),
    }


async def _only(port: int, requests: int) -> None:
    await Load(requests, 64).run(port)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=2000, help="requests of a round (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each kind (%(default)s)")
    parser.add_argument("--ring", type=int, default=100_000, help="requests of the ring (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve is not None:
        serve(asked.serve)
        return
    share = 10 if asked.quick else 1
    upstream = free_port()
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.record", "--serve", str(upstream)])
    try:
        with tempfile.TemporaryDirectory(prefix="culpa-record-") as folder:
            costs: list[Cost] = []
            shaped: list[Cost] = []
            for kind, options in ((costs, ()), (shaped, ("--shapes",))):
                recorder = Recorder(
                    Path(folder) / f"cost{len(options)}", upstream, "--last-requests", "10000", *options
                )
                try:
                    for connections in CONNECTIONS:
                        requests = max(asked.requests // share, 2 * connections)
                        kind.append(
                            asyncio.run(
                                measure(
                                    upstream,
                                    recorder.port,
                                    connections,
                                    requests,
                                    max(3, asked.rounds // share),
                                )
                            )
                        )
                finally:
                    recorder.stop()
            filled = ring(upstream, Path(folder) / "ring", asked.ring // share)
    finally:
        server.terminate()
        server.wait()
    load = os.getloadavg()[0]
    if asked.json:
        rows = [{**asdict(one), "added_ms": one.added_ms} for one in costs]
        rows_shaped = [{**asdict(one), "added_ms": one.added_ms} for one in shaped]
        print(json.dumps({"bodies": rows, "shapes": rows_shaped, "ring": filled, "load": load}, indent=1))
        return
    for name, kind in (("bodies", costs), ("shapes", shaped)):
        print(f"{name}: {len(BODY):,} bytes a request; medians of rounds in turn")
        for one in kind:
            print(
                f"  {one.connections:>5} connections: {one.direct_ms:8.3f} ms direct, "
                f"{one.recorded_ms:8.3f} ms recorded ({one.added_ms:+.3f} ms); {one.direct_per_s:6.0f}/s direct, "
                f"{one.recorded_per_s:5.0f}/s recorded ({one.recorded_per_s / one.direct_per_s:.2f})"
            )
    print(
        f"ring of {filled['requests']:,} requests, {filled['sent']:,} sent: {filled['memory_start_mb']} MB at the "
        f"start, {filled['memory_full_mb']} MB when it was full, {filled['memory_end_mb']} MB at the end, "
        f"{filled['disk_mb']} MB on disk; {filled['processor_ms_per_request']} ms of processor time a request"
    )
    print(f"load of the machine: {load:.1f}")


if __name__ == "__main__":
    main()
