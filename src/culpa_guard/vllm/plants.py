"""Faults planted on purpose, in the live engine, for the self-test: each is a real wrong number or pointer.

`CULPA_GUARD_PLANT=<fault>[:stage=K][:after=TOKENS][:step=N][:steps=N][,<fault>...]`: on which stage (the first), for
requests of more than so many tokens (0), from which step on (1), and for how many steps (all). Calls without tokens
are no steps. Each fault says what it did in one `planted` event, with the kinds of which the guard has to find at least
one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from culpa_guard import kinds
from culpa_guard.guard import Guard
from culpa_guard.mirror import ATTENTION, STATE, Group, Mirror
from culpa_guard.settings import BadSetting, Planted
from culpa_guard.vllm.bound import tensors_of

FAULTS: dict[str, tuple[str, ...]] = {
    "swap_bindings": (kinds.BIND_MISMATCH,),
    "state_index": (kinds.STATE_INDEX_NOT_SCHEDULED, kinds.FREED_STATE_READ, kinds.STATE_INDEX_OUT_OF_RANGE),
    "state_out_of_range": (kinds.STATE_INDEX_OUT_OF_RANGE,),
    "initial_state": (kinds.INITIAL_STATE_MISMATCH,),
    "foreign_block": (kinds.BLOCK_NOT_OWNED,),
    "slot_offset": (kinds.SLOT_MAPPING_MISMATCH,),
    "shared_metadata": (kinds.METADATA_SHARED_ACROSS_GROUPS,),
    "stale_pointer": (kinds.CAPTURED_POINTER_STALE,),
    "handover": (kinds.HANDOVER_MISMATCH,),
    "scribble": (kinds.PAGE_CHANGED_WITHOUT_WRITE,),
    "nan_state": (kinds.STATE_NOT_FINITE,),
}
"""Fault to the kinds that name it rightly. `state_out_of_range` is for `raise` mode: nothing else stops the kernel.
`scribble` and `nan_state` need `CULPA_GUARD_PAGES`, `handover` two stages."""
_OPTIONS = ("stage", "after", "step", "steps")
_FAR = 1 << 20


class Plant:
    """One fault of this run. Every method does nothing unless it is its turn."""

    def __init__(self, planted: Planted, guard: Guard, stage: int) -> None:
        """Raises BadSetting for a fault or an option that there is not."""
        if planted.fault not in FAULTS:
            raise BadSetting(f"no fault {planted.fault!r}; there are {', '.join(FAULTS)}")
        for name, value in planted.options.items():
            if name not in _OPTIONS or not value.isdigit():
                raise BadSetting(f"{name}={value}: there are {', '.join(_OPTIONS)}, whole numbers")
        self.fault = planted.fault
        self._guard = guard
        self._here = int(planted.options.get("stage", 0)) == stage
        self._after = int(planted.options.get("after", 0))
        self._first = int(planted.options.get("step", 1))
        self._steps = int(planted.options.get("steps", _FAR))
        self._said = False

    @property
    def due(self) -> bool:
        """Whether the fault is to be there in the current step."""
        return self._here and self._first <= self._guard.steps < self._first + self._steps

    @property
    def once(self) -> bool:
        """The same for faults that happen once."""
        return self.due and not self._said

    def bindings(self, layers: Mapping[str, Any], groups: Sequence[Group]) -> None:
        """Before the bindings are checked: two layers of one type get each other's tensors."""
        if self.fault != "swap_bindings" or not self._here:
            return
        names = _state_layers(layers, groups)
        first = names[0]
        home = tensors_of(layers[first])[0].data_ptr()
        second = next((name for name in names if tensors_of(layers[name])[0].data_ptr() != home), None)
        if second is not None:
            one, other = layers[first], layers[second]
            one.kv_cache, other.kv_cache = other.kv_cache, one.kv_cache
            self._say(layer=first, layers=[first, second])

    def pointers(self, layers: Mapping[str, Any], groups: Sequence[Group]) -> None:
        """Before a step: one layer's tensors are copied elsewhere, as if its cache had been allocated anew."""
        if self.fault == "stale_pointer" and self.once:
            name = _state_layers(layers, groups)[0]
            layers[name].kv_cache = tuple(tensor.clone() for tensor in tensors_of(layers[name]))
            self._say(layer=name)

    def metadata(
        self,
        metadata: dict[str, Any],
        slots: dict[str, Any],
        groups: Mapping[str, Group],
        mirror: Mirror,
        requests: Sequence[str],
    ) -> None:
        """Before the metadata are read: wrong numbers in them, or another group's object."""
        if not self.due:
            return
        rows = [row for row, name in enumerate(requests) if mirror.live[name].end > self._after]
        if not rows:
            return
        state = [name for name in metadata if name in groups and groups[name].kind == STATE]
        attention = [name for name in metadata if name in groups and groups[name].kind == ATTENTION]
        if self.fault in ("state_index", "state_out_of_range") and state:
            self._states(metadata, state, mirror, rows)
            self._say(layer=state[0], group=groups[state[0]].index, request=requests[rows[0]])
        elif self.fault == "initial_state":
            self._initial(metadata, state, groups, requests, rows)
        elif self.fault == "foreign_block" and attention:
            live = mirror.live[requests[rows[0]]]
            self._block(
                metadata,
                attention[0],
                groups[attention[0]],
                set(live.rows[groups[attention[0]].index]),
                rows[0],
            )
            self._say(layer=attention[0], group=groups[attention[0]].index, request=requests[rows[0]])
        elif self.fault == "slot_offset" and attention:
            start = sum(mirror.live[name].scheduled for name in requests[: rows[0]])
            self._slots(metadata, slots, groups[attention[0]], start)
            self._say(layer=attention[0], group=groups[attention[0]].index, request=requests[rows[0]])
        elif self.fault == "shared_metadata":
            other = next((name for name in state if groups[name].index != groups[state[0]].index), None)
            if other is not None:
                metadata[other] = metadata[state[0]]
                self._say(layer=other, group=groups[other].index)

    def corrupt(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """On the sending stage: one number of what it sends is changed after the checksum was made."""
        if self.fault != "handover" or not self.due:
            return tensors
        name = sorted(tensors)[0]
        wrong = tensors[name].clone()
        wrong.reshape(-1)[0] += 1
        self._say(tensor=name)
        return {**tensors, name: wrong}

    def contents(
        self,
        recorded: Iterable[int],
        written: Set[int],
        layers: Mapping[str, tuple[Any, ...]],
        mirror: Mirror,
        flip: Callable[[str, int], None],
    ) -> None:
        """After a step: a byte of a page that is on record and that nobody writes now, or a NaN in a state."""
        if not self.once or not layers:
            return
        layer = next(iter(layers))
        if self.fault == "scribble":
            quiet = [block for block in sorted(recorded, reverse=True) if block not in written]
            # One that was in use is looked at more often; short requests get the same few again and again.
            used = [block for block in quiet if block in mirror.granted]
            block = next(iter(used or quiet), None)
            if block is not None:
                flip(layer, block)
                self._say(place=layer, block=block)
        elif self.fault == "nan_state":
            group = next(group for group in mirror.groups if group.kind == STATE)
            live = next(
                (one for one in mirror.live.values() if one.scheduled and one.end > self._after), None
            )
            if live is None:
                return
            (block, *_) = mirror.expected_states(live.request, group)
            for name in group.layers:
                if name in layers:
                    layers[name][-1][block].reshape(-1)[0] = float("nan")
            self._say(layer=group.layers[0], group=group.index, request=live.request, block=block)

    def _states(self, metadata: dict[str, Any], state: list[str], mirror: Mirror, rows: list[int]) -> None:
        far = _FAR if self.fault == "state_out_of_range" else 1
        for each in {id(metadata[name]): metadata[name] for name in state}.values():
            states = getattr(each, "non_spec_state_indices_tensor", None)
            if states is None:
                continue
            wrong = states.clone()
            for row in rows:
                # The last block's neighbour is the one before it: this fault must not write outside the cache.
                wrong[row] += -1 if far == 1 and int(wrong[row]) + 1 >= mirror.blocks else far
            each.non_spec_state_indices_tensor = wrong
            if getattr(each, "prefill_state_indices", None) is not None:
                each.prefill_state_indices = wrong[int(each.num_decodes) :]

    def _initial(
        self,
        metadata: dict[str, Any],
        state: list[str],
        groups: Mapping[str, Group],
        requests: Sequence[str],
        rows: list[int],
    ) -> None:
        for each in {id(metadata[name]): metadata[name] for name in state}.values():
            initial = getattr(each, "has_initial_state", None)
            if initial is None:
                return
            wrong = initial.clone()
            wrong[rows[0]] = not bool(wrong[rows[0]])
            each.has_initial_state = wrong
            if getattr(each, "prefill_has_initial_state", None) is not None:
                each.prefill_has_initial_state = wrong[int(each.num_decodes) :]
        self._say(layer=state[0], group=groups[state[0]].index, request=requests[rows[0]])

    @staticmethod
    def _block(metadata: dict[str, Any], layer: str, group: Group, own: Set[int], row: int) -> None:
        table = metadata[layer].block_table
        foreign = next(block for block in range(1, len(own) + 2) if block not in own)
        # Not in place: on the host this tensor is the runner's own table.
        wrong = table.clone()
        wrong[row, 0] = foreign * group.ratio
        for name in group.layers:
            if name in metadata:
                metadata[name].block_table = wrong

    @staticmethod
    def _slots(metadata: dict[str, Any], slots: dict[str, Any], group: Group, token: int) -> None:
        names = [name for name in group.layers if name in metadata]
        right = slots.get(names[0])
        wrong = (metadata[names[0]].slot_mapping if right is None else right).clone()
        wrong[token] += 1 if int(wrong[token]) % 2 == 0 else -1
        for name in names:
            metadata[name].slot_mapping = wrong
            if name in slots:
                slots[name] = wrong

    def _say(self, **fields: Any) -> None:
        if not self._said:
            self._said = True
            self._guard.planted(self.fault, expect=list(FAULTS[self.fault]), **fields)


def corruption(plants: Sequence[Plant]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What all planted faults together make of a hand-over."""

    def corrupt(tensors: dict[str, Any]) -> dict[str, Any]:
        for plant in plants:
            tensors = plant.corrupt(tensors)
        return tensors

    return corrupt


def _state_layers(layers: Mapping[str, Any], groups: Sequence[Group]) -> list[str]:
    return [name for group in groups if group.kind == STATE for name in group.layers if name in layers]
