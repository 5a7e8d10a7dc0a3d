"""The adapter for vLLM's OpenAI-compatible server."""

import contextlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from culpa.engines.arguments import appended, mentions
from culpa.engines.base import CatalogueAdapter, Prepared, Reading
from culpa.engines.catalogue import Catalogue
from culpa.engines.command import check_programs
from culpa.engines.errors import BadLaunch
from culpa.engines.simple_yaml import NotSimple
from culpa.engines.tables import FactorTable
from culpa.engines.vllm_command import (
    config_file_keys,
    find_model,
    find_server,
    optimization_level,
    with_config_file,
)
from culpa.engines.vllm_execution import (
    effective_execution,
    graph_mode_of,
    mode_of,
    read_execution,
    write_execution,
)
from culpa.engines.vllm_findings import layout_findings, measured_input, weighed
from culpa.engines.vllm_install import Installation, find_installation
from culpa.engines.vllm_layout import LayoutInput
from culpa.engines.vllm_machine import cpu_flags, memory_share, visible_gpus
from culpa.engines.vllm_model import ModelFacts, find_model_folder, is_hub_name, read_model
from culpa.engines.vllm_setting import Setting
from culpa.engines.vllm_smaller import PARTITION, smaller_options
from culpa.engines.vllm_tailor import tailored
from culpa.model import Configuration, Launch

if TYPE_CHECKING:
    from culpa.host import Machine
    from culpa.probes import Limits

# One meaning, several spellings.
_SAME = {
    "dtype": {"half": "float16", "float": "float32"},
    "kv_cache_dtype": {"fp8_e4m3": "fp8"},
}
# A value that depends on the number of ranks unless it is given: an arm that changes their number keeps it.
_PINNED = {"max_num_batched_tokens": "default_batch_tokens", "max_num_seqs": "default_seqs"}
# What everybody runs is less often at fault than what somebody has set.
_PRIOR_OF_A_DEFAULT = 0.5
_SHARES = ("--gpu-memory-utilization", "--device-memory-utilization")
_PARALLEL_SIZES = ("pipeline_parallel_size", "tensor_parallel_size")


