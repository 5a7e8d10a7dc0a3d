"""Event templates, and when two failures are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.model import Signature
from culpa.triage import normalise, same_failure


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("needed 12.00 GiB, had 9 MiB", "needed <size>, had <size>"),
        ("at 0x7f00_ab12 in /models/a b", "at <address> in <path> b"),
        ("shape [2, 48, 128] vs (1, 2)", "shape [<n>] vs (<n>)"),
        ("../aten/src/ATen/native/Index.cu:92: block: [1,0,0]", "Index.cu:<n>: block: [<n>]"),
        ("torch.OutOfMemoryError: CUDA out of memory", "OutOfMemoryError: CUDA out of memory"),
        ("no kernel for sm_121a, fp8, q4_0", "no kernel for sm_121a, fp8, q4_0"),
        ("request chatcmpl-ab12 from 10.0.0.9:50022", "request <id> from <host>"),
        ("rank3 of PP1_TP0 on cuda:2", "rank<n> of PP<n>_TP<n> on cuda:<n>"),
        ("GET https://example.org/a?b=1 failed", "GET <url> failed"),
        ("KeyError: 'layers.32.self_attn'", "KeyError: 'layers.<n>.self_attn'"),
        ("and/or either", "and/or either"),
    ],
)
def test_what_differs_between_two_runs_is_replaced(text: str, template: str) -> None:
    assert normalise(text) == template


@given(st.text(max_size=400))
def test_a_template_is_its_own_template(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_numbers_make_no_difference(a: int, b: int) -> None:
    assert normalise(f"bad size {a} of {b}") == normalise(f"bad size {b} of {a}")


def worker(
    symptom: str, event: str | None = None, rank: str | None = None, process: str | None = "worker"
) -> Signature:
    return Signature(symptom, process, rank, event)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (worker("exception", "ValueError: bad <n>"), worker("exception", "ValueError: bad <n>"), True),
        (worker("exception", "ValueError: bad 3"), worker("exception", "ValueError: bad 4"), True),
        (worker("exception", "ValueError: bad"), worker("exception", "KeyError: 'x'"), False),
        (worker("assertion", "AssertionError in a"), worker("assertion", "AssertionError in b"), False),
        (
            worker("assertion", "AssertionError in a", "PP1"),
            worker("assertion", "AssertionError in a", "PP2"),
            True,
        ),
        (worker("cuda_illegal_access", "a"), worker("cuda_misaligned_address", "b"), True),
        (worker("cuda_illegal_access", "a"), worker("cublas_error", "b"), True),
        (worker("cuda_illegal_access"), worker("cuda_oom"), False),
        (worker("cuda_illegal_access"), worker("cuda_illegal_access", process="engine_core"), False),
        (worker("cuda_illegal_access"), worker("cuda_illegal_access", process=None), True),
        (worker("gibberish"), worker("nan_logits"), True),
        (worker("wrong_answer"), worker("hang"), False),
        (worker("hang"), worker("hang_timeout"), True),
        (worker("silent_death", "killed by SIGKILL"), worker("silent_death", "exit code 1"), False),
        (worker("segfault", "killed by SIGSEGV"), worker("abort", "killed by SIGABRT"), False),
        (worker("startup_error", "a"), worker("startup_error", None), True),
    ],
)
def test_two_failures_are_the_same_or_not(a: Signature, b: Signature, same: bool) -> None:
    assert same_failure(a, b) is same
    assert same_failure(b, a) is same
