"""Experiments that the report tests render: one a way in which an experiment can end."""

from dataclasses import replace

from tests.report.blocks import (
    ASSERTION,
    ENVIRONMENT,
    FACTORS,
    GIBBERISH,
    LAUNCH,
    LEFT_OUT,
    PAIR,
    SAFE,
    SUSPECT,
    status,
    trial,
)

from culpa.model import (
    Commands,
    Conclusion,
    Count,
    Experiment,
    ExperimentOutcome,
    Exposure,
    Factor,
    FactorStatus,
    Finding,
    Gpu,
    KnownIssue,
    Launch,
    LeftOut,
    Level,
    Member,
    OtherFailure,
    Outcome,
    RootEvent,
    RootEvidence,
    Signature,
    Trial,
    XidSeen,
    all_suspect,
)
from culpa.model.layout_finding import LayoutFinding


def isolated() -> Experiment:
    """Eager and three stages: the fault of the real engine that the project's first transcript shows."""
    trials = (
        trial(1, Outcome.FAIL, SUSPECT, arm="baseline", purpose="baseline", signature=ASSERTION),
        trial(2, Outcome.PASS, SAFE, arm="all safe", purpose="all_safe"),
        trial(
            3,
            Outcome.FAIL,
            SAFE.with_levels({"execution": "eager", "pipeline_parallel_size": "3", "block_size": "32"}),
            arm="only execution, pipeline size and block size suspect",
            signature=ASSERTION,
        ),
        trial(4, Outcome.FAIL, PAIR, arm="only execution and pipeline size suspect", signature=ASSERTION),
        trial(5, Outcome.FAIL, PAIR, arm="only execution and pipeline size suspect", signature=ASSERTION),
        trial(
            6,
            Outcome.PASS,
            SUSPECT.with_levels({"execution": "compiled"}),
            arm="as launched, but compiled",
            purpose="necessary",
        ),
        trial(
            7,
            Outcome.PASS,
            SUSPECT.with_levels({"pipeline_parallel_size": "1"}),
            arm="as launched, but one stage",
            purpose="necessary",
        ),
        trial(
            8,
            Outcome.UNTESTABLE,
            SUSPECT.with_levels({"kv_cache_dtype": "bfloat16"}),
            arm="kv_cache_dtype",
            reason="not what was asked",
            mismatches=("kv_cache_dtype: asked for bfloat16, the engine says auto",),
        ),
    )
    members = (
        Member("execution", "eager", "compiled"),
        Member("pipeline_parallel_size", "3", "1"),
    )
    return Experiment(
        culpa_version="0.1.0",
        run_id="20260101-120000-isolate",
        started="2026-01-01T12:00:00+00:00",
        elapsed_seconds=412.7,
        engine="vLLM",
        engine_version="0.32.0",
        launch=LAUNCH,
        factors=FACTORS,
        left_out=LEFT_OUT,
        trials=trials,
        baseline=Count(1, 1),
        hunted=ASSERTION,
        root=RootEvidence(
            event=RootEvent(
                line=412,
                text="(Worker_PP1 pid=231) ERROR 01-01 12:00:41 [multiproc_executor.py:1007] AssertionError",
                time="12:00:41",
                process="worker",
                rank="PP1",
            ),
            trial=1,
            log="trials/0001/engine.log",
            excerpt=(
                (411, "(Worker_PP1 pid=231) INFO 01-01 12:00:40 [worker.py:88] executing the first batch"),
                (
                    412,
                    "(Worker_PP1 pid=231) ERROR 01-01 12:00:41 [multiproc_executor.py:1007] AssertionError",
                ),
                (413, "(EngineCore pid=198) ERROR 01-01 12:00:41 [core.py:966] Worker failed with error ''"),
            ),
            cascade="14 later error lines of EngineCore and APIServer are only consequences.",
            missing=("nothing was read from the kernel log: reading it needs permission",),
        ),
        conclusion=Conclusion(
            outcome=ExperimentOutcome.ISOLATED,
            findings=(
                Finding(
                    members=members,
                    level=Level.ISOLATED,
                    probability=0.9791,
                    sufficient=Count(2, 2),
                    necessary=(("execution", Count(0, 1)), ("pipeline_parallel_size", Count(0, 1))),
                    conditions=("pipeline_parallel_size >= 2 fails, 1 passes",),
                ),
            ),
            statuses=(
                status("execution", "in", "passes when compiled"),
                status("pipeline_parallel_size", "in", "passes with one stage"),
                status("prefix_caching", "out", "fails with it off too"),
                status("max_num_batched_tokens", "out", "fails with it safe too"),
                status("block_size", "out", "fails with it safe too"),
                status("kv_cache_dtype", "untested", "its arm was not what it claimed"),
                status("cpu_kv_space", "out", "fails with it safe too"),
                status("launch_blocking", "untested", "an instrument; not needed here"),
            ),
            not_excluded=(
                "that another version of vLLM behaves in another way",
                "that the failure also needs something that all trials had: model, machine, request",
            ),
        ),
        commands=Commands(
            failing=LAUNCH.command_line(),
            passing=Launch(
                tuple(word for word in LAUNCH.argv if word != "--enforce-eager"), LAUNCH.env
            ).command_line(),
            differing=(members[0],),
            failing_trial=1,
            passing_trial=6,
        ),
        options=(("seed", "0"), ("max-trials", "40")),
        environment=ENVIRONMENT,
        notes=(
            "The model knows nothing: answers were compared with the reference configuration, "
            "tolerance 0.12 nats.",
        ),
        folder="culpa-runs/20260101-120000-isolate",
    )


