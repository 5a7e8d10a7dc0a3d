"""Ports: free ones, their owners, and whether a tree of processes listens on one."""

import asyncio
import os
import socket
from collections.abc import Iterator

import pytest
from tests.host.scripts import Scripts

from culpa.host import free_port, port_owner

LISTEN = """
    import os, socket, time
    server = socket.socket({family})
    {options}
    server.bind(({address!r}, {port}))
    server.listen()
    {after}
    print('listening')
    time.sleep(600)
"""


def script(port: int, address: str = "127.0.0.1", options: str = "", after: str = "") -> str:
    family = "socket.AF_INET6" if ":" in address else "socket.AF_INET"
    return LISTEN.format(port=port, address=address, options=options, after=after, family=family)


@pytest.fixture
def own_listener() -> Iterator[socket.socket]:
    """A listener of this process, which plays a stranger."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def test_a_free_port_can_be_bound_and_has_no_owner() -> None:
    port = free_port()
    assert port_owner(port) is None
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))


def test_free_ports_of_one_moment_differ() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20


def test_the_owner_of_a_port_is_named(own_listener: socket.socket) -> None:
    owner = port_owner(own_listener.getsockname()[1])
    assert owner is not None
    assert owner.startswith(f"pid {os.getpid()} (")


def test_a_port_that_is_held_without_listening_is_not_free() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        owner = port_owner(holder.getsockname()[1])
    assert owner == "a process that holds the port without listening"


def test_a_secret_on_the_command_line_of_the_owner_is_not_shown(scripts: Scripts) -> None:
    port = free_port()

    async def run() -> None:
        argv = scripts.argv("import sys; sys.argv[1:]\n" + script(port).replace("\n    ", "\n"))
        start = ["-c", argv[-1], "--api-key", "hush-hush-1"]
        engine = await scripts.start(
            f"import os, sys; os.execv(sys.executable, [sys.executable, '-u', *{start!r}])"
        )
        scripts.wait_for_lines()
        owner = port_owner(port)
        assert owner is not None
        assert "hush" not in owner
        await engine.stop()

    asyncio.run(run())


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::", "::ffff:127.0.0.1"])
def test_a_listener_that_127_0_0_1_reaches_is_owned(scripts: Scripts, address: str) -> None:
    port = free_port()

    async def run() -> None:
        engine = await scripts.start(script(port, address))
        assert not engine.owns_port(free_port())
        scripts.wait_for_lines()
        assert engine.owns_port(port)
        await engine.stop()
        assert not engine.owns_port(port)

    asyncio.run(run())


def test_a_listener_of_a_daemon_of_the_engine_is_owned(scripts: Scripts) -> None:
    port = free_port()
    detach = "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0)"

    async def run() -> None:
        engine = await scripts.start(script(port, after=detach))
        scripts.wait_for_lines()
        assert engine.owns_port(port)
        await engine.stop()

    asyncio.run(run())


def test_a_listener_of_a_stranger_is_not_owned(scripts: Scripts, own_listener: socket.socket) -> None:
    async def run() -> None:
        engine = await scripts.start("import time; time.sleep(600)")
        assert not engine.owns_port(own_listener.getsockname()[1])
        await engine.stop()

    asyncio.run(run())


def test_a_port_that_is_shared_with_a_stranger_is_not_owned(scripts: Scripts) -> None:
    """With SO_REUSEPORT the engine of an earlier trial may answer in the place of the new one."""
    port = free_port()
    reuse = "server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)"

    async def run() -> None:
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            stranger.bind(("127.0.0.1", port))
            stranger.listen()
            engine = await scripts.start(script(port, options=reuse))
            scripts.wait_for_lines()
            assert not engine.owns_port(port)
        assert engine.owns_port(port)
        await engine.stop()

    asyncio.run(run())
