"""As much of a vLLM worker as the guard touches, on NumPy arrays: no torch, no engine.

Two layers of recurrent state in groups of their own and one of full attention share one allocation, as since 0.30.
"""

import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

BLOCKS, BLOCK, PAGE = 16, 4, 64


class Tensor:
    """The part of a tensor that the guard reads, on an array that may be a view."""

    def __init__(self, array: "np.ndarray[Any, Any]", base: "np.ndarray[Any, Any] | None" = None) -> None:
        self.array = array
        self.base = array if base is None else base

    @property
    def dtype(self) -> str:
        return f"torch.{self.array.dtype}"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)

    def stride(self, dimension: int | None = None) -> Any:
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if dimension is None else strides[dimension]

    def dim(self) -> int:
        return self.array.ndim

    def numel(self) -> int:
        return self.array.size

    def element_size(self) -> int:
        return self.array.itemsize

    def data_ptr(self) -> int:
        return int(self.array.__array_interface__["data"][0])

    def untyped_storage(self) -> "Tensor":
        return Tensor(self.base)

    def detach(self) -> "Tensor":
        return self

    is_cuda = False
    device = SimpleNamespace(type="cpu")

    def contiguous(self) -> "Tensor":
        return Tensor(np.ascontiguousarray(self.array))

    def view(self, dtype: Any) -> "Tensor":
        return Tensor(self.array.view(dtype))

    def clone(self) -> "Tensor":
        return Tensor(self.array.copy())

    def copy_(self, other: "Tensor", non_blocking: bool) -> None:
        assert non_blocking
        self.array[...] = other.array

    def is_contiguous(self) -> bool:
        return bool(self.array.flags["C_CONTIGUOUS"])

    def reshape(self, *shape: int) -> "Tensor":
        return Tensor(self.array.reshape(*shape), self.base)

    def numpy(self) -> "np.ndarray[Any, Any]":
        return self.array

    def tolist(self) -> Any:
        return self.array.tolist()

    def __getitem__(self, key: Any) -> "Tensor":
        return Tensor(self.array[key], self.base)

    def __iter__(self) -> Any:
        return (self[place] for place in range(len(self.array)))


class MambaSpec(SimpleNamespace):
    pass


class FullAttentionSpec(SimpleNamespace):
    pass


def state_spec() -> MambaSpec:
    return MambaSpec(
        block_size=BLOCK,
        page_size_bytes=PAGE,
        mamba_type=SimpleNamespace(name="GDN_ATTN"),
        mamba_cache_mode="align",
        num_speculative_blocks=0,
        dtypes=("torch.float32",),
    )


def cache_config() -> SimpleNamespace:
    full = FullAttentionSpec(block_size=BLOCK, page_size_bytes=PAGE)
    groups = [("s0", state_spec()), ("s1", state_spec()), ("f", full)]
    return SimpleNamespace(
        num_blocks=BLOCKS,
        kv_cache_groups=[SimpleNamespace(layer_names=[name], kv_cache_spec=spec) for name, spec in groups],
        kv_cache_tensors=[
            SimpleNamespace(
                size=BLOCKS * PAGE, layers=[name], layer_stride=BLOCKS * PAGE, block_stride=PAGE, offset=0
            )
            for name, _ in groups
        ],
    )


