"""The table of model families, and how numbers are found in a config.json."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from culpa.layout.errors import BadLayout
from culpa.layout.shape import LayerKind, StateKind


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PatternTable(_Table):
    """Where the kinds of layers come from when they are not listed."""

    rule: Literal["all", "every", "offset", "indices", "flags", "letters", "from"]
    full: LayerKind
    other: LayerKind
    number: str = ""
    offset: str = ""
    key: str = ""
    one_based: bool = False
    every: int = 0


class AttentionTable(_Table):
    """What is special in the attention layers of a family."""

    gate: bool = False
    mla: bool = False
    bias: bool = False
    qk_norm: bool = False
    hidden_factor: int = 1


class StateTable(_Table):
    """The numbers of a recurrent state, each as the keys that may hold it."""

    kind: StateKind
    key_heads: str = ""
    value_heads: str = ""
    key_dim: str = ""
    value_dim: str = ""
    kernel: str = ""
    inner: str = ""
    expand: str = ""
    groups: str = ""
    heads: str = ""
    head_dim: str = ""
    state: str = ""
    dim: str = ""

    def numbers(self) -> dict[str, str]:
        """The specifications that are given, by name."""
        return {name: text for name, text in self.model_dump(exclude={"kind"}).items() if text}


class FamilyTable(_Table):
    """One family; the head of the table's file explains each key."""

    title: str
    model_types: list[str] = Field(min_length=1)
    source: str = Field(pattern=r"^https://")
    pattern: PatternTable
    spelling: dict[str, LayerKind] = {}
    letters: dict[str, LayerKind] = {}
    attention: AttentionTable = AttentionTable()
    state: StateTable | None = None
    state_dtype: str = ""
    state_dtype_default: str = ""
    window: str = ""
    window_switch: str = ""
    chunk: str = ""
    head_dim: str = ""
    tied: bool = False
    embeds: Literal["all", "first", "tied"]
    head: Literal["all", "last"]
    mlp_projections: int = 3
    shared_experts: int = 0
    shared_blocks: str = ""
    mlp_in: list[LayerKind] = []
    pipeline: bool = True
    removed: str | None = None


class _File(_Table):
    family: list[FamilyTable]


@cache
def families() -> tuple[FamilyTable, ...]:
    """All families, in the order of the file."""
    text = resources.files("culpa.layout").joinpath("data", "families.toml").read_text(encoding="utf-8")
    return tuple(_File.model_validate(tomllib.loads(text)).family)


def find_family(model_type: str) -> FamilyTable | None:
    """The family that a `model_type` belongs to, or None."""
    return next((family for family in families() if model_type in family.model_types), None)


def family_of_architecture(architecture: str) -> FamilyTable | None:
    """The family of a class such as `Qwen3_5ForCausalLM`, for a configuration that gives no model_type."""
    squeezed = _squeezed(re.split(r"For[A-Z]|Model", architecture, maxsplit=1)[0])
    for family in families():
        if any(_squeezed(name) == squeezed for name in family.model_types):
            return family
    return None


def _squeezed(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def value(config: Mapping[str, Any], keys: str) -> Any:
    """What the first of `key|outer.inner` that is there holds; None where none is, or where it holds null."""
    for key in filter(None, keys.split("|")):
        found: Any = config
        for part in key.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return None


def factor(config: Mapping[str, Any], spec: str) -> float:
    """The positive number of a specification, which need not be whole. Raises BadLayout where it is none."""
    keys, _, default = spec.partition("=")
    found = value(config, keys)
    found = float(default) if found is None else found
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < 1e6:
        raise BadLayout(f"config.json: {keys.split('|')[0]} should be a positive number, not {found!r}"[:200])
    return float(found)


def number(config: Mapping[str, Any], spec: str, derived: Mapping[str, int] | None = None) -> int:
    """The integer of a specification `key|other=default`. Raises BadLayout where it is none."""
    keys, _, default = spec.partition("=")
    found = value(config, keys)
    if found is None or found == "auto":
        if default.startswith("@"):
            return (derived or {})[default[1:]]
        return int(default or 0)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 1 << 40:
        raise BadLayout(
            f"config.json: {keys.split('|')[0]} should be a whole number from 0 to 2^40, not {found!r}"[:200]
        )
    return found
