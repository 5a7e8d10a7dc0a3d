"""Levels of factors as settings: what a launch leaves to the engine's defaults, in the names that reports use."""

from collections.abc import Iterator, Mapping
from typing import Protocol, runtime_checkable

from culpa.engines import BadLaunch, find_adapter
from culpa.engines.base import EngineAdapter
from culpa.host import Machine
from culpa.model import Launch
from culpa.model.diagnosis import SettingValue

_NUMBERS = {
    "pipeline_parallel_size": "pp",
    "tensor_parallel_size": "tp",
    "data_parallel_size": "dp",
    "num_speculative_tokens": "spec_tokens",
    "max_num_seqs": "max_num_seqs",
    "max_num_batched_tokens": "max_num_batched_tokens",
    "max_model_len": "max_model_len",
}
_SWITCHES = {
    "prefix_caching": "prefix_caching",
    "async_scheduling": "async_scheduling",
    "chunked_prefill": "chunked_prefill",
    "expert_parallel": "expert_parallel",
    "custom_all_reduce": "custom_all_reduce",
    "launch_blocking": "launch_blocking",
    "lora": "lora",
}
_WORDS = {
    "pipeline_partition": "partition",
    "kv_cache_dtype": "kv_cache_dtype",
    "quantization": "quantization",
    "dtype": "dtype",
    "attention_backend": "attention_backend",
    "moe_backend": "moe_backend",
    "mamba_cache_mode": "mamba_cache_mode",
}
#: Levels that say that the engine decides: nothing is known then.
_LEFT_OPEN = frozenset({"default", "auto", "measured", "unknown", ""})


@runtime_checkable
class _HasLevels(Protocol):
    def levels(self, launch: Launch) -> dict[str, str]:
        """The level of every factor."""


def default_settings(launch: Launch, machine: Machine) -> dict[str, SettingValue]:
    """What holds in this launch by its words and the engine's defaults; nothing where the engine is not known here."""
    try:
        adapter = find_adapter(launch, None)
        adapter.read(launch, machine)
    except BadLaunch:
        return {}
    return settings_of_levels(levels_of(adapter, launch))


def levels_of(adapter: EngineAdapter, launch: Launch) -> dict[str, str]:
    """The level of every factor that the engine's catalogue has."""
    return adapter.levels(launch) if isinstance(adapter, _HasLevels) else {}


def settings_of_levels(levels: Mapping[str, str]) -> dict[str, SettingValue]:
    """Levels in the names and types of settings; those that the engine decides upon are left out."""
    return dict(_settings(levels))


def _settings(levels: Mapping[str, str]) -> Iterator[tuple[str, SettingValue]]:
    for name, level in levels.items():
        if name == "execution":
            yield "eager", level == "eager"
        elif name == "speculative_decoding" and level == "off":
            yield "spec_decode", False
        elif level in _LEFT_OPEN:
            continue
        elif name in _NUMBERS and level.isdigit():
            if name != "num_speculative_tokens" or levels.get("speculative_decoding", "off") != "off":
                yield _NUMBERS[name], int(level)
        elif name in _SWITCHES and level in ("on", "off"):
            yield _SWITCHES[name], level == "on"
        elif name in _WORDS and level != "off":
            yield _WORDS[name], level
