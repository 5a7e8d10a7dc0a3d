"""Hardware, software, memory or configuration: where a failure lies by the evidence, and why."""

from collections.abc import Sequence

from culpa.model import Verdict
from culpa.model.diagnosis import Blame
from culpa.triage.xid_catalogue import xid_catalogue
from culpa.triage.xid_judgement import JudgedXid
from culpa.triage.xids import Xid, address_pattern, describe, one_bad_launch

_MEMORY_FAULT = frozenset(
    {"cuda_illegal_access", "cuda_misaligned_address", "cuda_launch_failure", "cuda_error"}
)
_HARDWARE = frozenset({"gpu_hw_ecc", "gpu_hw_lost"})
_HANG = frozenset({"hang_timeout", "nccl_timeout", "hang", "request_hang"})
_BY_SYMPTOM: dict[str, tuple[Blame, str]] = {
    "cuda_oom": (
        "memory",
        "the GPU had no memory left for this allocation: no fault of memory, but too little of it",
    ),
    "host_oom_kill": ("memory", "the host's kernel killed the process for its use of host memory"),
    "host_out_of_memory": ("memory", "the process could get no more host memory"),
    "kv_cache_too_small": ("configuration", "the cache does not fit into what the settings leave for it"),
    "startup_memory": ("memory", "less memory is free at start than the settings ask for"),
    "triton_smem": (
        "configuration",
        "a kernel's tiles need more shared memory than this GPU has: the same on every rank",
    ),
    "ptxas_fatal": ("software", "the assembler does not know this GPU or this instruction set"),
    "triton_compile": ("software", "a kernel could not be compiled"),
    "weights_load": ("configuration", "the checkpoint and what the engine expects of it differ"),
    "bad_argument": ("configuration", "the engine does not take this argument"),
    "device_side_assert": ("software", "a kernel found an index or value out of bounds and stopped by itself"),
    "nan_logits": ("software", "the model computed values that are no numbers; no Xid and no ECC error goes with it"),
    "assertion": ("software", "the program found itself in a state that it excludes"),
}  # fmt: skip


def judge_fault(symptom: str, text: str, xids: Sequence[JudgedXid], *, kernel_seen: bool) -> Verdict:
    """The verdict for a failure of this class whose root event reads `text`. `kernel_seen` is whether the kernel log
    was there to be read, so that the absence of Xids says something."""
    own = [judged.xid for judged in xids if not judged.stale and not judged.teardown]
    kinds = {cause: [xid for xid in own if _cause(xid) == cause] for cause in ("hardware", "link", "driver")}
    if own and kinds["hardware"]:
        return Verdict("hardware", _named(kinds["hardware"]))
    if symptom in _HARDWARE and not _only_text(text):
        return Verdict("hardware", "the kernel log says that the GPU failed")
    if kinds["driver"]:
        return Verdict("driver", f"{_named(kinds['driver'])}; the part itself can't be excluded")
    if symptom == "gsp_timeout":
        return Verdict(
            "driver", "the GPU's system processor did not answer; the part itself can't be excluded"
        )
    fatal_links = [xid for xid in kinds["link"] if xid.severity in (None, "Fatal")]
    if fatal_links and symptom in _MEMORY_FAULT | _HANG | {"nccl_error"}:
        return Verdict("link", _named(fatal_links))
    if (hidden := _hidden(xids)) is not None:
        return hidden
    if "uncorrectable ECC" in text:
        return Verdict(
            "unknown",
            "the text speaks of memory that fails, but no Xid agrees; software has produced this text too",
        )
    if symptom in _MEMORY_FAULT:
        if symptom == "cuda_launch_failure" and not own and not kernel_seen:
            return Verdict(
                "unknown",
                "mostly a kernel at fault, but a failing GPU gives this text too: no kernel log was there to read",
            )
        return _memory_fault(own, xids, kernel_seen)
    if symptom == "nccl_error":
        if "/dev/shm" in text or "shmutils" in text:
            return Verdict("configuration", "shared memory is too small for NCCL")
        return Verdict("unknown", "NCCL's own words decide between network, memory and another rank")
    if symptom in _HANG:
        seen = "no Xid was seen" if kernel_seen else "the kernel log was not there to be read"
        return Verdict("unknown", f"a hang may be software or a failing part: {seen}")
    found = _BY_SYMPTOM.get(symptom)
    return Verdict(*found) if found is not None else Verdict("unknown", "the text alone does not tell")


def _hidden(xids: Sequence[JudgedXid]) -> Verdict | None:
    """The verdict by a code that only the driver's later messages name as what came before them."""
    here = {judged.xid.code for judged in xids}
    for judged in xids:
        code = judged.xid.caused_by
        meaning = xid_catalogue().get(code) if code is not None and code not in here else None
        if meaning is None or judged.stale:
            continue
        why = f"Xid {judged.xid.code} on {judged.xid.pci_bus} names Xid {code} as its cause ({meaning.meaning}); "
        why += "that message itself is not in this log"
        if meaning.cause == "link":
            return Verdict("link", why)
        if meaning.cause == "hardware":
            return Verdict("hardware", why)
        if meaning.cause == "driver":
            return Verdict("driver", why)
    return None


def _memory_fault(own: Sequence[Xid], xids: Sequence[JudgedXid], kernel_seen: bool) -> Verdict:
    faults = [xid for xid in own if xid.code in (13, 31)]
    if not faults:
        why = (
            "no Xid of failing hardware was seen"
            if kernel_seen
            else "the kernel log was not there to be read"
        )
        return Verdict("software", f"a kernel used memory that it must not: {why}")
    reasons = [
        f"Xid {', '.join(str(code) for code in sorted({xid.code for xid in faults}))} and no failing part before it"
    ]
    reasons += [judged.why for judged in xids if judged.teardown and _cause(judged.xid) == "hardware"][:1]
    fault = next((xid for xid in faults if xid.fault is not None), None)
    if fault is not None:
        reasons.append(describe(fault))
    if one_bad_launch(faults):
        reasons.append("several multiprocessors say the same, which is one bad launch")
    pattern = address_pattern(faults)
    if pattern in ("fixed", "drifting") and len({xid.time for xid in faults if xid.fault}) > 1:
        reasons.append(f"the address is {pattern} over its incidents")
    return Verdict("software", "; ".join(reasons))


def _only_text(text: str) -> bool:
    return "NVRM" not in text and "fallen off" not in text


def _cause(xid: Xid) -> str | None:
    meaning = xid_catalogue().get(xid.code)
    return meaning.cause if meaning is not None else None


def _named(xids: Sequence[Xid]) -> str:
    codes = dict.fromkeys(xid.code for xid in xids)
    buses = dict.fromkeys(xid.pci_bus for xid in xids)
    meanings = [xid_catalogue()[code].meaning for code in codes if code in xid_catalogue()]
    where = ", ".join(buses)
    return (
        f"Xid {', '.join(str(code) for code in codes)} on {where}: {meanings[0] if meanings else 'unknown'}"
    )
