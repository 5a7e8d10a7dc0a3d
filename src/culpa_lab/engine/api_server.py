"""The API server's process: starts the engine core, waits for it, serves HTTP until it is told to stop."""

import argparse
import os
import socket
import sys
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NoReturn

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.core_process import run_engine_core
from culpa_lab.engine.errors import BadLaunch
from culpa_lab.engine.logs import log
from culpa_lab.engine.messages import Dead, Ready, Refused
from culpa_lab.model import ModelConfig

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


def serve(config: EngineConfig, model: ModelConfig, arguments: argparse.Namespace) -> NoReturn:
    """Serve until a signal or the engine's death, then end the process: code 0, or 1 if the engine died.

    Raises BadLaunch if the port is taken or the engine refuses to start like this.
    """
    log.open("APIServer")
    log.info(f"vLLM API server version {config.version} (culpa's reference engine)")
    log.info(f"non-default args: {_non_default(arguments)}")
    if len(set(config.partition)) > 1 and not os.environ.get("VLLM_PP_LAYER_PARTITION"):
        log.info(
            f"Hidden layers were unevenly partitioned: [{','.join(map(str, config.partition))}]. This can be "
            "manually overridden using the VLLM_PP_LAYER_PARTITION environment variable"
        )
    api, core_end = get_context("fork").Pipe()
    # Forked before anything heavy is loaded: the engine core and its workers load what they need side by side.
    core = get_context("fork").Process(
        target=_engine_core, args=(config, model, core_end, api, os.getpid()), name="EngineCore"
    )
    core.start()
    core_end.close()
    try:
        code = _serve(config, model, arguments, api, core)
    finally:
        if core.is_alive():
            core.kill()  # its workers die with it
        core.join()
    # Nothing is left to be tidied up, and an interpreter with these libraries takes its time to do so.
    sys.stdout.flush()
    os._exit(code)


def _engine_core(
    config: EngineConfig, model: ModelConfig, end: Connection, api: Connection, parent: int
) -> None:
    api.close()
    run_engine_core(config, model, end, parent)


def _serve(
    config: EngineConfig,
    model: ModelConfig,
    arguments: argparse.Namespace,
    api: Connection,
    core: "BaseProcess",
) -> int:
    listening = _bind(arguments.host, arguments.port)
    # Loaded while the engine core starts.
    from culpa_lab.engine.http_server import serve_http
    from culpa_lab.engine.loggers import Metrics
    from culpa_lab.model import Tokenizer

    tokenizer = Tokenizer.load(config.model)
    try:
        ready = api.recv()
    except EOFError:
        ready = Dead()
    if isinstance(ready, Refused):
        raise BadLaunch(ready.reason)
    if isinstance(ready, Dead):
        core.join(2)
        log.error(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
        )
        return 1
    assert isinstance(ready, Ready)
    log.info(f"Starting vLLM server on http://{arguments.host}:{listening.getsockname()[1]}")
    metrics = Metrics(config, ready.blocks, ready.cache_tokens)
    return serve_http(config, model, tokenizer, metrics, api, listening)


def _non_default(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the user gave, by the names that vLLM prints."""
    ordinary = {"host": "127.0.0.1", "port": 8000, "dtype": "auto", "pipeline_parallel_size": 1, "build": 64}
    ordinary |= {
        "enable_prefix_caching": True,
        "block_size": 256,
        "gpu_memory_utilization": 0.92,
        "max_num_seqs": 8,
    }
    ordinary |= {"enable_chunked_prefill": True, "async_scheduling": True}
    switched_off = {name for name, value in vars(arguments).items() if value is False and ordinary.get(name)}
    return {
        name: value
        for name, value in vars(arguments).items()
        if name in switched_off
        or (name != "command" and value not in (None, False, []) and value != ordinary.get(name))
    }


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except (OSError, OverflowError) as error:
        found.close()
        reason = error.strerror if isinstance(error, OSError) else "no such port"
        raise BadLaunch(f"can't listen on {host}:{port}: {reason}") from None
    return found
