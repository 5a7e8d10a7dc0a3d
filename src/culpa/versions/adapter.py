"""An engine with its version as one more factor: every trial that names another version is launched in its place."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from culpa.engines.arguments import Grammar
from culpa.engines.errors import BadLaunch
from culpa.engines.protocol import EngineAdapter, Prepared, Reading
from culpa.model import Configuration, Factor, Launch, LeftOut
from culpa.model.bisection import ENGINE_VERSION
from culpa.versions.order import is_of_engine, parsed, same_version
from culpa.versions.provider import Provider, Tell

if TYPE_CHECKING:
    from culpa.engines.vllm_layout import LayoutInput
    from culpa.host import Machine
    from culpa.probes import Limits

# What an engine may say of its version; the reference engine counts builds beside it.
_SAID = ("engine_version", "engine_build")
# That a version is one that fails is known before the first trial: it is likelier than most to matter.
PRIOR = 0.3
_LEAST_DIGITS = 7  # of a commit, to be found in what an engine says of itself

Find = Callable[[Launch], EngineAdapter]


class VersionedAdapter:
    """An adapter with the factor `engine_version`: `suspect` is the version of the launch, `safe` the others.

    `find` gives the adapter of a launch. A version needs to be made ready before it is read or launched.
    """

    def __init__(
        self, find: Find, launch: Launch, provider: Provider, suspect: str, safe: tuple[str, ...]
    ) -> None:
        self._find = find
        self._launch = launch
        self._provider = provider
        self._suspect = suspect
        self._safe = safe
        self._machine: Machine | None = None
        self._adapters: dict[str, EngineAdapter] = {}
        self._labels: dict[Launch, str] = {}
        self._levels: Configuration = Configuration(())
        self._base = find(provider.redirect(launch, suspect))
        # The version of a dependency is looked at in the environment: the engine does not speak of it.
        own = [package for package in provider.packages if is_of_engine(package, self._base.name)]
        self.names_itself = bool(own) or not provider.packages
        self.tell: Tell = lambda _text: None

    @property
    def name(self) -> str:
        """The engine's name."""
        return self._base.name

    @property
    def dialect(self) -> str:
        """The log dialect for triage."""
        return self._base.dialect

    @property
    def usual_seconds(self) -> float:
        """A start and its probes on a usual machine, in seconds."""
        return self._base.usual_seconds

    @property
    def token_counters(self) -> tuple[str, ...]:
        """Counters of `/metrics` that grow while the engine works on a request."""
        return self._base.token_counters

    def recognises(self, launch: Launch) -> bool:
        """Whether the launch starts this engine."""
        return self._base.recognises(launch)

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """Factors of the launch at the suspect version, and the version itself. Raises BadLaunch."""
        self._machine = machine
        reading = self._adapter(self._suspect).read(self._provider.redirect(launch, self._suspect), machine)
        if self._provider.carries_settings:
            reading = self._without_carried(launch, reading, machine)
        self._levels = Configuration.of({factor.name: factor.suspect for factor in reading.factors})
        if not self._safe:
            return reading
        version = Factor(
            ENGINE_VERSION,
            self._suspect,
            self._safe,
            prior=PRIOR,
            meaning="The fault came into the engine with a version.",
        )
        return replace(reading, factors=(version, *reading.factors))

    def apply(self, launch: Launch, levels: Configuration) -> Launch:
        """The launch of the version in `levels`, with the other levels that are not the launch's own.

        What the launch has already stays unsaid, so that another version brings its own defaults. Raises BadLaunch.
        """
        label = levels.get(ENGINE_VERSION, self._suspect)
        others = {
            name: level
            for name, level in levels.as_dict().items()
            if name != ENGINE_VERSION and level != self._levels.get(name, "")
        }
        applied = self._provider.redirect(launch, label)
        if others:
            applied = self._adapter(label).apply(applied, Configuration.of(others))
        self._labels[applied] = label
        return applied

    def prepare(self, launch: Launch, port: int, scratch: Path) -> Prepared:
        """The launch on 127.0.0.1:port, as its own version takes it."""
        label = self._labels.get(launch, self._suspect)
        return self._adapter(label).prepare(launch, port, scratch)

    async def make_ready(self, levels: Configuration) -> None:
        """Make the version of these levels ready. Raises CannotPrepare."""
        await self._provider.make_ready(levels.get(ENGINE_VERSION, self._suspect), self.tell)

    def is_ready(self, label: str) -> bool:
        """Whether a trial of this version needs no preparation."""
        return self._provider.is_ready(label)

    def wanted_port(self, launch: Launch) -> int | None:
        """A port that the user's launch fixes."""
        return self._base.wanted_port(self._provider.redirect(launch, self._suspect))

    def layout_input(self, launch: Launch) -> "LayoutInput | None":
        """What the layout of the launch follows from, at the suspect version. Raises BadLaunch or BadLayout."""
        return self._base.layout_input(self._provider.redirect(launch, self._suspect))

    @property
    def health_path(self) -> str:
        """Where the engine answers that it is up."""
        return self._base.health_path

    @property
    def grammar(self) -> Grammar:
        """How the engine's command line is written."""
        return self._base.grammar

    def start_of_arguments(self, launch: Launch) -> int:
        """The index in argv of the engine's first own argument."""
        return self._base.start_of_arguments(launch)

    def levels(self, launch: Launch) -> dict[str, str]:
        """The level of every factor of the catalogue in this launch."""
        return self._base.levels(launch)

    def on_port(self, launch: Launch, port: str) -> Launch:
        """The launch on another port."""
        return self._base.on_port(launch, port)

    def smaller_models(self, launch: Launch) -> tuple[tuple[str, Launch], ...]:
        """Launches of smaller models, where the engine knows some."""
        return self._base.smaller_models(launch)

    def kernel_log(self, scratch: Path) -> Path | None:
        """A file to which the messages of the engine's devices go."""
        return self._base.kernel_log(scratch)

    def effective(self, lines: Iterable[str], api: Mapping[str, object]) -> dict[str, str]:
        """What the engine says of itself."""
        return self._base.effective(lines, api)

    def api_paths(self) -> tuple[str, ...]:
        """What to GET after start-up."""
        return self._base.api_paths()

    def mismatches(self, levels: Configuration, effective: Mapping[str, str]) -> tuple[str, ...]:
        """A sentence where another version ran than was asked for, and for each other level not taken."""
        wrong: tuple[str, ...] = ()
        if ENGINE_VERSION in levels:
            said = other_version(levels[ENGINE_VERSION], effective) if self.names_itself else None
            if said is not None:
                wrong = (f"{ENGINE_VERSION} was to be {levels[ENGINE_VERSION]}, but the engine says {said}",)
        return (*wrong, *self._base.mismatches(_without_version(levels), effective))

    def limits(self, api: Mapping[str, object], effective: Mapping[str, str]) -> "Limits":
        """Model name and sizes for the probes."""
        return self._base.limits(api, effective)

    def can_run(self, levels: Configuration) -> str | None:
        """The reason why this combination can't run here, or None."""
        return self._base.can_run(_without_version(levels))

    def canonical(self, name: str) -> str | None:
        """The name of a known factor, given its name or an alias."""
        return name if name == ENGINE_VERSION else self._base.canonical(name)

    # -- helpers -------------------------------------------------------------------------------------------

    def _adapter(self, label: str) -> EngineAdapter:
        """The adapter that has read the launch of this version."""
        if label == self._suspect:
            return self._base
        if label not in self._adapters:
            launch = self._provider.redirect(self._launch, label)
            adapter = self._find(launch)
            if self._machine is not None:
                adapter.read(launch, self._machine)
            self._adapters[label] = adapter
        return self._adapters[label]

    def _without_carried(self, launch: Launch, reading: Reading, machine: "Machine") -> Reading:
        """Leave out what differs between the versions only because the version stands in the launch's words."""
        if not self._safe:
            return reading
        other = self._provider.redirect(launch, self._safe[0])
        try:
            there = {factor.name: factor.suspect for factor in self._find(other).read(other, machine).factors}
        except BadLaunch:
            return reading
        carried = [factor.name for factor in reading.factors if there.get(factor.name) != factor.suspect]
        return replace(
            reading,
            factors=tuple(factor for factor in reading.factors if factor.name not in carried),
            left_out=(
                *reading.left_out,
                *(LeftOut(name, "it is what the version stands for in this launch") for name in carried),
            ),
        )


def other_version(label: str, effective: Mapping[str, str]) -> str | None:
    """What the engine says of its version where that is another than `label`; None where it agrees or can't be
    compared: a date, a name, a commit of which the engine says nothing.
    """
    said = [effective[name] for name in _SAID if effective.get(name)]
    if any(same_version(one, label) for one in said):
        return None
    if parsed(label) is None:
        named = [one for one in said if "+g" in one]  # a build of a commit says so
        digits = label.lower().lstrip("g")
        if not named or len(digits) < _LEAST_DIGITS:
            return None
        if any(_names_commit(one, digits) for one in named):
            return None
    elif all(parsed(one) is None for one in said):
        return None
    return said[0]


def _names_commit(version: str, digits: str) -> bool:
    commit = version.rpartition("+g")[2].split(".")[0].lower()
    return digits.startswith(commit) or commit.startswith(digits)


def _without_version(levels: Configuration) -> Configuration:
    return Configuration.of({name: levels[name] for name in levels if name != ENGINE_VERSION})
