"""Shapes, dtypes and bytes of a recurrent state on one tensor-parallel rank.

The formulas are those of vLLM's `MambaStateShapeCalculator` and `MambaStateDtypeCalculator`
(https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/model_executor/layers/mamba/mamba_utils.py).
"""

from dataclasses import dataclass
from math import prod

from culpa.layout.dtypes import dtype_bytes
from culpa.layout.shape import StateShape


@dataclass(frozen=True, slots=True)
class StatePart:
    """One tensor of a state: the convolution's last inputs, or the recurrent matrix."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def bytes(self) -> int:
        """Bytes of the tensor."""
        return prod(self.shape) * dtype_bytes(self.dtype)


def state_parts(
    state: StateShape, tensor_parallel: int, speculative_tokens: int, conv_dtype: str, state_dtype: str
) -> tuple[StatePart, ...]:
    """The tensors that one layer keeps for one block on one rank; what TP does not divide is rounded up."""
    tp, spec = tensor_parallel, speculative_tokens
    taps = state["kernel"] - 1 if "kernel" in dict(state.numbers) else 0
    if state.kind == "gdn":
        matrix = (_share(state["value_heads"], tp), state["value_dim"], state["key_dim"])
        conv = (taps + spec, _share(_channels(state, tp), tp))
        return StatePart(conv, conv_dtype), StatePart(matrix, state_dtype)
    if state.kind == "kda":
        matrix = (_share(state["heads"], tp), state["head_dim"], state["head_dim"])
        conv = (taps + spec, _share(_channels(state, tp), tp))
        return StatePart(conv, conv_dtype), StatePart(matrix, state_dtype)
    if state.kind == "mamba2":
        matrix = (_share(state["heads"], tp), state["head_dim"], state["state"])
        conv = (taps + spec, _share(_channels(state, tp), tp))
        return StatePart(conv, conv_dtype), StatePart(matrix, state_dtype)
    if state.kind == "mamba1":
        inner = _share(state["inner"], tp)
        return StatePart((taps, inner), conv_dtype), StatePart((inner, state["state"]), state_dtype)
    if state.kind == "short_conv":
        return (StatePart((taps, _share(state["dim"], tp)), conv_dtype),)
    return (StatePart((state["heads"] // tp, state["head_dim"], state["head_dim"]), conv_dtype),)


def undivided(state: StateShape, tensor_parallel: int) -> tuple[str, ...]:
    """What of a state the tensor-parallel ranks do not divide, as `30 value heads`: vLLM asserts that they do."""
    counts = {
        "gdn": {"value heads": "value_heads"}, "kda": {"heads": "heads"}, "mamba2": {"heads": "heads"},
        "mamba1": {"channels": "inner"}, "short_conv": {"channels": "dim"}, "lightning": {},
    }[state.kind]  # fmt: skip
    found = [f"{state[key]} {name}" for name, key in counts.items() if state[key] % tensor_parallel]
    if state.kind in ("gdn", "kda", "mamba2"):
        channels = _channels(state, tensor_parallel)
        if channels % tensor_parallel:
            found.append(f"{channels} convolution channels")
    return tuple(found)


def _channels(state: StateShape, tp: int) -> int:
    """Channels of the convolution in front of a recurrent matrix, over all ranks."""
    if state.kind == "gdn":
        return 2 * state["key_dim"] * state["key_heads"] + state["value_dim"] * state["value_heads"]
    if state.kind == "kda":
        return 3 * state["heads"] * state["head_dim"]
    groups = state["groups"]
    if groups % tp:
        groups += tp - groups  # groups are repeated so that every rank has those of its heads
    return state["inner"] + 2 * groups * state["state"]


def _share(count: int, tensor_parallel: int) -> int:
    return -(-count // tensor_parallel)
