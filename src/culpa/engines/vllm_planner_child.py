"""Runs inside an engine's own Python: plans caches with vLLM's code and prints what comes out, as JSON.

Reads a JSON list of cases on standard input (`vllm_planner.py` says what is in one) and writes one JSON object:
the engine's version, and a result for each case. It imports nothing of culpa and loads no model. What vLLM
would take from a live engine (its configuration, the attention backend, the model's class) are plain stand-ins
that hold the same numbers; blocks, pages, groups, stages and capacity are computed by vLLM's functions alone.
"""

import contextlib
import inspect
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ["VLLM_CONFIGURE_LOGGING"] = "0"

# How vLLM says no. Anything else means that a stand-in lacks something, and ends the child.
_REFUSALS = (ValueError, AssertionError, NotImplementedError, ZeroDivisionError)


def main() -> None:
    """Plan every case of standard input. The result goes to the real standard output, nothing else does."""
    out = os.dup(1)
    os.dup2(2, 1)  # whatever vLLM prints while it is imported is no part of the answer
    cases = json.load(sys.stdin)
    import vllm

    planner = Planner()
    answer = {
        "version": str(vllm.__version__),
        "results": [_guarded(planner, case) for case in cases],
    }
    with os.fdopen(out, "w", encoding="utf-8") as stream:
        json.dump(answer, stream)


def _guarded(planner: "Planner", case: dict[str, Any]) -> dict[str, Any]:
    try:
        return planner.plan(case)
    except _REFUSALS as error:
        return {"id": case["id"], "error": f"{type(error).__name__}: {error}"[:2000]}


