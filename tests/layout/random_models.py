"""Random models, partitions and memories, from a seed: every family, and settings at their edges."""

from dataclasses import replace
from random import Random
from typing import Any

from culpa.layout import BadLayout, Plan, Settings, make_plan, read_shape
from culpa.layout.settings import NEWEST


def random_config(random: Random) -> dict[str, Any]:
    """A config.json of a random family. Sizes are small or real, counts from one layer on."""
    layers = random.choice([random.randint(1, 12), random.randint(13, 80)])
    heads = random.choice([4, 8, 16, 24, 32])
    config: dict[str, Any] = {
        "num_hidden_layers": layers,
        "hidden_size": random.choice([128, 1024, 2048, 4096, 5120]),
        "num_attention_heads": heads,
        "num_key_value_heads": random.choice([1, 2, 4, 8, heads]),
        "head_dim": random.choice([64, 128, 256]),
        "intermediate_size": random.choice([512, 8192, 17408]),
        "vocab_size": random.choice([512, 32000, 151936]),
        "max_position_embeddings": random.choice([4096, 32768, 131072, 262144]),
        "tie_word_embeddings": random.random() < 0.5,
    }
    config["model_type"] = family = random.choice(FAMILIES)
    FILL[family](config, random)
    if random.random() < 0.2:
        config["mtp_num_hidden_layers"] = random.randint(1, 3)
    return config


def _delta_net(config: dict[str, Any], random: Random) -> None:
    keys = random.choice([4, 8, 16])
    config |= {
        "linear_num_key_heads": keys,
        "linear_num_value_heads": keys * random.choice([1, 2, 3]),
        "linear_key_head_dim": random.choice([64, 128]),
        "linear_value_head_dim": random.choice([64, 128]),
        "linear_conv_kernel_dim": 4,
    }
    choice = random.random()
    if choice < 0.4:
        config["full_attention_interval"] = random.randint(2, 6)
    elif choice < 0.8:
        config["layer_types"] = [
            random.choice(["linear_attention", "full_attention"]) for _ in range(config["num_hidden_layers"])
        ]
    if random.random() < 0.5:
        config["mamba_ssm_dtype"] = random.choice(["float32", "bfloat16"])


def _mamba(config: dict[str, Any], random: Random) -> None:
    config |= {
        "mamba_n_heads": 32,
        "mamba_d_head": 64,
        "mamba_d_ssm": 2048,
        "mamba_expand": 2,
        "mamba_n_groups": random.choice([1, 2, 8]),
        "mamba_d_state": random.choice([16, 128]),
        "mamba_d_conv": 4,
        "n_mamba_heads": 8,
        "n_groups": random.choice([1, 8]),
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
    }
    if config["model_type"] == "bamba":
        count = config["num_hidden_layers"]
        config["attn_layer_indices"] = sorted(random.sample(range(count), random.randint(0, count)))
    elif config["model_type"] in ("granitemoehybrid", "zamba2"):
        pair = ["mamba", "hybrid"] if config["model_type"] == "zamba2" else ["mamba", "attention"]
        config["layer_types"] = [random.choice(pair) for _ in range(config["num_hidden_layers"])]
    elif config["model_type"] == "nemotron_h":
        config["hybrid_override_pattern"] = "".join(
            random.choice("MM*-E") for _ in range(config["num_hidden_layers"])
        )


