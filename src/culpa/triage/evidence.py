"""What to fetch where a log does not hold the cause."""

from collections.abc import Sequence

from culpa.triage.events import Event, Weight
from culpa.triage.exits import evidence_after_exit
from culpa.triage.place import Speaker
from culpa.triage.windows import kernel_log


def missing_evidence(root: Event, symptom: str, clues: Sequence[Event], speaker: Speaker) -> tuple[str, ...]:
    """Sentences that name what is missing, with the command that gets it and the time to look at. Empty if
    the root states its own cause."""
    when = f" around {root.time}" if root.time else ""
    kernel = f"the kernel log{when}, for Xid, oom-kill and segfault lines: {kernel_log(root.time)}"
    if root.role in ("consequence", "header", "echo"):
        return _only_consequences(root, speaker, when, kernel)
    if root.role == "symptom" and symptom in ("hang_timeout", "nccl_timeout"):
        return (
            f"stacks of every rank while it hangs{when}, twice, half a minute apart: py-spy dump --native --pid PID",
            kernel,
        )
    if symptom == "nccl_error" and not clues:
        return ("NCCL's own words: run with NCCL_DEBUG=INFO, the reason is in an NCCL WARN line",)
    if symptom == "cublas_error":
        return (f"an earlier CUDA error, in the logs of all ranks: this may only follow it{when}", kernel)
    if (
        symptom in ("error_exit", "startup_error")
        and root.weight is Weight.ERROR_LINE
        and root.exception is None
    ):
        return (
            f"what stands before and after this line{when}, in the logs of all processes: it is of no known class",
        )
    if symptom == "abort" and root.text.startswith("Abort"):
        return (f"why the process aborted{when}: what it wrote before, or its core dump: coredumpctl info",)
    if symptom == "abort" and "terminate called after throwing" in root.text:
        return (
            f"the what() line that follows this one on standard error{when}: only it says what the exception was",
        )
    if symptom in ("cuda_launch_failure", "gpu_hw_ecc") and root.kind != "kernel" and not clues:
        # A GPU that is lost or failing looks the same from within the process.
        return (kernel, "the state of the GPUs: nvidia-smi -q -d ECC,ROW_REMAPPER")
    if symptom == "device_side_assert" and "Assertion" not in root.text:
        return ("the kernel's own assertion line, which stands on standard error before the exception",)
    return ()


def _only_consequences(root: Event, speaker: Speaker, when: str, kernel: str) -> tuple[str, ...]:
    if root.symptom == "silent_death":
        who = f"worker {root.worker}" if root.worker is not None else speaker.label or "the process that died"
        sentences = [
            f"what {who} wrote to standard error before it died{when}: this log holds only that it died"
        ]
        if root.exit_code is not None:
            sentences += evidence_after_exit(root.exit_code, root.time)
        else:
            sentences += [
                "its exit code or signal: docker inspect -f '{{.State.ExitCode}} {{.State.OOMKilled}}' CONTAINER",
                kernel,
            ]
        return tuple(sentences)
    if root.quoted:
        return (f"the worker's own traceback, that this line quotes{when}: the log of every worker",)
    if root.role == "header":
        return (
            f"the traceback that this line introduces{when}: the log ends, or was cut, before its exception",
        )
    return (
        f"standard error of the engine core and of every worker{when}: this log holds only consequences",
        "the exit code or signal of the process that died: docker inspect -f '{{.State.ExitCode}}' CONTAINER",
        kernel,
        "the state of the GPUs: nvidia-smi -q -d ECC,ROW_REMAPPER",
    )