class Planner:
    """vLLM's functions, imported once."""

    def __init__(self) -> None:
        import vllm.config.vllm as configuration
        from vllm.distributed.utils import get_pp_indices
        from vllm.model_executor.layers.mamba.mamba_utils import (
            MambaStateDtypeCalculator,
            MambaStateShapeCalculator,
        )
        from vllm.model_executor.models import ModelRegistry
        from vllm.platforms.interface import Platform
        from vllm.utils.torch_utils import STR_DTYPE_TO_TORCH_DTYPE
        from vllm.v1 import kv_cache_interface as specs
        from vllm.v1.attention.backend import MultipleOf
        from vllm.v1.core import kv_cache_utils

        self.configuration = configuration
        self.get_pp_indices = get_pp_indices
        self.dtypes = MambaStateDtypeCalculator
        self.shapes = MambaStateShapeCalculator
        self.registry = ModelRegistry
        self.platform = Platform
        self.torch_dtypes = STR_DTYPE_TO_TORCH_DTYPE
        self.specs = specs
        self.multiple_of = MultipleOf
        self.utils = kv_cache_utils
        # It wants a whole configuration; backends that are stand-ins don't look at it.
        configuration.set_current_vllm_config = lambda *_args, **_kwargs: contextlib.nullcontext()

    def plan(self, case: dict[str, Any]) -> dict[str, Any]:
        """One case, through the same functions as when an engine starts."""
        stages = self._stages(case)
        config = self._config(case)
        state = self._state(case, config)
        self._align(case, config, state)
        workers = [
            {
                name: spec
                for layer in [*(case["layers"][start:end]), *(case["drafting"] if last else [])]
                for name, spec in self._layer(layer, case, config, state)
            }
            for start, end, last in stages
        ]
        configs = self.utils.get_kv_cache_configs(config, workers, list(case["memory"]))
        scheduler = self.utils.generate_scheduler_kv_cache_config(configs)
        capacity, _ = self.utils.get_kv_cache_capacity(config, scheduler)
        groups = scheduler.kv_cache_groups
        return {
            "id": case["id"],
            "stages": [[start, end] for start, end, _ in stages],
            "block_size": config.cache_config.block_size,
            "max_model_len": config.model_config.max_model_len,
            "groups": [[list(group.layer_names) for group in one.kv_cache_groups] for one in configs],
            "pages": [group.kv_cache_spec.page_size_bytes for group in groups],
            "per_request": [
                -(-group.kv_cache_spec.max_memory_usage_bytes(config) // group.kv_cache_spec.page_size_bytes)
                for group in groups
            ],
            "num_blocks": scheduler.num_blocks,
            "storage": [[_tensor(tensor) for tensor in one.kv_cache_tensors] for one in configs],
            "capacity": capacity,
        }

    def _stages(self, case: dict[str, Any]) -> list[tuple[int, int, bool]]:
        if case["partition"] is None:
            os.environ.pop("VLLM_PP_LAYER_PARTITION", None)
        else:
            os.environ["VLLM_PP_LAYER_PARTITION"] = case["partition"]
        count, size = len(case["layers"]), case["pipeline"]
        return [(*self.get_pp_indices(count, rank, size), rank == size - 1) for rank in range(size)]

    def _config(self, case: dict[str, Any]) -> Any:
        length = case["max_model_len"]
        attention = case["attention"] or {"kv_heads": 1, "head_dim": 1, "latent": False}
        config = SimpleNamespace(
            model_config=SimpleNamespace(
                max_model_len=length,
                original_max_model_len=-1 if case["fit_length"] else length,
                dtype=self.torch_dtypes[case["dtype"]],
                use_mla=attention["latent"],
                architecture="",
                get_num_kv_heads=lambda _parallel: attention["kv_heads"],
                get_head_size=lambda: attention["head_dim"],
                get_mamba_chunk_size=lambda: case["mamba_chunk"],
            ),
            cache_config=SimpleNamespace(
                cache_dtype=case["kv_cache_dtype"],
                mamba_cache_dtype=case["mamba_cache_dtype"],
                mamba_ssm_cache_dtype=case["mamba_ssm_cache_dtype"],
                block_size=case["block_size"],
                mamba_cache_mode=case["mode"],
                mamba_block_size=case["block_size"] if case["mode"] != "none" else length,
                user_specified_mamba_block_size=False,
                mamba_page_size_padded=None,
                num_gpu_blocks_override=case["blocks"],
                kv_cache_dtype_skip_layers=None,
                prefix_cache_retention_interval=None,
                enable_prefix_caching=case["mode"] != "none",
                get_resolved_kv_cache_layout=_layer_outermost,
            ),
            parallel_config=SimpleNamespace(
                pipeline_parallel_size=case["pipeline"],
                tensor_parallel_size=case["tensor_parallel"],
                decode_context_parallel_size=1,
                prefill_context_parallel_size=1,
            ),
            scheduler_config=SimpleNamespace(
                disable_hybrid_kv_cache_manager=not case["hybrid_manager"],
                max_num_batched_tokens=case["max_num_batched_tokens"],
                async_scheduling=case["async_scheduling"],
            ),
            device_config=SimpleNamespace(device_type="cuda"),
            attention_config=SimpleNamespace(hisparse_config=None),
            speculative_config=None,
            kv_transfer_config=None,
            use_v2_model_runner=case["v2_runner"],
            num_speculative_tokens=case["speculative_tokens"],
            num_prefill_lookahead_tokens=0,
        )
        own = self.configuration.VllmConfig
        config.max_concurrent_batches = own.max_concurrent_batches.fget(config)
        config.max_in_flight_tokens = own.max_in_flight_tokens.fget(config)
        return config

    def _state(self, case: dict[str, Any], config: Any) -> tuple[Any, Any] | None:
        """Shapes and dtypes of the recurrent state, by vLLM's calculators."""
        state = case["state"]
        if state is None:
            return None
        numbers, tp, spec = state["numbers"], case["tensor_parallel"], case["speculative_tokens"]
        model, cache = config.model_config.dtype, config.cache_config
        both = (model, cache.mamba_cache_dtype, cache.mamba_ssm_cache_dtype)
        one = (model, cache.mamba_cache_dtype)
        kind = state["kind"]
        if kind == "gdn":
            shapes = self.shapes.gated_delta_net_state_shape(
                tp, numbers["key_heads"], numbers["value_heads"], numbers["key_dim"], numbers["value_dim"],
                numbers["kernel"], spec,
            )  # fmt: skip
            return shapes, self.dtypes.gated_delta_net_state_dtype(*both)
        if kind == "kda":
            shapes = self.shapes.kda_state_shape(
                tp, numbers["heads"], numbers["head_dim"], conv_kernel_size=numbers["kernel"], num_spec=spec
            )
            accepted = len(inspect.signature(self.dtypes.kda_state_dtype).parameters)
            return shapes, self.dtypes.kda_state_dtype(*both[:accepted])
        if kind == "mamba2":
            shapes = self.shapes.mamba2_state_shape(
                tp_world_size=tp, intermediate_size=numbers["inner"], n_groups=numbers["groups"],
                num_heads=numbers["heads"], head_dim=numbers["head_dim"], state_size=numbers["state"],
                conv_kernel=numbers["kernel"], num_spec=spec,
            )  # fmt: skip
            return shapes, self.dtypes.mamba2_state_dtype(*both)
        if kind == "mamba1":
            shapes = self.shapes.mamba1_state_shape(tp, numbers["inner"], numbers["state"], numbers["kernel"])
            return shapes, self.dtypes.mamba1_state_dtype(*both)
        if kind == "short_conv":
            shapes = self.shapes.short_conv_state_shape(tp, numbers["dim"], numbers["kernel"])
            return shapes, self.dtypes.short_conv_state_dtype(*one)
        shapes = self.shapes.linear_attention_state_shape(numbers["heads"], tp, numbers["head_dim"])
        return shapes, self.dtypes.linear_attention_state_dtype(*one)

    def _align(self, case: dict[str, Any], config: Any, state: tuple[Any, Any] | None) -> None:
        """Let the platform choose block and pages, as it does for a model with attention and states."""
        if state is None or case["attention"] is None:
            return
        sizes = [self.multiple_of(size) if multiple else size for size, multiple in case["kernel_blocks"]]

        class Backend:
            @staticmethod
            def get_supported_kernel_block_sizes(_spec: Any = None) -> list[Any]:
                return sizes

            @staticmethod
            def customize_spec(spec: Any) -> Any:
                return spec

        shapes, dtypes = state

        class Model:
            @staticmethod
            def get_mamba_state_shape_from_config(_config: Any) -> Any:
                return shapes

            @staticmethod
            def get_mamba_state_dtype_from_config(_config: Any) -> Any:
                return dtypes

        class Here(self.platform):  # type: ignore[misc, name-defined]
            @classmethod
            def _find_non_ssm_backends(cls, _config: Any) -> list[Any]:
                return [Backend]

        self.registry.resolve_model_cls = lambda *_args, **_kwargs: (Model, "")
        Here._align_hybrid_block_size(config, Backend)

    def _layer(
        self, layer: dict[str, Any], case: dict[str, Any], config: Any, state: tuple[Any, Any] | None
    ) -> list[tuple[str, Any]]:
        """The specifications that a layer registers, as its class would make them."""
        made: list[tuple[str, Any]] = []
        cache, attention = config.cache_config, case["attention"]
        dtype = config.model_config.dtype
        if cache.cache_dtype != "auto":
            dtype = self.torch_dtypes[cache.cache_dtype]
        if layer["attention"] is not None:
            common = {
                "block_size": cache.block_size,
                "num_kv_heads": attention["kv_heads"],
                "head_size": attention["head_dim"],
                "dtype": dtype,
            }
            kind = layer["attention"]
            if kind == "latent":
                spec = self.specs.MLAAttentionSpec(**common, cache_dtype_str=cache.cache_dtype)
            elif kind == "sliding":
                spec = self.specs.SlidingWindowSpec(**common, sliding_window=layer["window"])
            elif kind == "chunked":
                spec = self.specs.ChunkedLocalAttentionSpec(**common, attention_chunk_size=layer["window"])
            else:
                spec = self.specs.FullAttentionSpec(**common)
            made.append((f"{layer['index']}.attention", spec))
        if layer["state"]:
            assert state is not None
            made.append(
                (
                    f"{layer['index']}.state",
                    self.specs.MambaSpec(
                        shapes=tuple(state[0]),
                        dtypes=tuple(state[1]),
                        block_size=cache.mamba_block_size,
                        page_size_padded=cache.mamba_page_size_padded,
                        mamba_cache_mode=cache.mamba_cache_mode,
                        num_speculative_blocks=config.num_speculative_tokens,
                    ),
                )
            )
        return made


def _tensor(tensor: Any) -> list[Any]:
    """A KVCacheTensor of either shape as plain values."""
    if hasattr(tensor, "layer_stride"):
        return [list(tensor.layers), tensor.layer_stride, tensor.block_stride, tensor.offset, tensor.size]
    return [list(tensor.shared_by), tensor.size]


def _layer_outermost() -> Any:
    """The layout in which a layer's blocks lie together; releases before 0.30 have no other."""
    from vllm.v1.kv_cache_layout import KVCacheLayout

    return KVCacheLayout.LBNHC


if __name__ == "__main__":
    main()
