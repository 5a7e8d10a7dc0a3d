"""When two failures are the same: the template of an event, and families of symptoms."""

import re

from culpa.model import Signature

_MAX_EVENT = 300
_STEPS: tuple[tuple[re.Pattern[str], str], ...] = (
    # The module of an exception's type differs between versions (torch.OutOfMemoryError, torch.cuda...).
    (re.compile(r"^(?:[A-Za-z_]\w{0,80}\.){1,8}(?=[A-Z]\w{0,80}(?:$|:| in ))"), ""),
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b(?:chatcmpl|cmpl|req|embd|resp)-[\w-]{1,80}"), "<id>"),
    (re.compile(r"\b0x[0-9a-fA-F_]{1,40}\b"), "<address>"),
    (re.compile(r"[\w.+-]{1,20}://[^\s'\"<>]{1,300}"), "<url>"),
    # Of a source file the name says which code it is; of any other path nothing does.
    (
        re.compile(
            r"(?:\.{0,2}/)?(?:[\w.+@~-]{1,120}/){1,40}([\w.+-]{1,120}\.(?:py|pyx|cu|cuh|cc|cpp|c|h|hpp))\b"
        ),
        r"\1",
    ),
    (re.compile(r"(?<![\w>/.])(?:\.{0,2}|~)/[\w.+@%~/-]{1,400}"), "<path>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<host>"),
    (re.compile(r"(?<![A-Za-z])(DP|PP|TP|EP|rank|cuda:|hip:|GPU ?)\d{1,6}(?![A-Za-z\d])"), r"\1<n>"),
    (re.compile(r"(?<![A-Za-z_\d])\d{1,40}(?:,\d{3}){0,8}(?:\.\d{1,40})?(?:e[+-]?\d{1,4})?(?![\d])"), "<n>"),
    (re.compile(r"<n> ?(?:[KMGT]i?B|bytes|[kMG]B)\b"), "<size>"),
    (re.compile(r"([\[({])<n>(?:, ?<n>){1,200},?([\])}])"), r"\1<n>\2"),
    (re.compile(r"\s{1,}"), " "),
)

_MEMORY_FAULT = frozenset(
    {"cuda_illegal_access", "cuda_misaligned_address", "cuda_launch_failure", "cublas_error"}
)
_WRONG_OUTPUT = frozenset(
    {
        "wrong_answer",
        "gibberish",
        "nan_logits",
        "degenerate",
        "degeneration",
        "not_repeatable",
        "wrong_tokens",
    }
)
_HANG = frozenset({"hang", "hang_timeout", "request_hang", "nccl_timeout"})
_FAMILIES = (_MEMORY_FAULT, _WRONG_OUTPUT, _HANG)


def normalise(text: str) -> str:
    """The template of an event: numbers, sizes, addresses, paths, process ids and request ids replaced.

    Idempotent. Digits inside a word (fp8, sm_121a, q4_0) stay: they name things.

    >>> normalise("ValueError: needed 12.00 GiB at 0x7f00, /models/a has 3 shards")
    'ValueError: needed <size> at <address>, <path> has <n> shards'
    """
    result = text.strip()[: 4 * _MAX_EVENT]
    for _ in range(4):
        before = result
        for pattern, replacement in _STEPS:
            result = pattern.sub(replacement, result)
        result = result.strip()
        if result == before:
            break
    return result[:_MAX_EVENT].rstrip()


def family(symptom: str) -> frozenset[str] | None:
    """The family of symptoms that are faces of the same fault, or None if the symptom stands alone."""
    return next((members for members in _FAMILIES if symptom in members), None)


def same_failure(a: Signature, b: Signature) -> bool:
    """Whether two signatures may be the same fault.

    The kind of process must be the same where both know it. Within a family of symptoms (memory faults of a
    GPU, wrong output, hangs) that is enough, since one fault shows several faces; else symptom and event
    template must be equal. The rank is no part of it: the same fault may strike another rank.
    """
    if a.process is not None and b.process is not None and a.process != b.process:
        return False
    members = family(a.symptom)
    if members is not None and b.symptom in members:
        return True
    if a.symptom != b.symptom:
        return False
    if a.event is None or b.event is None:
        return True
    return normalise(a.event) == normalise(b.event)
