"""A step's attention metadata, taken apart into what the checks read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from culpa_guard.mirror import STATE, Group
from culpa_guard.views import GroupView, StepView
from culpa_guard.vllm.deferred import Fetcher


@dataclass(slots=True)
class _Given:
    """One metadata object: whose it is, and the tensors that are wanted of it by name."""

    group: Group
    layers: list[str]
    layer_type: str
    identity: int
    tensors: dict[str, Any] = field(default_factory=dict)
    decodes: int = 0


@dataclass(slots=True)
class MetadataReader:
    """Reads what `prepare` made for the model: by group and object, tensors first, their content when it is there."""

    groups: Mapping[str, Group]
    """By layer."""
    types: Mapping[str, str]
    fetcher: Fetcher
    unknown: Callable[[str, str], None]
    """Told of a check and why it can't be made."""

    def read(
        self,
        metadata: Mapping[str, Any],
        slots: Mapping[str, Any],
        requests: Sequence[str],
        lengths: Sequence[int],
        longest: int,
        then: Callable[[StepView], None],
    ) -> None:
        """Call `then` with the view, now or when the device has sent it.

        longest: tokens of the longest request after the step; columns of block tables beyond are not fetched.
        """
        given = self._collect(metadata, slots)
        count, tokens = len(requests), sum(lengths)
        wanted: list[tuple[int, str]] = []
        tensors: list[Any] = []
        for number, one in enumerate(given):
            for name, tensor in one.tensors.items():
                wanted.append((number, name))
                tensors.append(self._part(one.group, name, tensor, count, tokens, longest))

        def arrived(contents: list[Any]) -> None:
            found: list[dict[str, Any]] = [{} for _ in given]
            for (number, name), content in zip(wanted, contents, strict=True):
                found[number][name] = content
            views = [
                view for one, content in zip(given, found, strict=True) for view in self._views(one, content)
            ]
            then(StepView(tuple(requests), tuple(lengths), tuple(views)))

        self.fetcher.fetch(tensors, arrived)

    def _collect(self, metadata: Mapping[str, Any], slots: Mapping[str, Any]) -> list[_Given]:
        objects: dict[tuple[int, int, int], _Given] = {}
        for layer, each in metadata.items():
            group = self.groups.get(layer)
            if group is None:
                continue
            slot = slots.get(layer)
            key = (id(each), id(slot), group.index)
            known = objects.get(key)
            if known is not None:
                known.layers.append(layer)
                continue
            one = _Given(group, [layer], self.types.get(layer, "unknown"), id(each))
            if group.kind == STATE:
                self._state(one, each)
            else:
                self._attention(one, each, slot)
            objects[key] = one
        return list(objects.values())

    def _state(self, one: _Given, metadata: Any) -> None:
        one.decodes = int(getattr(metadata, "num_decodes", 0) or 0)
        if getattr(metadata, "spec_state_indices_tensor", None) is not None:
            self.unknown("state_indices:speculative", "rows of speculative decoding are not checked")
            return
        for name, attributes in (
            ("states", ("non_spec_state_indices_tensor", "state_indices_tensor")),
            ("prefill_states", ("prefill_state_indices", "state_indices_tensor_p")),
            ("decode_states", ("state_indices_tensor_d",)),
            ("has_initial", ("has_initial_state",)),
        ):
            tensor = _first(metadata, attributes)
            if tensor is not None:
                one.tensors[name] = tensor
        if not one.tensors:
            self.unknown(
                f"state_indices:group_{one.group.index}", f"no state indices in {type(metadata).__name__}"
            )

    def _attention(self, one: _Given, metadata: Any, slot: Any) -> None:
        table = _first(metadata, ("block_table", "block_table_tensor"))
        if table is not None and table.dim() == 2:
            one.tensors["table"] = table
        else:
            self.unknown(
                f"block_tables:group_{one.group.index}", f"no block table in {type(metadata).__name__}"
            )
        slot = slot if slot is not None else getattr(metadata, "slot_mapping", None)
        if slot is not None and slot.dim() == 1:
            one.tensors["slots"] = slot
        else:
            self.unknown(f"slot_mappings:group_{one.group.index}", f"no slots in {type(metadata).__name__}")

    @staticmethod
    def _part(group: Group, name: str, tensor: Any, count: int, tokens: int, longest: int) -> Any:
        if name == "table":
            columns = -(-longest // group.kernel_block_size)
            return tensor[:count, :columns]
        if name == "slots":
            return tensor[:tokens]
        return (tensor[:, 0] if tensor.dim() == 2 else tensor)[:count]

    @staticmethod
    def _views(one: _Given, content: dict[str, Any]) -> list[GroupView]:
        states = content.get("states")
        prefill, decode = content.get("prefill_states"), content.get("decode_states")
        if states is None and (prefill is not None or decode is not None):
            # Layers that keep the indices of decodes and prefills apart: decodes come first in the batch.
            states = [*(decode or ())[: one.decodes], *(prefill or ())]
            prefill = None
        buffers = tuple(
            (name, address)
            for name, tensor in one.tensors.items()
            if name != "has_initial" and (address := int(tensor.data_ptr()))
        )
        first = GroupView(
            one.group.index,
            tuple(one.layers),
            one.layer_type,
            content.get("table"),
            content.get("slots"),
            states,
            content.get("has_initial"),
            one.identity,
            buffers,
        )
        if states is None or prefill is None:
            return [first]
        both = [*states[: one.decodes], *prefill][: len(states)]
        if both == list(states[: len(both)]):
            return [first]
        # The prefill kernel reads indices of its own, and they are not the same.
        return [
            first,
            GroupView(one.group.index, tuple(one.layers), one.layer_type, states=both, identity=one.identity),
        ]


def _first(metadata: Any, names: Sequence[str]) -> Any:
    for name in names:
        value = getattr(metadata, name, None)
        if value is not None and hasattr(value, "data_ptr"):
            return value
    return None
