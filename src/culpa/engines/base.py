"""The part of an engine adapter that follows from a catalogue alone."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from culpa.engines.arguments import Grammar, appended, mentions, with_value, without
from culpa.engines.catalogue import Catalogue
from culpa.engines.conditions import Condition
from culpa.engines.effective import differences, read_effective
from culpa.engines.places import Context, read_level, write_level
from culpa.engines.protocol import EngineAdapter as EngineAdapter
from culpa.engines.protocol import Prepared as Prepared
from culpa.engines.protocol import Reading as Reading
from culpa.engines.spelling import normalised
from culpa.engines.tables import Along, FactorTable, PortPlace
from culpa.model import Configuration, Factor, Launch, LeftOut

if TYPE_CHECKING:
    from culpa.engines.vllm_layout import LayoutInput
    from culpa.host import Machine
    from culpa.probes import Limits


class CatalogueAdapter:
    """An adapter whose factors come from a catalogue. An engine adds how it is recognised and prepared.

    `surrounding` is the environment in which launches will run; a variable that a launch does not mention is
    inherited from it. Subclasses may refine `level_of`, `put` and `impossible` for what a table can't say.
    """

    def __init__(self, catalogue: Catalogue, surrounding: Mapping[str, str] | None = None) -> None:
        self.surrounding: Mapping[str, str] = dict(os.environ if surrounding is None else surrounding)
        self.use(catalogue)

    def use(self, catalogue: Catalogue) -> None:
        """Work with this catalogue from now on: an engine fits its own to a launch once that is read."""
        self.catalogue = catalogue
        self._conditions = {
            factor.name: [Condition.parse(text) for text in factor.requires] for factor in catalogue.factors
        }
        self._conflicts = [
            ([Condition.parse(text) for text in conflict.when], conflict.reason)
            for conflict in catalogue.conflicts
        ]
        engine = catalogue.engine
        flags = {flag for factor in catalogue.factors for flag in _valued_flags(factor)}
        self._grammar = Grammar(engine.equals, engine.underscores, frozenset({*engine.valued, *flags}))

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.catalogue.engine.name

    @property
    def dialect(self) -> str:
        """The log dialect for triage."""
        return self.catalogue.engine.dialect

    @property
    def usual_seconds(self) -> float:
        """A start and its probes on a usual machine, in seconds."""
        return self.catalogue.engine.usual_seconds

    @property
    def token_counters(self) -> tuple[str, ...]:
        """Counters of `/metrics` that grow while the engine works on a request."""
        return self.catalogue.engine.token_counters

    @property
    def health_path(self) -> str:
        """What to GET to see whether the engine is ready."""
        return self.catalogue.engine.health

    @property
    def grammar(self) -> Grammar:
        """How the engine's command line is read."""
        return self._grammar

    # --- for subclasses to say -----------------------------------------------------------------------------

    def start_of_arguments(self, launch: Launch) -> int:
        """The index in argv of the engine's first own argument: what stands before is never edited."""
        raise NotImplementedError

    def impossible(self, factor: FactorTable, level: str, launch: Launch, machine: "Machine") -> str | None:
        """The reason why a safe level can't run on this machine, or None."""
        return None

    def unmet(self, factor: FactorTable) -> str | None:
        """The reason why a fact that the factor `needs` does not hold for the launch that was read."""
        return None

    def kernel_log(self, scratch: Path) -> Path | None:
        """The host's own kernel log: None."""
        return None

    def layout_input(self, launch: Launch) -> "LayoutInput | None":
        """None: the layout of this engine is not known."""
        return None

    def on_port(self, launch: Launch, port: str) -> Launch:
        """The launch with port and host where the engine's table says that they go."""
        engine = self.catalogue.engine
        if engine.port is not None:
            launch = self.set_place(engine.port, launch, port)
        return self.set_place(engine.host, launch, "127.0.0.1") if engine.host is not None else launch

    def smaller_models(self, launch: Launch) -> tuple[tuple[str, Launch], ...]:
        """None that is known of."""
        return ()

    def level_of(self, factor: FactorTable, launch: Launch) -> str:
        """The level that the launch gives to a factor."""
        return read_level(factor, launch, self.context(launch))

    def put(self, factor: FactorTable, launch: Launch, level: str) -> Launch:
        """The launch with a factor at a level."""
        return write_level(factor, launch, level, self.context(launch))

    # --- from the catalogue --------------------------------------------------------------------------------

    def context(self, launch: Launch) -> Context:
        """What reading and writing levels need to know of this launch."""
        return Context(self.start_of_arguments(launch), self.grammar, self.surrounding)

    def levels(self, launch: Launch) -> dict[str, str]:
        """The level of every factor of the catalogue in this launch."""
        return {factor.name: self.level_of(factor, launch) for factor in self.catalogue.factors}

    def canonical(self, name: str) -> str | None:
        """The name of a known factor, given its name or an alias."""
        factor = self.catalogue.factor(name)
        return factor.name if factor is not None else None

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """Factors and their levels, in the catalogue's order."""
        levels = self.levels(launch)
        factors: list[Factor] = []
        left_out: list[LeftOut] = []
        notes: list[str] = []
        for entry in self.catalogue.factors:
            if entry.never is not None and levels[entry.name] == entry.unmentioned:
                continue
            reason = self._left_out(entry, levels, machine)
            safe: list[str] = []
            impossible: list[str] = []
            for level in dict.fromkeys(normalised(entry, level) for level in entry.safe):
                if reason is None and level != levels[entry.name]:
                    problem = self.impossible(entry, level, launch, machine)
                    if problem is None:
                        safe.append(level)
                    else:
                        impossible.append(f"level {level} can't run here: {problem}")
            if reason is None and not safe:
                already = f"already at its safe level {levels[entry.name]}"
                reason = "; ".join(impossible) if impossible else already
            if reason is not None:
                left_out.append(LeftOut(entry.name, reason))
                continue
            notes.extend(f"{entry.name}: {text}" for text in impossible)
            factors.append(_factor(entry, levels[entry.name], tuple(safe)))
        notes.extend(self._inherited(launch))
        return Reading(tuple(factors), tuple(left_out), tuple(notes))

    def apply(self, launch: Launch, levels: Configuration) -> Launch:
        """The launch with these levels; a level that the launch has already leaves its words as they are."""
        changed: list[FactorTable] = []
        for entry in self.catalogue.factors:
            level = levels.as_dict().get(entry.name)
            if level is None or not self.in_force(entry, levels):
                continue
            if self.level_of(entry, launch) != level:
                launch = self.put(entry, launch, level)
                changed.append(entry)
        for entry in changed:
            for along in entry.along:
                if along.levels is None or levels[entry.name] in along.levels:
                    launch = self._take_along(along, launch)
        return launch

    async def make_ready(self, levels: Configuration) -> None:
        """Nothing is needed: levels are words and variables of the launch."""

    def effective(self, lines: Iterable[str], api: Mapping[str, object]) -> dict[str, str]:
        """What the engine says of itself: factor or fact name to level."""
        return read_effective(self.catalogue.factors, self.catalogue.facts, lines, api)

    def api_paths(self) -> tuple[str, ...]:
        """What to GET after start-up."""
        return self.catalogue.engine.api

    def mismatches(self, levels: Configuration, effective: Mapping[str, str]) -> tuple[str, ...]:
        """A sentence for each level that the engine did not take."""
        entries = [entry for entry in self.catalogue.factors if self.in_force(entry, levels)]
        return differences(entries, levels.as_dict(), effective)

    def in_force(self, factor: FactorTable, levels: Configuration) -> bool:
        """Whether a factor means anything at these levels: none of them contradicts what it `requires`."""
        known = levels.as_dict()
        return all(
            condition.name not in known or condition.holds(known)
            for condition in self._conditions[factor.name]
        )

    def can_run(self, levels: Configuration) -> str | None:
        """The reason of the first `[[conflict]]` whose conditions all hold, or None."""
        known = levels.as_dict()
        for conditions, reason in self._conflicts:
            if all(condition.holds(known) for condition in conditions):
                return reason
        return None

    def limits(self, api: Mapping[str, object], effective: Mapping[str, str]) -> "Limits":
        """Model and sizes: the facts `context_tokens`, `batch_tokens`, `parallel`, and `/v1/models`."""
        from culpa.probes import Limits

        model, length = _first_model(api.get("/v1/models"))
        return Limits(
            model=model,
            context_tokens=_integer(effective.get("context_tokens")) or length,
            batch_tokens=_integer(effective.get("batch_tokens")),
            parallel=_integer(effective.get("parallel")),
        )

    def set_place(self, place: PortPlace, launch: Launch, value: str) -> Launch:
        """The launch with its port or host set by flag or variable; with several mentions, in all of them."""
        if place.env is not None:
            return launch.with_variable(place.env, value)
        assert place.flag is not None
        context = self.context(launch)
        found = mentions(launch.argv, context.start, self.grammar, valued=[place.flag])
        if not found:
            return launch.with_argv(appended(launch.argv, context.start, (place.flag, value)))
        for mention in reversed(found):
            launch = launch.with_argv(with_value(launch.argv, mention, value))
        return launch

    def with_switch(self, launch: Launch, switch: str) -> Launch:
        """The launch with a switch added, unless it has it."""
        context = self.context(launch)
        if mentions(launch.argv, context.start, self.grammar, switches=[switch]):
            return launch
        return launch.with_argv(appended(launch.argv, context.start, (switch,)))

    # --- helpers -------------------------------------------------------------------------------------------

    def _left_out(self, entry: FactorTable, levels: Mapping[str, str], machine: "Machine") -> str | None:
        if entry.never is not None:
            return entry.never
        if len(machine.gpus) < entry.gpus:
            have = f"{len(machine.gpus)}" if machine.gpus else "none"
            return f"needs {entry.gpus} GPU{'s' if entry.gpus > 1 else ''}, this machine has {have}"
        unmet = self.unmet(entry)
        if unmet is not None:
            return unmet
        for condition in self._conditions[entry.name]:
            if not condition.holds(levels):
                now = levels.get(condition.name, "unknown")
                return f"makes sense only with {condition} (here {condition.name} is {now})"
        return None

    def _take_along(self, along: Along, launch: Launch) -> Launch:
        context = self.context(launch)
        gone = mentions(launch.argv, context.start, self.grammar, along.flags, along.switches)
        launch = launch.with_argv(without(launch.argv, gone))
        for name in along.unset:
            if context.variable(launch, name) is not None:
                launch = context.unset(launch, name)
        return launch

    def _inherited(self, launch: Launch) -> list[str]:
        names = {factor.env for factor in self.catalogue.factors if factor.env is not None}
        own = dict(launch.env)
        return [
            f"{name}={self.surrounding[name]} comes from the surrounding environment, not from the command"
            for name in sorted(names)
            if name in self.surrounding and name not in own
        ]