def _plain(config: dict[str, Any], random: Random) -> None:
    if config["model_type"] in ("llama", "mistral") and random.random() < 0.5:
        config["layer_types"] = [
            random.choice(["full_attention", "sliding_attention"]) for _ in range(config["num_hidden_layers"])
        ]
        config["sliding_window"] = random.choice([128, 1024, 4096])
    if config["model_type"] in ("gemma3_text", "gpt_oss", "gemma2", "cohere2"):
        config["sliding_window"] = random.choice([128, 1024, 4096])
    if config["model_type"] == "llama4_text":
        config["attention_chunk_size"] = random.choice([1024, 8192])
    if config["model_type"] == "kimi_linear":
        count = config["num_hidden_layers"]
        full = [index + 1 for index in range(count) if random.random() < 0.3]
        config["linear_attn_config"] = {
            "full_attn_layers": full, "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4,
        }  # fmt: skip
        config |= {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
    if config["model_type"] == "deepseek_v3":
        config |= {"kv_lora_rank": random.choice([256, 512]), "qk_rope_head_dim": 64}
    if config["model_type"] == "minimax":
        config["attn_type_list"] = [random.randint(0, 1) for _ in range(config["num_hidden_layers"])]
    if config["model_type"] == "lfm2":
        count = config["num_hidden_layers"]
        config["full_attn_idxs"] = sorted(random.sample(range(count), random.randint(0, count)))
        config["conv_L_cache"] = 3
    if config["model_type"] == "qwen3_moe":
        config |= {"num_experts": 64, "moe_intermediate_size": 768, "num_experts_per_tok": 8}


FILL = {
    **dict.fromkeys(["qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"], _delta_net),
    **dict.fromkeys(["bamba", "granitemoehybrid", "zamba2", "nemotron_h", "falcon_h1", "jamba"], _mamba),
    **dict.fromkeys(
        [
            "llama", "mistral", "gemma3_text", "gemma2", "gpt_oss", "cohere2", "llama4_text", "kimi_linear",
            "deepseek_v3", "minimax", "lfm2", "qwen3_moe",
        ],
        _plain,
    ),
}  # fmt: skip
FAMILIES = sorted(FILL)


def random_partition(layers: int, stages: int, random: Random) -> tuple[int, ...] | None:
    """A split that adds up: the default, an even one, or one with extreme and empty stages."""
    kind = random.random()
    if kind < 0.25:
        return None
    if kind < 0.85 and layers >= stages:
        marks = sorted(random.sample(range(1, layers), stages - 1))
    else:
        marks = sorted(random.choice([0, 1, layers - 1, layers]) for _ in range(stages - 1))
    return tuple(end - start for start, end in zip([0, *marks], [*marks, layers], strict=True))


def random_settings(layers: int, random: Random, modes: tuple[str, ...]) -> Settings:
    """Settings that vLLM would take, without memory."""
    stages = random.choice([1, 1, 2, 3, 3, 4, 8])
    mode = random.choice(modes)
    return Settings(
        pipeline_parallel_size=stages,
        partition=random_partition(layers, stages, random),
        tensor_parallel_size=random.choice([1, 1, 1, 2, 4]),
        max_model_len=random.choice([None, None, -1, 1, 100, 8192, 131072]),
        block_size=random.choice([None, None, 16, 32, 64, 128, 256]),
        attention_backend=random.choice([None, None, "FLASHINFER", "CPU_ATTN", "TRITON_ATTN"]),
        dtype=random.choice([None, "bfloat16", "float16", "float32"]),
        kv_cache_dtype=random.choice(["auto", "auto", "fp8"]),
        mamba_ssm_cache_dtype=random.choice(["auto", "auto", "float32", "bfloat16"]),
        prefix_caching=mode != "none",
        mamba_cache_mode="all" if mode == "all" else None,
        speculative_tokens=random.choice([0, 0, 0, 1, 3]),
        hybrid_manager=random.random() > 0.15,
        async_scheduling=random.choice([None, True, False]),
        v2_runner=random.choice([None, True, False]),
        max_num_batched_tokens=random.choice([None, 512, 2048, 16384]),
    )


def with_memory(plan: Plan, random: Random) -> Settings:
    """The plan's settings with memory: around what one request needs, far above it, or a number of blocks."""
    needed = plan.blocks_per_request
    if random.random() < 0.3:
        return replace(plan.settings, blocks=max(1, needed + random.choice([0, 1, 2, 37, 5000])))
    memory = []
    for stage in plan.stages:
        block = max(1, stage.bytes_per_block)
        edge = random.choice([0, 1, -1, 2 * block, block - 1, block + 1, 3 * block // 2])
        factor = random.choice([1.0, 1.5, 2.0, random.uniform(0.99, 3), random.uniform(1, 100)])
        memory.append(max(0, int(needed * factor) * block + edge))
    return replace(plan.settings, kv_memory=tuple(memory))


def random_plans(
    count: int,
    seed: int,
    modes: tuple[str, ...] = ("none", "align"),
    engine_version: tuple[int, ...] = NEWEST,
) -> list[Plan]:
    """Plans of random models; what is refused before memory is looked at is drawn again."""
    random = Random(seed)
    plans: list[Plan] = []
    while len(plans) < count:
        shape = read_shape(random_config(random))
        settings = random_settings(len(shape.layers), random, modes)
        settings = replace(settings, engine_version=engine_version)
        try:
            plans.append(make_plan(shape, with_memory(make_plan(shape, settings), random)))
        except BadLayout:
            continue
    return plans