def bound_layers() -> dict[str, SimpleNamespace]:
    memory = np.zeros(BLOCKS * PAGE, dtype=np.uint8)
    floats = memory.view(np.float32).reshape(BLOCKS, PAGE // 4)
    layers = {name: SimpleNamespace(kv_cache=(Tensor(floats[:, :12], memory),)) for name in ("s0", "s1")}
    return {**layers, "f": SimpleNamespace(kv_cache=Tensor(floats, memory))}


def metadata(states: tuple[int, int], row: list[int], slots: list[int], fresh: bool) -> dict[str, Any]:
    """Of one request: its state's block in each group, its row and its slots."""
    made: dict[str, Any] = {
        name: SimpleNamespace(
            non_spec_state_indices_tensor=Tensor(np.array([block], dtype=np.int32)),
            has_initial_state=Tensor(np.array([not fresh])),
            num_decodes=0,
        )
        for name, block in zip(("s0", "s1"), states, strict=True)
    }
    made["f"] = SimpleNamespace(
        block_table=Tensor(np.array([[*row, 0, 0]], dtype=np.int32)),
        slot_mapping=Tensor(np.array(slots, dtype=np.int64)),
    )
    return made


def output(
    request: str, blocks: list[list[int]] | None, computed: int, tokens: int, new: bool
) -> SimpleNamespace:
    fresh = [SimpleNamespace(req_id=request, block_ids=blocks, num_computed_tokens=computed)] if new else []
    old = [] if new else [request]
    cached = SimpleNamespace(
        req_ids=old,
        resumed_req_ids=set(),
        new_block_ids=[blocks] * len(old),
        num_computed_tokens=[computed] * len(old),
    )
    return SimpleNamespace(
        scheduled_new_reqs=fresh,
        scheduled_cached_reqs=cached,
        num_scheduled_tokens={request: tokens},
        total_num_scheduled_tokens=tokens,
        finished_req_ids=set(),
        preempted_req_ids=None,
    )


class Worker:
    """Runs one forward pass per step, on the metadata that the test wants it to be given."""

    def __init__(self, second: bool) -> None:
        self.layers = bound_layers()
        self.device = SimpleNamespace(type="cpu")
        self.rank = 0
        parallel = SimpleNamespace(decode_context_parallel_size=1)
        self.vllm_config = SimpleNamespace(
            compilation_config=SimpleNamespace(static_forward_context=self.layers),
            parallel_config=parallel,
            speculative_config=None,
        )
        self.given: dict[str, Any] = {}
        self.ran = 0
        self.work: Callable[[], None] = lambda: None
        caches = [layer.kv_cache for layer in self.layers.values()]
        self.model_runner: Any = SimpleNamespace(_kernel_block_sizes=[BLOCK] * 3, kv_caches=caches)
        if second:
            self.model_runner.model_state = SimpleNamespace(prepare_attn=lambda batch, *_: self.given)
        else:
            self.model_runner._model_forward = self._forward
            self.model_runner.input_batch = SimpleNamespace(req_ids=["r"], num_reqs=1)

    def initialize_from_config(self, config: object) -> str:
        return "bound"

    def shutdown(self) -> str:
        return "down"

    def execute_model(self, scheduled: SimpleNamespace) -> str:
        runner = self.model_runner
        if not scheduled.num_scheduled_tokens:
            return "nothing"
        if hasattr(runner, "model_state"):
            runner.model_state.prepare_attn(
                SimpleNamespace(req_ids=list(scheduled.num_scheduled_tokens)), None
            )
            self._forward()
        else:
            runner.input_batch = SimpleNamespace(req_ids=list(scheduled.num_scheduled_tokens), num_reqs=1)
            runner._model_forward(input_ids=None)
        return "answer"

    def _forward(self, **names: object) -> None:
        self.ran += 1
        self.work()


def install(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    """The modules of vLLM that the guard asks."""
    state = ModuleType("vllm.distributed.parallel_state")
    state.get_pp_group = lambda: SimpleNamespace(rank_in_group=0, world_size=1)  # type: ignore[attr-defined]
    context = ModuleType("vllm.forward_context")
    context.get_forward_context = lambda: SimpleNamespace(attn_metadata=worker.given)  # type: ignore[attr-defined]
    root = ModuleType("vllm")
    root.__version__ = "0.0"  # type: ignore[attr-defined]
    modules = {"vllm": root, "vllm.distributed": ModuleType("vllm.distributed")}
    for name, module in {**modules, state.__name__: state, context.__name__: context}.items():
        monkeypatch.setitem(sys.modules, name, module)