def _valued_flags(factor: FactorTable) -> tuple[str, ...]:
    if factor.flag is not None and factor.bare is None:
        return (factor.flag, *factor.flag_aliases)
    if factor.json_place is not None:
        return (factor.json_place.flag, *factor.json_place.flag_aliases)
    return ()


def _factor(entry: FactorTable, suspect: str, safe: tuple[str, ...]) -> Factor:
    factor = Factor(
        name=entry.name,
        suspect=suspect,
        safe=safe,
        prior=entry.prior,
        instrument=entry.instrument,
        minimum=entry.minimum,
        meaning=entry.meaning,
        decimals=entry.decimals,
        order=entry.order if {suspect, *safe} <= set(entry.order) else (),
        maximum=entry.maximum,
    )
    return replace(factor, numeric=entry.numeric and _counted(factor, suspect) and _counted(factor, safe[0]))


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


def _counted(factor: Factor, level: str) -> bool:
    try:
        factor.steps(level)
    except ValueError:
        return False
    return True


def _first_model(answer: object) -> tuple[str, int | None]:
    """The first model's id and, where the engine tells it, its longest sequence in tokens."""
    data = answer.get("data") if isinstance(answer, dict) else None
    first = data[0] if isinstance(data, list) and data else None
    if not isinstance(first, dict):
        return "", None
    length = first.get("max_model_len")
    return str(first.get("id", "")), length if isinstance(length, int) else None
