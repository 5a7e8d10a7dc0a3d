"""The command line: `culpa-lab serve` with vLLM's flags, and `culpa-lab faults`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

# Each worker is one thread of work. NumPy's libraries read this when they are loaded, which comes later.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

SHIPPED = Path(__file__).parent / "checkpoint"
_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_EPILOG = """environment:
  VLLM_PP_LAYER_PARTITION=23,23,18    layers of each pipeline stage
  CULPA_LAUNCH_BLOCKING=1             device errors are reported where they happen
  VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS  how long the engine core waits for a step (300)

The model computes in NumPy. Devices are simulated: their faults go to the file of --kernel-log.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Returns the exit code; 2 for what the user has to change, with one line that says what."""
    from culpa_lab.engine.errors import BadLaunch
    from culpa_lab.model.arrays import BadCheckpoint

    given = sys.argv[1:] if argv is None else argv
    arguments = _parser().parse_args([_dashed(word) for word in given])
    try:
        if arguments.command == "faults":
            from culpa_lab.faults.table import show

            sys.stdout.write(show())
            return 0
        from culpa_lab.engine.api_server import serve
        from culpa_lab.engine.settings import resolve

        config, model = resolve(arguments, os.environ)
        serve(config, model, arguments)
    except (BadLaunch, BadCheckpoint) as error:
        print(f"culpa-lab: error: {error}", file=sys.stderr)
        return 2


def _dashed(word: str) -> str:
    """vLLM takes `--max_model_len` for `--max-model-len`."""
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else word


class _Parser(argparse.ArgumentParser):
    """Complains in one line, and says where the flags are explained instead of listing them all."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    from culpa_lab import __version__

    parser = _Parser(
        prog="culpa-lab",
        description="culpa's reference engine: a small serving engine with known faults to switch on.",
    )
    parser.add_argument("--version", action="version", version=f"culpa-lab {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("faults", help="list the faults that --fault takes")
    serve = commands.add_parser(
        "serve",
        help="serve a model over HTTP (OpenAI's API)",
        description="Serve a model over HTTP: completions, chat completions, /health, /metrics.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _server_flags(serve)
    _parallel_flags(serve)
    _execution_flags(serve)
    _cache_flags(serve)
    _scheduler_flags(serve)
    _lab_flags(serve)
    return parser


def _server_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model and server")
    group.add_argument("model_tag", nargs="?", metavar="MODEL", help="folder of a model (the shipped one)")
    group.add_argument("--model", metavar="MODEL", help="the same as a flag")
    group.add_argument("--served-model-name", metavar="NAME", help="the model's name in the API")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    group.add_argument(
        "--port", type=int, default=8000, help="port to listen on (%(default)s); 0 takes a free one"
    )
    group.add_argument(
        "--dtype", default="auto", choices=("auto", "float32", "bfloat16", "float16"),
        help="what weights are rounded to (auto: float32)",
    )  # fmt: skip
    group.add_argument("--max-model-len", type=int, metavar="N", help="longest prompt and answer (32768)")
    group.add_argument("--seed", type=int, metavar="N", help="seed of sampling and of --fault NAME:rate")
    group.add_argument(
        "--enable-prompt-tokens-details", action=argparse.BooleanOptionalAction, default=False,
        help="tell in `usage` how many prompt tokens the prefix cache had",
    )  # fmt: skip


def _parallel_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("parallelism")
    group.add_argument(
        "-pp", "--pipeline-parallel-size", type=int, default=1, metavar="N",
        help="pipeline stages, one worker process each (%(default)s)",
    )  # fmt: skip


def _execution_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("execution")
    group.add_argument(
        "--enforce-eager", action=argparse.BooleanOptionalAction, default=False, help="capture nothing"
    )
    group.add_argument(
        "--compilation-config", "-cc", metavar="JSON",
        help=f"cudagraph_mode ({', '.join(_MODES)}) and cudagraph_capture_sizes, as JSON",
    )  # fmt: skip
    group.add_argument(
        "--cuda-graph-sizes", "--cudagraph-capture-sizes", type=int, nargs="+", metavar="N",
        help="batch sizes of captured decode steps",
    )  # fmt: skip


def _cache_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("cache")
    group.add_argument(
        "--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=True,
        help="keep what was computed for prompts with the same beginning (on)",
    )  # fmt: skip
    group.add_argument(
        "--mamba-cache-mode", choices=("align", "none"),
        help="whether GDN states are kept at block boundaries (align with prefix caching, else none)",
    )  # fmt: skip
    group.add_argument(
        "--block-size", type=int, default=256, metavar="N", help="tokens of a block (%(default)s)"
    )
    group.add_argument(
        "--num-gpu-blocks-override", type=int, metavar="N", help="cache blocks, instead of what fits"
    )
    group.add_argument(
        "--gpu-memory-utilization", type=float, default=0.92, metavar="SHARE",
        help="share of a device's memory to use (%(default)s)",
    )  # fmt: skip


def _scheduler_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("scheduler")
    group.add_argument("--max-num-batched-tokens", type=int, metavar="N", help="tokens of a step (2048)")
    group.add_argument(
        "--max-num-seqs", type=int, default=8, metavar="N", help="requests of a step (%(default)s)"
    )
    group.add_argument(
        "--enable-chunked-prefill", action=argparse.BooleanOptionalAction, default=True,
        help="compute long prompts in pieces (on)",
    )  # fmt: skip
    group.add_argument(
        "--async-scheduling", action=argparse.BooleanOptionalAction, default=True,
        help="schedule steps before the last one has ended (on)",
    )  # fmt: skip


def _lab_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("faults")
    group.add_argument(
        "--fault", action="append", default=[], metavar="NAME[:RATE]",
        help="switch a fault on (`culpa-lab faults` lists them); RATE is the share of launches that have it",
    )  # fmt: skip
    group.add_argument(
        "--build", type=int, default=64, metavar="N", help="build of the engine, 1 to 64 (%(default)s)"
    )
    group.add_argument("--kernel-log", metavar="FILE", help="where the kernel's lines on device faults go")
