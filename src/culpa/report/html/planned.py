"""The layout of the model from what the run has kept of it: the model's configuration and the launch's settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from culpa.layout import BadLayout, Plan, Settings, make_plan, read_shape
from culpa.layout.weights import TensorSize

#: Settings of a plan, and what an engine calls them when it tells its effective configuration.
_TOLD = {"block_size": "block_size", "blocks": "kv_blocks", "max_model_len": "context_tokens"}


def stored_plan(document: Any, told: Mapping[str, str]) -> Plan | None:
    """The plan that follows from the run's `layout.json`; None where there is none or it can't be planned.

    `told` is what the engine said of itself: the size and number of its blocks and the longest context, where the
    launch does not say.
    """
    from pydantic import TypeAdapter, ValidationError

    if not isinstance(document, Mapping):
        return None
    try:
        settings = TypeAdapter(Settings).validate_python(document.get("settings"))
        tensors = TypeAdapter(dict[str, TensorSize] | None).validate_python(document.get("tensors"))
        shape = read_shape(document.get("config"))
        try:
            return make_plan(shape, _completed(settings, told), tensors)
        except BadLayout:
            return make_plan(shape, settings, tensors)
    except (BadLayout, ValidationError):
        return None  # a picture more or less: the run says what it says without it


def _completed(settings: Settings, told: Mapping[str, str]) -> Settings:
    """The settings with what the engine told of those that the launch leaves to it."""
    changes: dict[str, Any] = {
        name: int(told[key])
        for name, key in _TOLD.items()
        if getattr(settings, name) is None and told.get(key, "").isdigit()
    }
    # Blocks of a size that is not known hold nobody knows how much.
    if settings.block_size is None and "block_size" not in changes:
        changes.pop("blocks", None)
    return replace(settings, **changes)
