"""Which faults there are, and how they are armed in a process."""

from collections.abc import Callable
from importlib import import_module

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks

Arm = Callable[[Hooks, EngineConfig], None]

FAULTS: dict[str, tuple[str, ...]] = {
    "incident": ("incident",),
    "bucket-overflow": ("bucket_overflow",),
    "prefix-state-not-restored": ("prefix_state",),
    "state-not-cleared": ("state_not_cleared",),
    "group-off-by-one": ("group_off_by_one",),
    "chunk-ends-on-block": ("chunk_on_block",),
    "freed-two-steps-early": ("freed_early",),
    "shared-group-metadata": ("shared_metadata",),
    "race-hidden-by-blocking": ("unordered_copy",),
    "concurrency-4-only": ("four_wide",),
    "silent-hang": ("lost_wakeup",),
    "nan": ("times_zero",),
    "stage-killed-silently": ("pinned_copies",),
    "oom-like-incident": ("whole_scores",),
    "arm-ignored": ("incident", "eager_ignored"),
    "two-faults": ("bucket_overflow", "resumed_state"),
    "since-build-37": ("rotated_states",),
    "eager-only": ("eager_order",),
    "preempted-state": ("resumed_state",),
    "continued-on-block": ("last_page",),
}
"""The faults by name, each with the modules of this package that arm it."""


def configured(config: EngineConfig) -> EngineConfig:
    """The settings that take effect: those that were asked for, but for what an armed fault makes of them."""
    for name in config.armed:
        for module in FAULTS[name]:
            change = getattr(import_module(f"culpa_lab.faults.{module}"), "configure", None)
            config = change(config) if change is not None else config
    return config


def hooks_for(config: EngineConfig) -> Hooks:
    """The mechanisms of a process: right ones, but for those that an armed fault exchanges."""
    hooks = Hooks()
    for name in config.armed:
        for module in FAULTS[name]:
            arm: Arm = import_module(f"culpa_lab.faults.{module}").arm
            arm(hooks, config)
    return hooks
