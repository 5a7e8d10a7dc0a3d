"""What a suite stands for: kinds of request, and their size."""

from dataclasses import replace

import pytest

from culpa.hunt import Sizes, Suite
from culpa.model.options import IsolateOptions
from culpa.probes import Limits
from culpa.verify.verifier import QUICK_TOKENS, VerifyOptions, fitting, with_suite

LIMITS = Limits("m", context_tokens=65_536)


def kinds(options: VerifyOptions) -> set[str]:
    return {probe.name for probe in Suite(with_suite(options).probes).probes(LIMITS, Sizes())}


def test_the_quick_suite_is_a_few_kinds_with_a_shorter_long_prompt() -> None:
    quick = VerifyOptions(suite="quick")
    assert kinds(quick) == {"short", "medium", "completions", "stream", "same_twice", "cold"}
    assert with_suite(quick).probes.probe_tokens == QUICK_TOKENS


def test_a_size_that_was_asked_for_stays() -> None:
    quick = VerifyOptions(suite="quick", probes=IsolateOptions(probe_tokens=600))
    assert with_suite(quick).probes.probe_tokens == 600


@pytest.mark.parametrize("suite", ["standard", "soak"])
def test_the_other_suites_ask_everything(suite: str) -> None:
    options = replace(VerifyOptions(), suite=suite)
    assert with_suite(options) == options
    assert {"warm", "switch", "many_at_once"} <= kinds(options)


def test_the_quick_suites_own_length_fits_into_a_small_context() -> None:
    quick = with_suite(VerifyOptions(suite="quick"))
    assert fitting(quick, Limits("m", context_tokens=1024)).probe_tokens == 819
    assert fitting(quick, LIMITS).probe_tokens == QUICK_TOKENS


def test_a_length_that_was_asked_for_is_asked_whatever_the_context() -> None:
    asked = with_suite(VerifyOptions(suite="quick", probes=IsolateOptions(probe_tokens=4000)))
    assert fitting(asked, Limits("m", context_tokens=1024)).probe_tokens == 4000