def incident() -> Experiment:
    """Three stages under graphs: a symptom shift, masking and an intermittent baseline."""
    illegal = Signature(
        "cuda_illegal_access",
        process="worker",
        rank="PP1",
        event="RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
    )
    factors = (
        Factor("execution", "graphs", ("eager",), prior=0.2),
        Factor("prefix_caching", "on", ("off",), prior=0.2),
        Factor("pipeline_parallel_size", "3", ("1",), numeric=True),
        Factor("pipeline_partition", "23,23,18", ("24,24,16",)),
        Factor("launch_blocking", "off", ("on",), instrument=True),
        Factor("prompt_tokens", "27525", ("200",), scope="request", numeric=True),
    )
    launched = all_suspect(factors)
    long = Exposure(requests=4, tokens=27525, seconds=5.2, concurrency=1)
    soak = Exposure(requests=40, tokens=1_101_000, seconds=1260.0, concurrency=2)

    def arm(number: int, outcome: Outcome, name: str, seen: Signature | None, **levels: str) -> Trial:
        made = trial(
            number,
            outcome,
            launched.with_levels(levels),
            arm=name,
            signature=seen,
            exposure=soak if outcome is Outcome.PASS else long,
        )
        return replace(made, async_stack=seen == illegal)

    return replace(
        isolated(),
        factors=factors,
        launch=Launch(
            ("vllm", "serve", "Qwen3.8-27B", "-pp", "3", "--api-key", "sk-abcdefgh12345678"),
            (("VLLM_PP_LAYER_PARTITION", "23,23,18"), ("HF_TOKEN", "hf_abcdefghijklmnop")),
        ),
        left_out=(LeftOut("tensor_parallel_size", "the machine has three GPUs"),),
        trials=(
            arm(1, Outcome.FAIL, "baseline", illegal),
            arm(2, Outcome.PASS, "baseline", None),
            arm(3, Outcome.FAIL, "baseline", illegal),
            arm(
                4,
                Outcome.PASS,
                "all safe",
                None,
                execution="eager",
                prefix_caching="off",
                prompt_tokens="200",
            ),
            arm(5, Outcome.OTHER, "prefix off", GIBBERISH, prefix_caching="off"),
            arm(6, Outcome.PASS, "eager", None, execution="eager"),
            arm(7, Outcome.FAIL, "aligned", illegal, pipeline_partition="24,24,16"),
            arm(8, Outcome.PASS, "blocking launches", None, launch_blocking="on"),
            arm(9, Outcome.PASS, "short prompts", None, prompt_tokens="200"),
        ),
        baseline=Count(2, 3),
        hunted=illegal,
        root=RootEvidence(
            event=RootEvent(
                88,
                "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
                None,
                "worker",
                "PP1",
            ),
            trial=1,
            log="trials/0001/engine.log",
            async_stack=True,
            missing=("the host's kernel log (journalctl -k) for the minute of the failure",),
            gpu=Gpu("0000:c1:00.0", 1, None, "Xid 31 names process 4303"),
            xids=(
                XidSeen(
                    31,
                    "0000:c1:00.0",
                    12,
                    stale=False,
                    means="page fault of the GPU's MMU",
                    cause="application",
                    detail="write of address 0x10c3c0000, FAULT_PDE, GPCCLIENT_T1_9",
                ),
            ),
            known_issues=(
                KnownIssue(
                    "vllm-63505",
                    "Qwen3.5 class hybrid under pipeline parallelism: illegal access on a cold long prefill",
                    "https://github.com/vllm-project/vllm/issues/63505",
                    match=True,
                    why="the same signature (qwen3_next.py); reachable here: pipeline-parallel size",
                    status="closed",
                    shown="eager with blocking launches passes; not shown: the cause",
                ),
                KnownIssue(
                    "vllm-37035",
                    "Illegal access in gdn_attn.py with more than four speculative tokens",
                    "https://github.com/vllm-project/vllm/issues/37035",
                    match=False,
                    why="the same signature (gdn_attn.py)",
                    differs=("speculative decoding: off here, mtp there",),
                ),
            ),
        ),
        other_failures=(
            OtherFailure(
                GIBBERISH,
                (("prefix_caching", "off"),),
                "symptom shift: no crash, but wrong answers; this is no mitigation",
                (5,),
            ),
        ),
        conclusion=Conclusion(
            ExperimentOutcome.ISOLATED,
            findings=(
                Finding(
                    (
                        Member("execution", "graphs", "eager"),
                        Member("prompt_tokens", "27525", "200"),
                    ),
                    Level.CONTRAST,
                    0.62,
                    Count(0, 0),
                    (("execution", Count(0, 1)), ("prompt_tokens", Count(0, 1))),
                ),
            ),
            statuses=(
                FactorStatus("execution", "graphs", "eager", "in", "passes eager"),
                FactorStatus("prompt_tokens", "27525", "200", "in", "passes with short prompts"),
                FactorStatus("pipeline_partition", "23,23,18", "24,24,16", "out", "fails when aligned too"),
                FactorStatus("prefix_caching", "on", "off", "untested", "made safe it fails in another way"),
                FactorStatus("launch_blocking", "off", "on", "masking", "with it the failure does not show"),
            ),
            not_excluded=("a race between stages: blocking launches hide the failure",),
        ),
        commands=Commands(
            failing="VLLM_PP_LAYER_PARTITION=23,23,18 vllm serve Qwen3.8-27B -pp 3 "
            "--api-key sk-abcdefgh12345678",
            passing="VLLM_PP_LAYER_PARTITION=23,23,18 vllm serve Qwen3.8-27B -pp 3 "
            "--api-key sk-abcdefgh12345678 --enforce-eager",
            differing=(Member("execution", "graphs", "eager"),),
            failing_trial=1,
            passing_trial=6,
            failing_request="a cold prompt of 27,525 tokens",
            passing_request="a cold prompt of 27,525 tokens",
        ),
        notes=(),
        layout=(
            LayoutFinding(
                "boundary_inside_period",
                "note",
                "layers repeat every 4, and 2 boundaries (layer 23 and layer 46) cut into a period",
                (),
            ),
        ),
    )


