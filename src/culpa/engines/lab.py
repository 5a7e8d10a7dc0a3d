"""The reference engine, `culpa-lab serve`: vLLM's flags and log lines at the size of a laptop."""

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from culpa.engines.arguments import mentions
from culpa.engines.base import CatalogueAdapter, Prepared, Reading
from culpa.engines.catalogue import Catalogue
from culpa.engines.command import Program, check_programs, find_program, with_sibling
from culpa.engines.errors import BadLaunch
from culpa.engines.tables import FactorTable
from culpa.engines.vllm_model import read_model
from culpa.layout.stages import aligned_partition, default_partition
from culpa.model import Launch

if TYPE_CHECKING:
    from culpa.engines.vllm_layout import LayoutInput
    from culpa.host import Machine

PROGRAMS = frozenset({"culpa-lab"})
MODULES = frozenset({"culpa_lab"})
KERNEL_LOG = "kernel.log"
# The level of what a launch does not mention and the engine chooses.
_UNSET = "default"


class LabAdapter(CatalogueAdapter):
    """The engine that comes with culpa. Its devices are of its own making, and so is their kernel log."""

    def __init__(self, catalogue: Catalogue, surrounding: Mapping[str, str] | None = None) -> None:
        super().__init__(catalogue, surrounding)
        self._whole = catalogue
        self._unset: frozenset[str] = frozenset()

    def recognises(self, launch: Launch) -> bool:
        """`culpa-lab serve` under any path, or `python -m culpa_lab serve`."""
        return self._program(launch) is not None

    def start_of_arguments(self, launch: Launch) -> int:
        """Behind `serve`."""
        program = self._program(launch)
        return program.arguments if program is not None else len(launch.argv)

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """Factors of this launch. Raises BadLaunch for a program or model folder that is not there."""
        launch = with_sibling(launch, self._program(launch), self.surrounding)
        check_programs(launch, self._program(launch), self.surrounding)
        self.use(self._fitted(launch))
        return super().read(launch, machine)

    def unmet(self, factor: FactorTable) -> str | None:
        """What is not set is left alone where the engine chooses it."""
        return "not set: the engine chooses it" if factor.name in self._unset else None

    def prepare(self, launch: Launch, port: int, scratch: Path) -> Prepared:
        """On 127.0.0.1:port, with the messages of its devices in a file of the run."""
        engine = self.catalogue.engine
        launch = with_sibling(launch, self._program(launch), self.surrounding)
        launch = self.on_port(launch, str(port))
        for switch in engine.instrumentation:
            launch = self.with_switch(launch, switch)
        log = str(self.kernel_log(scratch))
        words = list(launch.argv)
        start = self.start_of_arguments(launch)
        for mention in reversed(mentions(launch.argv, start, self.grammar, valued=["--kernel-log"])):
            del words[mention.index : mention.index + (1 if mention.glued else 2)]
        return Prepared(
            launch.with_argv((*words, "--kernel-log", log)), f"http://127.0.0.1:{port}", engine.health
        )

    def kernel_log(self, scratch: Path) -> Path:
        """The file to which the engine's devices write their Xids, all trials of a run into the same."""
        return scratch.resolve() / KERNEL_LOG

    def wanted_port(self, launch: Launch) -> int | None:
        """The port of `--port`."""
        found = mentions(launch.argv, self.start_of_arguments(launch), self.grammar, valued=["--port"])
        value = found[-1].value if found else None
        return int(value) if value is not None and re.fullmatch(r"\d{1,5}", value) else None

    def layout_input(self, launch: Launch) -> "LayoutInput | None":
        """The same planner as vLLM's: flags and checkpoints are its own."""
        from culpa.engines.vllm_layout import flag_settings, model_input

        folder = self._model_folder(launch)
        if folder is None:
            return None
        environment = launch.environment(self.surrounding)
        settings = flag_settings(launch.argv[self.start_of_arguments(launch) :], environment)
        return model_input(str(folder), settings, launch.cwd, environment)

    # --- helpers -------------------------------------------------------------------------------------------

    def _program(self, launch: Launch) -> Program | None:
        program = find_program(launch.argv, PROGRAMS, MODULES)
        if program is None or program.arguments >= len(launch.argv):
            return None
        if launch.argv[program.arguments] != "serve":
            return None
        return Program(program.name, program.index, program.arguments + 1, program.module)

    def _fitted(self, launch: Launch) -> Catalogue:
        """The catalogue with partitions that fit the model, and without what is not set."""
        self.use(self._whole)
        levels = self.levels(launch)
        start = self.start_of_arguments(launch)
        named = bool(mentions(launch.argv, start, self.grammar, valued=["--build"]))
        self._unset = frozenset(
            entry.name
            for entry in self._whole.factors
            if (
                entry.safe == (_UNSET,)
                and levels[entry.name] == _UNSET
                and entry.name != "pipeline_partition"
            )
            # Whoever names no build has not said that an older one was good.
            or (entry.name == "engine_build" and levels[entry.name] == entry.unmentioned and not named)
        )
        fitted = [self._fit(entry, levels, launch) for entry in self._whole.factors]
        return replace(self._whole, factors=tuple(fitted))

    def _fit(self, entry: FactorTable, levels: Mapping[str, str], launch: Launch) -> FactorTable:
        if entry.name == "pipeline_partition":
            return self._fit_partition(entry, levels, launch)
        if entry.name == "max_num_seqs" and levels[entry.name] == "1":
            return entry.model_copy(update={"safe": (entry.unmentioned,)})
        return entry

    def _fit_partition(self, entry: FactorTable, levels: Mapping[str, str], launch: Launch) -> FactorTable:
        now, size = levels[entry.name], levels["pipeline_parallel_size"]
        stages = int(size) if size.isdigit() else 1
        facts = read_model(self._model_folder(launch))
        split = [int(part) for part in now.split(",")] if now.replace(",", "").isdigit() else []
        if not split and facts.layers is not None and stages > 1:
            split = list(default_partition(facts.layers, stages))
        safe = [_UNSET]
        if facts.period is not None and stages > 1 and len(split) == stages:
            aligned = aligned_partition(split, facts.period)
            if aligned is not None and list(aligned) != split:
                safe.append(",".join(map(str, aligned)))
        requires = (f"pipeline_parallel_size == {stages}",) if stages > 1 else entry.requires
        return entry.model_copy(update={"safe": tuple(safe), "requires": requires})

    def _model_folder(self, launch: Launch) -> Path | None:
        """The folder that the launch names, or the one that ships with the engine. Raises BadLaunch."""
        start = self.start_of_arguments(launch)
        named = mentions(launch.argv, start, self.grammar, valued=["--model"])
        model = named[-1].value if named else None
        if model is None and start < len(launch.argv) and not launch.argv[start].startswith("-"):
            model = launch.argv[start]
        if model is not None:
            folder = Path(launch.cwd or ".") / Path(model).expanduser()
            if not folder.is_dir():
                raise BadLaunch(f"model folder {model} does not exist")
            return folder
        package = find_spec("culpa_lab")
        places = package.submodule_search_locations if package is not None else None
        return Path(places[0]) / "checkpoint" if places else None
