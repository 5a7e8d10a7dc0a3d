"""What to do about an incident: few steps, most telling first."""

import re
from collections.abc import Sequence

from culpa.model import Incident, XidSeen
from culpa.triage.windows import kernel_log

_FITS = re.compile(r"estimated maximum model length is (\d{1,9})")
_FAULT = frozenset({"cuda_illegal_access", "cuda_misaligned_address", "cuda_launch_failure", "cublas_error"})
_ISOLATE = "find the settings that it needs: culpa isolate -- YOUR LAUNCH COMMAND"
_BY_SYMPTOM: dict[str, tuple[str, ...]] = {
    "cuda_oom": (
        "see who holds the memory: nvidia-smi",
        "lower the memory fraction, the number of sequences or the batched tokens",
    ),
    "host_oom_kill": (
        "raise the memory limit of the container or the host, or lower what each rank takes of host memory "
        "(pinned or hierarchical caches are per rank)",
    ),
    "host_out_of_memory": ("free host memory, or raise the container's limit",),
    "startup_memory": (
        "see who holds the memory, such as a worker that outlived the last run: nvidia-smi",
        "end it, or lower the memory fraction",
    ),
    "triton_smem": ("choose another backend for this operation, or a release whose tiles fit this GPU",),
    "ptxas_fatal": (
        "point Triton to an assembler that knows the GPU: TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas",
    ),
    "weights_load": (
        "compare the checkpoint's quantisation with what this release of the engine reads; try the release that the "
        "checkpoint names",
    ),
    "device_side_assert": (
        "look for a token id or index beyond its table: vocabulary, positions, speculative tokens",
        "run once with CUDA_LAUNCH_BLOCKING=1, so that the Python stack names the call",
    ),
    "nan_logits": (
        "note from which number of concurrent requests on it happens, and whether it needs graphs or a cache hit",
        _ISOLATE,
    ),
    "bad_argument": ("correct the argument: the engine's --help lists what this release takes",),
    "gibberish": (_ISOLATE,),
}


def steps_for_xids(xids: Sequence[XidSeen]) -> tuple[str, ...]:
    """What to do with messages of the driver where nothing shows the failure that they may belong to."""
    own = [xid for xid in xids if not xid.stale]
    if not own:
        return ()
    advice = list(dict.fromkeys(xid.advice for xid in own if not xid.teardown))[:3]
    together = "read them together with the engine's own log: culpa triage ENGINE_LOG --kernel-log KERNEL_LOG"
    return (together, *advice)


def next_steps(incident: Incident) -> tuple[str, ...]:
    """Sentences; commands in them can be copied. What is missing is said elsewhere."""
    diagnosis = incident.diagnosis
    steps: list[str] = []
    if diagnosis is None:
        return ()
    blame = diagnosis.verdict.blame
    if blame in ("hardware", "driver", "link"):
        advice = dict.fromkeys(
            xid.advice for xid in diagnosis.own_xids if not xid.teardown and xid.cause in (blame, "hardware")
        )
        steps += list(advice)[:3]
        where = f" -i {diagnosis.gpu.pci_bus}" if diagnosis.gpu else ""
        steps.append(f"see what the GPU counts: nvidia-smi -q -d ECC,ROW_REMAPPER{where}")
        return tuple(steps)
    if diagnosis.matches:
        steps.append(f"compare with {diagnosis.matches[0].url}")
    if incident.symptom in _FAULT:
        steps += _fault(incident)
    if incident.symptom == "nccl_error" and blame == "configuration":
        steps.append("give the container more shared memory: docker run --shm-size=16g, or --ipc=host")
    if incident.symptom == "kv_cache_too_small":
        steps.append(_cache(incident))
    steps += _BY_SYMPTOM.get(incident.symptom, ())
    return tuple(steps)


def _fault(incident: Incident) -> list[str]:
    diagnosis = incident.diagnosis
    assert diagnosis is not None
    steps = []
    if incident.async_stack:
        steps.append(
            "run once with CUDA_LAUNCH_BLOCKING=1 to see the kernel; if it never fails then, that speaks for a race"
        )
    if not diagnosis.xids and incident.root is not None:
        steps.append(f"get the driver's own record: {kernel_log(incident.root.time)} | grep NVRM")
    steps.append(_ISOLATE)
    return steps


def _cache(incident: Incident) -> str:
    found = _FITS.search(incident.root.text) if incident.root is not None else None
    if found is not None:
        return f"set the maximum model length to {found[1]} or less, or raise the memory fraction"
    return "lower the maximum model length, or raise the memory fraction"
