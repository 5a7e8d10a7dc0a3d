"""What the experiments of the report tests are made of."""

from culpa.model import (
    Configuration,
    Exposure,
    Factor,
    FactorStatus,
    Launch,
    LeftOut,
    Outcome,
    Signature,
    Status,
    Trial,
    all_safe,
    all_suspect,
)

FACTORS = (
    Factor("execution", "eager", ("compiled",), prior=0.2, meaning="how the model's graph is run"),
    Factor("pipeline_parallel_size", "3", ("1", "2"), prior=0.1, numeric=True, meaning="stages"),
    Factor("prefix_caching", "on", ("off",), prior=0.15, meaning="reuse of cached prompt blocks"),
    Factor("max_num_batched_tokens", "2048", ("8192",), numeric=True, minimum=64),
    Factor("block_size", "32", ("16",), numeric=True),
    Factor("kv_cache_dtype", "auto", ("bfloat16",)),
    Factor("cpu_kv_space", "1", ("4",), numeric=True),
    Factor("launch_blocking", "off", ("on",), instrument=True, meaning="makes kernel launches synchronous"),
)

LEFT_OUT = (
    LeftOut("cuda_graph_mode", "this build has no CUDA graphs"),
    LeftOut("speculative_decoding", "the launch does not use it"),
)

LAUNCH = Launch(
    argv=(
        "python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "./tiny-hybrid",
        "--enforce-eager",
        "-pp",
        "3",
        "--compilation-config",
        '{"level": 0}',
    ),
    env=(("VLLM_CPU_KVCACHE_SPACE", "1"), ("VLLM_CPU_OMP_THREADS_BIND", "0|1|1"), ("VLLM_PORT", None)),
)

ASSERTION = Signature(
    "assertion_error",
    process="worker",
    rank="PP1",
    event="AssertionError in sync_and_gather_intermediate_tensors",
)
GIBBERISH = Signature("wrong_answer", process=None, rank=None, event="the answer repeats one token")

ENVIRONMENT = (
    ("engine", "vLLM 0.32.0 (CPU)"),
    ("python", "3.12.3"),
    ("torch", "2.13.0+cpu"),
    ("os", "Ubuntu 24.04.3 x86-64"),
    ("gpus", "none (no NVML library)"),
)


def trial(
    number: int,
    outcome: Outcome,
    levels: Configuration,
    *,
    arm: str,
    purpose: str = "search",
    signature: Signature | None = None,
    reason: str = "",
    exposure: Exposure | None = None,
    mismatches: tuple[str, ...] = (),
) -> Trial:
    """A trial with times that follow from its number, so that tables have something to show."""
    failed = outcome in (Outcome.FAIL, Outcome.OTHER)
    asked = exposure or Exposure(requests=1 if failed else 9, tokens=220 if failed else 3400, seconds=12.5)
    return Trial(
        id=number,
        configuration=levels,
        outcome=outcome,
        purpose=purpose,
        arm=arm,
        reason=reason,
        signature=signature,
        seconds=40.0 + number,
        start_seconds=31.5,
        verdict_delay_seconds=0.4 if failed else None,
        exposure=asked,
        effective=(
            ("engine_version", "0.32.0"),
            ("execution", levels.get("execution")),
            ("pipeline_parallel_size", levels.get("pipeline_parallel_size")),
            ("attention_backend", "CPU_ATTN"),
        ),
        mismatches=mismatches,
        exit_code=0 if failed else -15,
        folder=f"trials/{number:04d}",
    )


SUSPECT = all_suspect(FACTORS)
SAFE = all_safe(FACTORS)
PAIR = SAFE.with_levels({"execution": "eager", "pipeline_parallel_size": "3"})


def status(name: str, verdict: Status, reason: str) -> FactorStatus:
    """A status for one of the factors above."""
    factor = next(factor for factor in FACTORS if factor.name == name)
    return FactorStatus(name, factor.suspect, factor.safe[0], verdict, reason)
