"""What the layout of a launch says, for the plan of an experiment: findings, and factors weighed by them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from culpa.engines.errors import BadLaunch
from culpa.engines.vllm_layout import LayoutInput, launch_input
from culpa.layout import BadLayout, find, make_plan, read_shape
from culpa.model import Factor, Launch
from culpa.model.layout_finding import LayoutFinding

if TYPE_CHECKING:
    from culpa.host import Gpu

# How much likelier a factor is to matter when a finding speaks of it; a note is good to know, no suspicion.
_WEIGHT = {"error": 2.0, "warning": 1.5, "note": 1.0}
_MOST = 0.5
# What changed on the path between the releases of the regression does make its factor likelier.
_CHANGED_PATHS = {"version_runner": 1.5}
_LEFT_OUT = frozenset({"memory_estimated"})


def measured_input(launch: Launch, surrounding: Mapping[str, str], gpus: Sequence["Gpu"]) -> LayoutInput:
    """What the launch says, with the memory of these GPUs. Raises BadLaunch or BadLayout."""
    found = launch_input(launch, surrounding)
    if not gpus or found.settings.kv_memory is not None:
        return found
    memory = (min(gpu.memory_bytes for gpu in gpus),)
    return replace(found, settings=replace(found.settings, gpu_memory=memory))


def layout_findings(
    launch: Launch, surrounding: Mapping[str, str], gpus: Sequence["Gpu"]
) -> tuple[tuple[LayoutFinding, ...], str | None]:
    """The findings on a launch, and why there are none; nothing but silence where the model's files are not here."""
    try:
        found = measured_input(launch, surrounding, gpus)
        plan = make_plan(read_shape(found.config), found.settings, found.tensors)
    except BadLaunch:
        return (), None  # the adapter itself has said what is missing
    except BadLayout as error:
        return (), f"layout not computed: {error}"
    return tuple(finding for finding in find(plan) if finding.id not in _LEFT_OUT), None


def weighed(factors: Sequence[Factor], findings: Sequence[LayoutFinding]) -> tuple[Factor, ...]:
    """The factors with the priors that the findings leave them: what a finding speaks of becomes likelier."""
    weights: dict[str, float] = {}
    for finding in findings:
        weight = _CHANGED_PATHS.get(finding.id, _WEIGHT[finding.level])
        for name in finding.factors:
            weights[name] = max(weights.get(name, 1.0), weight)
    return tuple(
        replace(factor, prior=max(factor.prior, min(_MOST, factor.prior * weights.get(factor.name, 1.0))))
        for factor in factors
    )
