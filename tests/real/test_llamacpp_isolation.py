"""Real, unplanted faults of llama.cpp's server, isolated from nothing but the launch command."""

import pytest
from tests.real.isolation import Isolated, isolate

pytestmark = [pytest.mark.engine, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def quantised_v(llamacpp: str, tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    launch = (
        "--ctx-size 1024 --batch-size 256 --ubatch-size 128 --parallel 2 --cache-type-v q4_0 "
        "--flash-attn off --kv-unified --no-cont-batching"
    )
    return isolate(tmp_path_factory.mktemp("quantised") / "run", [llamacpp, *launch.split()])


@pytest.fixture(scope="module")
def small_batch(llamacpp: str, tmp_path_factory: pytest.TempPathFactory) -> Isolated:
    launch = (
        "--ctx-size 1024 --batch-size 2 --parallel 4 --cache-type-k q8_0 --no-cont-batching --no-warmup "
        "--no-cache-prompt --flash-attn on --kv-unified --swa-full"
    )
    return isolate(tmp_path_factory.mktemp("batch") / "run", [llamacpp, *launch.split()])


def test_quantised_v_cache_without_flash_attention_is_isolated_as_a_pair(quantised_v: Isolated) -> None:
    assert quantised_v.code == 1
    assert quantised_v.found == [{"cache_type_v", "flash_attn"}]
    assert quantised_v.accused == {"cache_type_v", "flash_attn"}


def test_at_least_eight_factors_were_varied(quantised_v: Isolated) -> None:
    assert len(quantised_v.varied) >= 8


def test_root_event_is_the_first_error_and_not_the_generic_last_one(quantised_v: Isolated) -> None:
    assert "quantized V cache requires flash_attn" in quantised_v.result["signature"]["event"]


def test_isolation_of_the_pair_takes_under_three_minutes(quantised_v: Isolated) -> None:
    assert quantised_v.result["elapsed_seconds"] < 180


def test_batch_smaller_than_parallel_names_both_numbers(small_batch: Isolated) -> None:
    assert small_batch.code == 1
    assert small_batch.found == [{"batch_size", "parallel"}]


def test_condition_between_the_two_numbers_is_named(small_batch: Isolated) -> None:
    assert any("batch_size < parallel" in text for text in small_batch.result["findings"][0]["conditions"])


def test_root_event_of_an_abort_is_the_assertion_line(small_batch: Isolated) -> None:
    assert small_batch.result["signature"]["symptom"] == "assertion"
    assert "GGML_ASSERT" in small_batch.result["signature"]["event"]