def no_failure() -> Experiment:
    """The launch as it is passed three times."""
    trials = tuple(
        trial(number, Outcome.PASS, SUSPECT, arm="baseline", purpose="baseline") for number in (1, 2, 3)
    )
    return replace(
        isolated(),
        trials=trials,
        baseline=Count(0, 3),
        hunted=None,
        root=None,
        commands=None,
        conclusion=Conclusion(ExperimentOutcome.NO_FAILURE),
        no_failure="Tried: 27 requests, 10,200 tokens, 0.6 minutes under requests, up to 1 at once.",
        notes=(),
    )


def all_safe_fails() -> Experiment:
    """Also with everything safe it fails."""
    base = isolated()
    return replace(
        base,
        trials=(
            base.trials[0],
            trial(2, Outcome.FAIL, SAFE, arm="all safe", purpose="all_safe", signature=ASSERTION),
        ),
        conclusion=Conclusion(
            ExperimentOutcome.ALL_SAFE_FAILS,
            not_excluded=("the engine's version", "the machine and its drivers", "the model files"),
        ),
        commands=Commands(failing=base.launch.command_line(), failing_trial=1),
    )


def inconclusive() -> Experiment:
    """The number of trials ran out."""
    base = isolated()
    return replace(
        base,
        trials=base.trials[:3],
        conclusion=Conclusion(
            ExperimentOutcome.INCONCLUSIVE,
            not_excluded=(
                "execution + pipeline_parallel_size (61%)",
                "execution + block_size (22%)",
                "pipeline_parallel_size + block_size (11%)",
            ),
        ),
        commands=Commands(
            failing=base.launch.command_line(),
            passing="vllm serve ./tiny-hybrid",
            differing=(Member("execution", "eager", "compiled"), Member("block_size", "32", "16")),
            failing_trial=1,
            passing_trial=2,
        ),
        limits_reached=("3 trials (--max-trials 3)",),
    )


def interrupted() -> Experiment:
    """Ctrl-C after the second trial."""
    base = inconclusive()
    return replace(base, trials=base.trials[:2], limits_reached=(), interrupted=True)


CASES = {
    "isolated": isolated,
    "incident": incident,
    "no_failure": no_failure,
    "all_safe_fails": all_safe_fails,
    "inconclusive": inconclusive,
    "interrupted": interrupted,
}
