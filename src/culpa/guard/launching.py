"""Puts the guard into a launch: by environment variables and a folder of the run, without a trace in the engine's own
installation."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from culpa.engines import EngineAdapter
from culpa.model import Launch

PACKAGE = "culpa_guard"
MODE_VARIABLE = "CULPA_GUARD"
OUT_VARIABLE = "CULPA_GUARD_OUT"
PLANT_VARIABLE = "CULPA_GUARD_PLANT"
PAGES_VARIABLE = "CULPA_GUARD_PAGES"
PATH_VARIABLE = "PYTHONPATH"
# vLLM loads all plugins that it finds unless this names some: then the guard has to be among them.
PLUGINS_VARIABLE = "VLLM_PLUGINS"
MODES = "log, raise, or sample:N"
FOLDER = "guard"
PLUGIN_FOLDER = "guard-plugin"
_SAMPLE = re.compile(r"sample:[1-9][0-9]{0,8}")
# Adapters whose engines the guard knows.
_ENGINES = {"vllm": "vLLM", "culpa-lab": "culpa-lab"}


class BadGuard(ValueError):
    """The guard can't be had like this; the message is one line for the user."""


def check_mode(text: str) -> str:
    """The mode as the guard takes it. Raises BadGuard."""
    if text in ("log", "raise") or _SAMPLE.fullmatch(text):
        return text
    raise BadGuard(f"--mode {text}: there are {MODES} (every Nth step)")


def why_unguarded(adapter: EngineAdapter) -> str:
    """Why an engine can't have the guard, in a line; empty if it can."""
    if adapter.name not in _ENGINES:
        known = " and ".join(_ENGINES.values())
        return f"{adapter.name} has no guard: there is one for {known}"
    if find_spec(PACKAGE) is None:
        return f"the guard ({PACKAGE}) is not installed beside culpa"
    return ""


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard for launches of one run. `plugin` is a folder that `write` has filled, `pages` how many pages are
    looked into at each step, `planted` a fault to plant."""

    plugin: Path
    mode: str = "log"
    pages: int = 1
    planted: str = ""

    @classmethod
    def write(cls, folder: Path, mode: str = "log", pages: int = 1, planted: str = "") -> "Guard":
        """Write the plugin below a folder of the run. Raises BadGuard where that can't be done."""
        from culpa_guard.install import write_plugin

        plugin = folder.resolve() / PLUGIN_FOLDER
        try:
            plugin.mkdir(parents=True, exist_ok=True)
            write_plugin(plugin)
        except OSError as error:
            raise BadGuard(f"the guard can't be written to {plugin}: {error.strerror or error}") from None
        return cls(plugin, mode, pages, planted)

    def into(self, launch: Launch, folder: Path, surrounding: Mapping[str, str] | None = None) -> Launch:
        """The launch with the guard in every process; what it sees goes to `out_folder(folder)`."""
        around = os.environ if surrounding is None else surrounding
        out = out_folder(folder)
        out.mkdir(parents=True, exist_ok=True)
        own = dict(launch.env)
        path = own[PATH_VARIABLE] if PATH_VARIABLE in own else around.get(PATH_VARIABLE)
        launch = launch.with_variable(PATH_VARIABLE, os.pathsep.join(filter(None, (str(self.plugin), path))))
        launch = launch.with_variable(MODE_VARIABLE, self.mode)
        launch = launch.with_variable(OUT_VARIABLE, str(out.resolve()))
        launch = launch.with_variable(PAGES_VARIABLE, str(self.pages))
        if self.planted or own.get(PLANT_VARIABLE, around.get(PLANT_VARIABLE)) is not None:
            launch = launch.with_variable(PLANT_VARIABLE, self.planted or None)
        chosen = own[PLUGINS_VARIABLE] if PLUGINS_VARIABLE in own else around.get(PLUGINS_VARIABLE)
        if chosen is not None and PACKAGE not in chosen.split(","):
            launch = launch.with_variable(PLUGINS_VARIABLE, ",".join(filter(None, (chosen, PACKAGE))))
        return launch


def out_folder(folder: Path) -> Path:
    """Where the guard writes in the folder of a trial."""
    return folder / FOLDER
