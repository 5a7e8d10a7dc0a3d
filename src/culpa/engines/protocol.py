"""What every engine adapter offers, as the experiment sees it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from culpa.engines.arguments import Grammar
from culpa.model import Configuration, Factor, Launch, LeftOut
from culpa.model.layout_finding import LayoutFinding

if TYPE_CHECKING:
    from culpa.engines.vllm_layout import LayoutInput
    from culpa.host import Machine
    from culpa.probes import Limits


@dataclass(frozen=True, slots=True)
class Reading:
    """What an adapter read out of a launch: factors to vary, known ones that can't be, and remarks.

    `layout` is what the model's configuration and the launch's settings say before anything is started.
    """

    factors: tuple[Factor, ...]
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    layout: tuple[LayoutFinding, ...] = ()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch made ready for one trial, and where its server will answer.

    `api_key` is set if the launch asks for one: requests then carry it as a bearer token.
    """

    launch: Launch
    base_url: str
    health_path: str
    api_key: str | None = None


class EngineAdapter(Protocol):
    """An engine as the experiment sees it. It keeps no state beyond what `read` learned of the machine."""

    @property
    def name(self) -> str:
        """The engine's name: `vllm`, `llama.cpp`, or what a factors file calls it."""

    @property
    def dialect(self) -> str:
        """The log dialect for triage: `vllm`, `llamacpp` or `generic`."""

    @property
    def usual_seconds(self) -> float:
        """A start and its probes on a usual machine, in seconds: for the rough time in a plan."""

    @property
    def token_counters(self) -> tuple[str, ...]:
        """Counters of `/metrics` that grow while the engine works on a request."""

    def recognises(self, launch: Launch) -> bool:
        """Whether the launch starts this engine."""

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """Factors and their levels. Raises BadLaunch with one line if the launch can't start."""

    def apply(self, launch: Launch, levels: Configuration) -> Launch:
        """The user's launch with these levels; names that are no launch factors are ignored."""

    async def make_ready(self, levels: Configuration) -> None:
        """Make what these levels need beside a launch, such as another version. Raises BadLaunch."""

    def prepare(self, launch: Launch, port: int, scratch: Path) -> Prepared:
        """The launch on 127.0.0.1:port with harmless instrumentation; nothing that is tested changes."""

    def wanted_port(self, launch: Launch) -> int | None:
        """A port that the user's launch fixes."""

    def kernel_log(self, scratch: Path) -> Path | None:
        """A file to which the messages of the engine's devices go, where that is not this host's kernel log."""

    def effective(self, lines: Iterable[str], api: Mapping[str, object]) -> dict[str, str]:
        """What the engine says of itself: factor or fact name to level."""

    def api_paths(self) -> tuple[str, ...]:
        """What to GET after start-up for `effective` and `limits`."""

    def mismatches(self, levels: Configuration, effective: Mapping[str, str]) -> tuple[str, ...]:
        """A sentence for each level that the engine did not take."""

    def limits(self, api: Mapping[str, object], effective: Mapping[str, str]) -> "Limits":
        """Model name and sizes for the probes."""

    def can_run(self, levels: Configuration) -> str | None:
        """The reason why this combination can't run here, or None."""

    def layout_input(self, launch: Launch) -> "LayoutInput | None":
        """What the layout of the launch is computed from; None where the engine's layout is not known. Raises BadLaunch
        or BadLayout."""

    def canonical(self, name: str) -> str | None:
        """The name of a known factor, given its name or an alias."""

    @property
    def health_path(self) -> str:
        """What to GET to see whether the engine is ready."""

    @property
    def grammar(self) -> Grammar:
        """How the engine's command line is read."""

    def start_of_arguments(self, launch: Launch) -> int:
        """The index in argv of the engine's first own argument."""

    def levels(self, launch: Launch) -> dict[str, str]:
        """The level of every known factor in a launch."""

    def on_port(self, launch: Launch, port: str) -> Launch:
        """The launch on 127.0.0.1 and that port (a number, or a text that a shell replaces), else as it is."""

    def smaller_models(self, launch: Launch) -> tuple[tuple[str, Launch], ...]:
        """Launches of smaller models of the same kind, each with a few words, the smallest first."""
