"""Logs of real runs on this kind of machine (vLLM 0.32 on CPU, llama.cpp's server), shortened, paths replaced."""

from pathlib import Path

import pytest

from culpa.model import Incident
from culpa.triage import LogReader

LOGS = Path(__file__).parent / "logs"


def read(name: str) -> LogReader:
    reader = LogReader(name.partition("-")[0])
    reader.feed((LOGS / f"{name}.log").read_bytes().decode("utf-8", "replace").split("\n"))
    return reader


def judged(name: str, exit_code: int) -> Incident:
    incident = read(name).incident(exit_code=exit_code)
    assert incident is not None
    assert incident.root is not None
    return incident


@pytest.mark.parametrize(
    ("name", "exit_code", "symptom", "place", "event"),
    [
        (
            "vllm-0.32-cpu-eager-pp3",
            0,
            "assertion",
            ("worker", "PP1"),
            "AssertionError in sync_and_gather_intermediate_tensors",
        ),
        (
            "vllm-0.32-cpu-partition-8-8-0",
            1,
            "exception",
            ("worker", "PP2"),
            "RuntimeError: No Qwen3Next layer found in the model.layers.",
        ),
        (
            "vllm-0.32-cpu-configuration-error",
            1,
            "exception",
            ("api_server", None),
            "ValidationError: <n> validation error for VllmConfig Value error, Model Runner V2 requires Triton.",
        ),
        (
            "llamacpp-quantised-v-without-flash-attention",
            1,
            "startup_error",
            ("server", None),
            "llama_init_from_model: quantized V cache requires flash_attn to be enabled",
        ),
        (
            "llamacpp-batch-below-parallel",
            -6,
            "assertion",
            ("server", None),
            "llama-context.cpp:<n>: GGML_ASSERT(n_outputs_max <= cparams.n_outputs_max) failed",
        ),
        (
            "llamacpp-missing-model",
            1,
            "startup_error",
            ("server", None),
            "gguf_init_from_file: failed to open GGUF file '<path>' (No such file or directory)",
        ),
        (
            "llamacpp-cut-model",
            1,
            "startup_error",
            ("server", None),
            "llama_model_load: error loading model: tensor 'token_embd.weight' data is not within the file bounds, "
            "model is corrupted or incomplete",
        ),
    ],
)
def test_a_real_failure_is_told_by_its_first_event(
    name: str, exit_code: int, symptom: str, place: tuple[str, str | None], event: str
) -> None:
    incident = judged(name, exit_code)
    assert (incident.symptom, (incident.process, incident.rank), incident.event) == (symptom, place, event)
    assert incident.missing_evidence == ()


def test_too_little_memory_at_start_is_the_workers_error_and_not_the_cores() -> None:
    incident = judged("vllm-0.32-cpu-not-enough-memory", 1)
    assert (incident.symptom, incident.process) == ("startup_memory", "worker")
    assert (incident.event or "").startswith(
        "ValueError: Available memory on node <n> (<n>/<size>) on startup"
    )


def test_the_first_failed_rank_of_the_pipeline_is_named() -> None:
    assert judged("vllm-0.32-cpu-eager-pp3", 0).first_failed_rank == (("pp", 1),)
    assert judged("vllm-0.32-cpu-partition-8-8-0", 1).first_failed_rank == (("pp", 2),)


def test_what_follows_five_minutes_later_is_cascade() -> None:
    incident = judged("vllm-0.32-cpu-eager-pp3", 0)
    lines = (LOGS / "vllm-0.32-cpu-eager-pp3.log").read_text("utf-8").split("\n")
    told = [lines[number - 1] for number in incident.cascade_lines]
    for words in ("RPC call to sample_tokens timed out", "EngineDeadError", "No available shared memory"):
        assert any(words in line for line in told)


def test_a_worker_assertion_is_decisive_as_soon_as_its_line_is_read() -> None:
    reader = LogReader("vllm")
    for line in (LOGS / "vllm-0.32-cpu-eager-pp3.log").read_text("utf-8").split("\n"):
        before = reader.decisive
        reader.feed([line])
        if reader.decisive:
            assert not before
            assert line.endswith("AssertionError")
            break
    assert reader.decisive
    incident = reader.incident()
    assert incident is not None
    assert incident.event == "AssertionError in sync_and_gather_intermediate_tensors"


def test_a_ggml_assertion_is_decisive_and_an_error_line_at_start_is_not() -> None:
    assert read("llamacpp-batch-below-parallel").decisive
    assert not read("llamacpp-quantised-v-without-flash-attention").decisive


@pytest.mark.parametrize(
    ("name", "exit_code"),
    [
        ("llamacpp-good", 0),
        ("llamacpp-context-exceeded", 0),
        ("llamacpp-template-refused", 0),
        ("vllm-0.32-cpu-ended-by-sigterm", 0),
        ("vllm-0.32-cpu-ended-by-sigterm", -15),
        ("vllm-0.32-cpu-slow-start", 0),
    ],
)
def test_a_run_that_was_asked_to_end_has_no_incident(name: str, exit_code: int) -> None:
    reader = read(name)
    assert not reader.decisive
    assert reader.incident() is None
    assert reader.incident(exit_code=exit_code) is None


def test_a_start_that_says_nothing_has_no_incident_while_it_lives() -> None:
    assert read("llamacpp-silent-start").incident() is None


def test_a_server_that_dies_after_request_errors_died_of_its_signal() -> None:
    reader = LogReader("llamacpp")
    lines = (LOGS / "llamacpp-context-exceeded.log").read_text("utf-8").split("\n")
    reader.feed(line for line in lines if "cleaning up" not in line and "~Server" not in line)
    incident = reader.incident(exit_code=-11)
    assert incident is not None
    assert (incident.symptom, incident.event, incident.root) == ("segfault", "killed by SIGSEGV", None)
