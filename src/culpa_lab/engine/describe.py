"""The engine's configuration in one line, as vLLM's engine core prints it."""

from culpa_lab.engine.config import EngineConfig


def describe(config: EngineConfig) -> str:
    """What is in effect, in the order and the words of vLLM's `VllmConfig.__str__`."""
    graphs = config.graphs
    mode = config.cudagraph_mode if graphs else "NONE"
    codes = {
        "NONE": "0", "PIECEWISE": "1", "FULL": "2", "FULL_DECODE_ONLY": "(2, 0)", "FULL_AND_PIECEWISE": "(2, 1)",
    }  # fmt: skip
    compilation = (
        f"{{'mode': <CompilationMode.{'VLLM_COMPILE: 3' if graphs else 'NONE: 0'}>, "
        f"'backend': '{'inductor' if graphs else 'eager'}', "
        f"'custom_ops': ['none'], 'cudagraph_mode': <CUDAGraphMode.{mode}: {codes[mode]}>, "
        f"'cudagraph_capture_sizes': {list(config.capture_sizes) if config.decode_graphs else []}}}"
    )
    return (
        f"model='{config.model}', speculative_config=None, tokenizer='{config.model}', skip_tokenizer_init=False, "
        f"dtype=torch.{config.dtype}, max_seq_len={config.max_model_len}, load_format=auto, "
        f"tensor_parallel_size=1, pipeline_parallel_size={config.stages}, data_parallel_size=1, quantization=None, "
        f"enforce_eager={config.enforce_eager}, kv_cache_dtype=auto, device_config=cpu, seed={config.seed or 0}, "
        f"served_model_name={config.served_model_name}, enable_prefix_caching={config.enable_prefix_caching}, "
        f"enable_chunked_prefill={config.enable_chunked_prefill}, mamba_cache_mode={config.mamba_cache_mode}, "
        f"pooler_config=None, compilation_config={compilation}"
    )