class VllmAdapter(CatalogueAdapter):
    """vLLM, started by `vllm serve` or as the Python module of its API server."""

    def __init__(self, catalogue: Catalogue, surrounding: Mapping[str, str] | None = None) -> None:
        super().__init__(catalogue, surrounding)
        self._whole = catalogue
        self._setting = Setting({}, Installation(), ModelFacts(), ())
        self._reasons: dict[str, str] = {}

    # --- reading a launch ----------------------------------------------------------------------------------

    def recognises(self, launch: Launch) -> bool:
        """Whether the launch starts vLLM's server."""
        return find_server(launch.argv) is not None

    def start_of_arguments(self, launch: Launch) -> int:
        """Behind `serve`, or behind the module's name."""
        program = find_server(launch.argv)
        return program.arguments if program is not None else len(launch.argv)

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """Factors, fitted to the release, the model and the machine. Raises BadLaunch."""
        check_programs(launch, find_server(launch.argv), self.surrounding)
        notes: list[str] = []
        hidden: frozenset[str] = frozenset()
        start = self.start_of_arguments(launch)
        try:
            launch = with_config_file(launch, start)
        except NotSimple as error:
            hidden = config_file_keys(launch, start)
            notes.append(f"{error}: not understood, so what the file sets is not varied")
        self._refuse(launch, start)
        self._fit(launch, machine, hidden)
        reading = super().read(launch, machine)
        layout, unknown = layout_findings(launch, self.surrounding, self._setting.gpus)
        notes += [unknown] if unknown else []
        return Reading(
            weighed(reading.factors, layout),
            reading.left_out,
            (*notes, *reading.notes, *self._remarks(reading)),
            layout,
        )

    def layout_input(self, launch: Launch) -> LayoutInput:
        """What `culpa layout` reads out of the launch, with the memory of this machine's GPUs."""
        return measured_input(launch, self.surrounding, self._setting.gpus)

    def level_of(self, factor: FactorTable, launch: Launch) -> str:
        """The level that the launch gives to a factor, in one spelling."""
        context = self.context(launch)
        if factor.name == "execution":
            return read_execution(launch, context, self._setting.has_graphs)
        if factor.name == "optimization_level":
            spelled = optimization_level(launch.argv, context.start)
            return spelled.level if spelled is not None else factor.unmentioned
        if factor.name == "cuda_graph_mode":
            return graph_mode_of(launch, context)
        if factor.name == "compilation_level":
            mode = mode_of(launch, context)
            return factor.unmentioned if mode == "default" else mode
        level = super().level_of(factor, launch)
        return _SAME.get(factor.name, {}).get(level, level)

    def unmet(self, factor: FactorTable) -> str | None:
        """The reason why a factor is not varied in the launch that was read, or None."""
        for need in factor.needs:
            reason = self._setting.missing(need)
            if reason is not None:
                return reason
        return self._reasons.get(factor.name)

    def impossible(self, factor: FactorTable, level: str, launch: Launch, machine: "Machine") -> str | None:
        """The reason why a safe level can't run on these GPUs, or None."""
        if factor.name == "cpu_kv_cache_space" and self._share_of_memory(launch) is None:
            return "too little memory is free for the engine to measure how much its cache may take"
        if factor.name not in (*_PARALLEL_SIZES, "pipeline_partition"):
            return None
        changed = {factor.name: level}
        if factor.name == "pipeline_parallel_size":
            changed["pipeline_partition"] = "default"
        return self._setting.does_not_fit({**self._setting.levels, **changed})

    # --- changing it ---------------------------------------------------------------------------------------

    def put(self, factor: FactorTable, launch: Launch, level: str) -> Launch:
        """The launch with a factor at a level."""
        context = self.context(launch)
        if factor.name == "execution":
            return write_execution(launch, level, context, self._setting.has_graphs)
        if factor.name == "optimization_level":
            spelled = optimization_level(launch.argv, context.start)
            if spelled is not None:
                behind = launch.argv[spelled.index + spelled.words :]
                words = () if level == factor.default else ("--optimization-level", level)
                return launch.with_argv((*launch.argv[: spelled.index], *words, *behind))
        if factor.name == "compilation_level":
            return super().put(factor.model_copy(update={"numeric": True}), launch, level)  # 0, not "0"
        return super().put(factor, launch, level)

    def apply(self, launch: Launch, levels: Configuration) -> Launch:
        """The launch with these levels. If anything changes, a `--config` file is written out as flags."""
        try:
            wide = with_config_file(launch, self.start_of_arguments(launch))
        except NotSimple:
            wide = launch
        changed = super().apply(wide, levels)
        if changed == wide:
            return launch
        changed = self._with_runner_alone(self._with_pins(changed, levels), levels)
        return self._with_share_of_memory(changed, levels)

    def prepare(self, launch: Launch, port: int, scratch: Path) -> Prepared:
        """The launch on 127.0.0.1:port, its compile cache in the scratch folder, without usage statistics."""
        engine = self.catalogue.engine
        launch = self.on_port(launch, str(port))
        for switch in engine.instrumentation:
            if self._setting.installation.has(switch):
                launch = self.with_switch(launch, switch)
        launch = self._with_known_caches(launch, scratch)
        keys = self._flag_values(launch, "--api-key")
        key = keys[-1] if keys else self.context(launch).variable(launch, "VLLM_API_KEY")
        return Prepared(launch, f"http://127.0.0.1:{port}", engine.health, key)

    def smaller_models(self, launch: Launch) -> tuple[tuple[str, Launch], ...]:
        """Fewer layers and random weights."""
        start, stages = (
            self.start_of_arguments(launch),
            self.levels(launch).get("pipeline_parallel_size", "1"),
        )
        partitioned = self.context(launch).variable(launch, PARTITION) is not None
        options = smaller_options(self._setting.model, int(stages) if stages.isdigit() else 1, partitioned)
        return tuple((text, launch.with_argv(appended(launch.argv, start, words))) for text, words in options)

    def wanted_port(self, launch: Launch) -> int | None:
        """The port that the launch or its configuration file fixes."""
        # A port in a file that can't be read is overridden on the command line.
        with contextlib.suppress(NotSimple):
            launch = with_config_file(launch, self.start_of_arguments(launch))
        ports = self._flag_values(launch, "--port")
        return int(ports[-1]) if ports and re.fullmatch(r"\d{1,5}", ports[-1]) else None

    # --- what the engine says ------------------------------------------------------------------------------

    def effective(self, lines: Iterable[str], api: Mapping[str, object]) -> dict[str, str]:
        """What vLLM says of itself: factor or fact name to level."""
        said = super().effective(lines, api)
        execution = effective_execution(said)
        if execution is not None:
            said["execution"] = execution
        if "kv_cache_tokens" in said:
            said["kv_cache_tokens"] = said["kv_cache_tokens"].replace(",", "")
        for name, same in _SAME.items():
            if name in said:
                said[name] = same.get(said[name], said[name])
        return said

    def can_run(self, levels: Configuration) -> str | None:
        """The reason why this combination can't run here, or None."""
        known = {**self._setting.levels, **levels.as_dict()}
        conflict = super().can_run(Configuration.of(known))
        if conflict is not None:
            return conflict
        return self._setting.cannot_run(known)

    def limits(self, api: Mapping[str, object], effective: Mapping[str, str]) -> "Limits":
        """Sizes for the probes; where vLLM does not print one, its own default for this machine and the ranks."""
        own = {
            "batch_tokens": str(self._setting.default_batch_tokens(effective)),
            "parallel": str(self._setting.default_seqs(effective)),
        }
        return super().limits(api, {**own, **effective})

    # --- helpers -------------------------------------------------------------------------------------------

    def _fit(self, launch: Launch, machine: "Machine", hidden: frozenset[str]) -> None:
        """Learn what the launch meets, and fit the catalogue to it."""
        self.use(self._whole)
        context = self.context(launch)
        environment = launch.environment(self.surrounding)
        model = find_model(launch.argv, context.start, self.grammar)
        if model is None:
            raise BadLaunch("the launch names no model (vllm serve MODEL, or --model MODEL)")
        folder = find_model_folder(model, launch.cwd, environment)
        if folder is None and not is_hub_name(model):
            raise BadLaunch(f"model {model}: no such folder (and not a hub name such as Qwen/Qwen3-0.6B)")
        installation = find_installation(launch.argv[: context.start], environment)
        gpus = visible_gpus(machine.gpus, environment.get("CUDA_VISIBLE_DEVICES"))
        self._setting = Setting(
            levels={},
            installation=installation,
            model=read_model(folder),
            gpus=gpus,
            without_gpu=machine.without_gpu_reason or ""
            if not machine.gpus
            else "CUDA_VISIBLE_DEVICES hides them",
            cpu_flags=cpu_flags(),
        )
        given = self.levels(launch)
        self._setting = replace(self._setting, given=given, levels=given)
        self._setting = replace(self._setting, memory_share=memory_share(self._setting.ranks(), machine))
        # Twice: some defaults depend on levels of other factors, which have defaults of their own.
        for _ in range(2):
            self._use_fitted(hidden)
            self._setting = replace(self._setting, levels=self.levels(launch))
        self._use_fitted(hidden)

    def _use_fitted(self, hidden: frozenset[str]) -> None:
        self._reasons = {}
        entries: list[FactorTable] = []
        for entry in self._whole.factors:
            fitted = tailored(entry, self._setting)
            if isinstance(fitted, str):
                self._reasons[entry.name] = fitted
                fitted = entry
            flags = {flag for flag in (entry.flag, *entry.on, *entry.off) if flag}
            if entry.json_place is not None:
                flags.add(entry.json_place.flag)
            if self._setting.given[entry.name] == entry.unmentioned:
                fitted = fitted.model_copy(update={"prior": entry.prior * _PRIOR_OF_A_DEFAULT})
            if flags & hidden:
                self._reasons[entry.name] = "it is set in a --config file that is not understood"
            entries.append(fitted)
        self.use(replace(self._whole, factors=tuple(entries)))

    def _refuse(self, launch: Launch, start: int) -> None:
        """Raises BadLaunch for a server that culpa could not talk to."""
        context = self.context(launch)
        for flag, reason in (
            ("--uds", "it listens on a Unix socket"),
            ("--ssl-keyfile", "it serves TLS"),
            ("--ssl-certfile", "it serves TLS"),
        ):
            if self._flag_values(launch, flag):
                raise BadLaunch(f"{flag}: {reason}; leave it out, trials talk to 127.0.0.1 over HTTP")
        if mentions(launch.argv, start, context.grammar, switches=["--headless"]):
            raise BadLaunch("--headless: it serves no endpoint; give the launch of the node that does")

    def _flag_values(self, launch: Launch, flag: str) -> list[str]:
        context = self.context(launch)
        found = mentions(launch.argv, context.start, context.grammar, valued=[flag])
        return [mention.value for mention in found if mention.value is not None]

    def _with_pins(self, launch: Launch, levels: Configuration) -> Launch:
        """Keep values that would change with the number of ranks, where this arm changes that number."""
        known = {**self._setting.levels, **levels.as_dict()}
        if self._setting.ranks(known) == self._setting.ranks():
            return launch
        for name, default in _PINNED.items():
            entry = self.catalogue.factor(name)
            if entry is None or entry.flag is None or not self.in_force(entry, levels):
                continue
            wanted = levels.get(name) or self._setting.level(name)
            if wanted.isdigit() and not self._flag_values(launch, entry.flag):
                own: int = getattr(self._setting, default)(known)
                if str(own) != wanted:
                    launch = launch.with_argv(
                        appended(launch.argv, self.start_of_arguments(launch), (entry.flag, wanted))
                    )
        return launch

    def _with_runner_alone(self, launch: Launch, levels: Configuration) -> Launch:
        """Where this arm takes the V2 model runner instead of V1, asynchronous scheduling stays off.

        With pipeline parallelism V2 turns it on by default and V1 can't: two things would change at once.
        """
        runner = self._setting.level("model_runner"), levels.get("model_runner")
        entry = self.catalogue.factor("async_scheduling")
        if runner != ("V1", "V2") or entry is None or "async_scheduling" in levels:
            return launch
        if self._setting.size("pipeline_parallel_size") < 2 or not self._setting.installation.has(
            entry.on[0]
        ):
            return launch
        return self.put(entry.model_copy(update={"default": "on"}), launch, "off")

    def _with_known_caches(self, launch: Launch, scratch: Path) -> Launch:
        """Caches of compiled code that only this run's trials share, and no usage statistics sent out."""
        wanted = {
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CACHE_ROOT": str(scratch / "vllm-cache"),
            "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor-cache"),
        }
        for name, value in wanted.items():
            if launch.variable(name) is None:
                launch = launch.with_variable(name, value)
        return launch

    def _share_of_memory(self, launch: Launch) -> str | None:
        """The share of memory that the launch gives to a CPU rank, or else one that is free; None if none is."""
        given = [value for flag in _SHARES for value in self._flag_values(launch, flag)]
        if given:
            return given[-1]
        share = self._setting.memory_share
        return None if share is None else f"{share:.2f}"

    def _with_share_of_memory(self, launch: Launch, levels: Configuration) -> Launch:
        """Where this arm lets the CPU build measure its cache, a share of memory that is there comes along."""
        given = self._setting.level("cpu_kv_cache_space", "measured") != "measured"
        share = self._share_of_memory(launch)
        if not given or levels.get("cpu_kv_cache_space") != "measured" or share is None:
            return launch
        if any(self._flag_values(launch, flag) for flag in _SHARES):
            return launch
        return launch.with_argv(
            appended(launch.argv, self.start_of_arguments(launch), ("--gpu-memory-utilization", share))
        )

    def _remarks(self, reading: Reading) -> list[str]:
        """What a person should know of the launch beside its factors."""
        remarks = ["trials share compile caches of their own: a fault of an old cache would not show"]
        release = self._setting.installation
        if release.version is None:
            remarks.append("the installed vLLM could not be read: defaults are those of recent releases")
        if not self._setting.model.known:
            remarks.append(
                "the model's config.json is not on this machine: factors of hybrid models are left out"
            )
        varied = {factor.name: factor.suspect for factor in reading.factors}
        if "pipeline_parallel_size" in varied and self._setting.level("pipeline_partition") != "default":
            remarks.append("a change of pipeline_parallel_size takes VLLM_PP_LAYER_PARTITION away with it")
        if varied.get("model_runner") == "V1" and self._setting.size("pipeline_parallel_size") > 1:
            remarks.append(
                "level V2 of model_runner comes with asynchronous scheduling off, as it is with V1"
            )
        if "cpu_kv_cache_space" in varied:
            remarks.append(
                "level measured of cpu_kv_cache_space brings --gpu-memory-utilization along, unless it is given: "
                "the engine's own share of memory is more than is free"
            )
        if not self._setting.has_graphs:
            remarks.append("without a GPU there are no CUDA graphs: execution is compiled or eager")
        return remarks
