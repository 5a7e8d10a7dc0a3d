"""How a vLLM launch runs the model (graphs, compiled, eager): one factor that shows in four places.

`--enforce-eager` wins over everything; otherwise `mode` and `cudagraph_mode` of the compilation configuration
decide, and where these are not given, `-O0` turns both off.
"""

from collections.abc import Mapping

from culpa.engines.arguments import mentions, without
from culpa.engines.places import Context, read_level, write_level
from culpa.engines.tables import FactorTable, JsonPlace
from culpa.engines.vllm_command import optimization_level
from culpa.model import Launch

GRAPHS, COMPILED, EAGER = "graphs", "compiled", "eager"
# Names of the compilation modes in new and old releases, and the digit that stands for them.
MODES = {
    "NONE": "0",
    "STOCK_TORCH_COMPILE": "1",
    "DYNAMO_AS_IS": "1",
    "DYNAMO_TRACE_ONCE": "2",
    "DYNAMO_ONCE": "2",
    "VLLM_COMPILE": "3",
    "PIECEWISE": "3",
}
_DEFAULT = "default"


def _key(key: str) -> FactorTable:
    """A key of the compilation configuration, to be read and written by itself."""
    place = JsonPlace(flag="--compilation-config", flag_aliases=("-cc",), key=key)
    return FactorTable.model_validate({"name": key, "safe": (_DEFAULT,), "json": place})


_MODE, _OLD_MODE, _GRAPH_MODE = _key("mode"), _key("level"), _key("cudagraph_mode")
_ENFORCE = FactorTable(
    name="enforce_eager", on=("--enforce-eager",), off=("--no-enforce-eager",), default="off", safe=("off",)
)


def mode_of(launch: Launch, context: Context) -> str:
    """The compilation mode as a digit, or "default"."""
    for entry in (_MODE, _OLD_MODE):
        level = read_level(entry, launch, context)
        if level != _DEFAULT:
            return MODES.get(level.upper(), level)
    return _DEFAULT


def graph_mode_of(launch: Launch, context: Context) -> str:
    """The CUDA graph mode in capitals, or "default"."""
    level = read_level(_GRAPH_MODE, launch, context)
    return level if level == _DEFAULT else level.upper()


def read_execution(launch: Launch, context: Context, has_graphs: bool) -> str:
    """How the launch runs the model. `has_graphs` is false on machines and builds without CUDA graphs."""
    if read_level(_ENFORCE, launch, context) == "on":
        return EAGER
    mode, graph_mode = mode_of(launch, context), graph_mode_of(launch, context)
    level = optimization_level(launch.argv, context.start)
    nothing = level is not None and level.level == "0"
    interpreted = mode == "0" or (mode == _DEFAULT and nothing)
    captured = has_graphs and graph_mode != "NONE" and not (graph_mode == _DEFAULT and nothing)
    if captured:
        return GRAPHS
    return EAGER if interpreted else COMPILED


def write_execution(launch: Launch, level: str, context: Context, has_graphs: bool) -> Launch:
    """The launch at that level, changed no more than that takes."""
    if read_execution(launch, context, has_graphs) == level:
        return launch
    if level == EAGER:
        return write_level(_ENFORCE, launch, "on", context)
    enforced = mentions(launch.argv, context.start, context.grammar, switches=[*_ENFORCE.on, *_ENFORCE.off])
    launch = launch.with_argv(without(launch.argv, enforced))
    spelled = optimization_level(launch.argv, context.start)
    if spelled is not None and spelled.level == "0":
        behind = spelled.index + spelled.words
        launch = launch.with_argv((*launch.argv[: spelled.index], *launch.argv[behind:]))
    if read_execution(launch, context, has_graphs) == level:
        return launch
    for entry in (_MODE, _OLD_MODE):
        written = read_level(entry, launch, context)
        if MODES.get(written.upper(), written) == "0":
            launch = write_level(entry, launch, _DEFAULT, context)
    off = graph_mode_of(launch, context) == "NONE"
    if level == COMPILED and has_graphs and not off:
        launch = write_level(_GRAPH_MODE, launch, "NONE", context)
    elif level == GRAPHS and off:
        launch = write_level(_GRAPH_MODE, launch, _DEFAULT, context)
    return launch


def effective_execution(said: Mapping[str, str]) -> str | None:
    """How the engine says that it runs the model (facts `compilation` and `graphs`); None if it doesn't."""
    compilation, graphs = said.get("compilation"), said.get("graphs")
    if compilation is None or graphs is None:
        return None
    if graphs != "NONE":
        return GRAPHS
    return EAGER if compilation == "NONE" else COMPILED
