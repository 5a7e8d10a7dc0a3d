"""The environment of an engine on this machine, read without starting anything."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from culpa.environment.engine import engine_facts, engine_name, package_facts, setting_facts, settings_of
from culpa.environment.interpreter import interpreter_of
from culpa.environment.levels import default_settings
from culpa.environment.machine import gpu_facts, image_fact, machine_facts
from culpa.environment.packages import Installed, installed
from culpa.environment.secrets import shown, shown_variable
from culpa.environment.tables import is_relevant
from culpa.host import Machine, read_machine
from culpa.model import Launch
from culpa.model.environment import Environment, Fact

_STARTED = "the engine chooses it when it starts: give its log with --from-log"


def read_environment(
    launch: Launch | None = None,
    *,
    python: Path | None = None,
    image: str | None = None,
    machine: Machine | None = None,
    surrounding: Mapping[str, str] | None = None,
) -> Environment:
    """Everything that can be read here of the engine that `launch` starts, or of the one that is installed.

    `python` is the interpreter to ask; by default that of the launch, or the first on PATH. Nothing raises: what
    can't be read is a fact with a reason. All texts are redacted.
    """
    around = dict(os.environ if surrounding is None else surrounding)
    machine = machine or read_machine()
    environment = launch.environment(around) if launch is not None else around
    if python is not None:
        found: Path | None = python
        how = "--python"
    else:
        found, how = interpreter_of(launch, around)
    packages = installed(found, environment) if found is not None else Installed("Python", reason=how)
    given = settings_of(launch, engine_name(launch)) if launch is not None else {}
    filled = default_settings(launch, machine) if launch is not None else {}
    defaults = {key: value for key, value in filled.items() if key not in given}
    settings = {**given, **defaults}
    facts = (
        *engine_facts(launch, packages, around),
        image_fact(image),
        *package_facts(packages, how),
        *gpu_facts(machine),
        *machine_facts(machine),
        *setting_facts(given, "the launch"),
        *setting_facts(defaults, "the engine's default"),
        *_variables(environment, launch),
        *((Fact("launch.command", shown(launch.command_line())),) if launch is not None else ()),
    )
    told = Environment(
        origin="this machine",
        facts=facts,
        settings=tuple(settings.items()),
        taken=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    missing = (Fact("backend.attention", None, reason=_STARTED), Fact("backend.gdn", None, reason=_STARTED))
    return Environment(told.origin, told.completed(missing), told.settings, told.taken)


def _variables(environment: Mapping[str, str], launch: Launch | None) -> Iterator[Fact]:
    """Variables that change what an engine does; the launch says which of them are its own."""
    own = dict(launch.env) if launch is not None else {}
    for name in sorted(environment):
        if is_relevant(name) or name in own:
            source = "the launch" if name in own else "surroundings"
            yield Fact(f"variable.{shown(name)}", shown_variable(name, environment[name]), source)
