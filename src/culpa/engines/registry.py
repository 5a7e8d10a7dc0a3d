"""Which adapter a launch belongs to."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from culpa.engines.base import EngineAdapter
from culpa.engines.catalogue import Catalogue, embedded_catalogue, read_catalogue
from culpa.engines.errors import BadLaunch
from culpa.engines.generic import GenericAdapter
from culpa.model import Launch

# Module and class of each embedded engine, and its catalogue. Imported only when a launch is looked at. The
# class is built from a catalogue and the surrounding environment.
ENGINES: tuple[tuple[str, str, str], ...] = (
    ("culpa.engines.vllm", "VllmAdapter", "vllm"),
    ("culpa.engines.llamacpp", "LlamaCppAdapter", "llamacpp"),
    ("culpa.engines.lab", "LabAdapter", "lab"),
)


def find_adapter(
    launch: Launch, factors_file: Path | None, surrounding: Mapping[str, str] | None = None
) -> EngineAdapter:
    """The adapter for a launch.

    `factors_file` with an `[engine]` table describes an engine of its own; without one its factors are
    added to the recognised engine's. `surrounding` is the environment that launches inherit (by default that
    of this process). Raises BadLaunch if no engine is recognised and there is no file, BadFactors for a bad
    file.
    """
    own = read_catalogue(factors_file) if factors_file is not None else None
    if own is not None and own.names_engine:
        return GenericAdapter(own, surrounding)
    for module, name, catalogue in ENGINES:
        if find_spec(module) is None:
            continue
        build = cast(
            Callable[[Catalogue, Mapping[str, str] | None], EngineAdapter],
            getattr(import_module(module), name),
        )
        known = embedded_catalogue(catalogue)
        adapter = build(known.extended(own) if own is not None else known, surrounding)
        if adapter.recognises(launch):
            return adapter
    if own is not None:
        return GenericAdapter(own, surrounding)
    raise BadLaunch(
        f"{launch.argv[0]}: engine not recognised (looked for vLLM: vllm serve, python -m "
        "vllm.entrypoints.openai.api_server; llama.cpp: llama-server, culpa-llamacpp; the reference engine: "
        "culpa-lab serve); any engine with an OpenAI-compatible endpoint works with --factors FILE, see "
        "docs/factors.md and examples/factors.toml"
    )
