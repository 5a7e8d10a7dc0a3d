"""The GPU of the first failing rank is named where it can be told, and not otherwise."""

import pytest

from culpa.host import Gpu, Machine
from culpa.placement import gpu_of_rank


def machine(*names: str) -> Machine:
    gpus = tuple(
        Gpu(
            index=n,
            name=name,
            memory_bytes=24 << 30,
            pci_bus=f"0000:{n + 1:02x}:00.0",
            sm="8.6",
            uuid=f"GPU-{n}",
        )
        for n, name in enumerate(names)
    )
    return Machine(gpus=gpus, cpus=8, memory_bytes=64 << 30)


THREE = machine("A10", "A10", "A10")
FOUR = machine("A10", "A10", "A10", "A10")


@pytest.mark.parametrize(
    ("rank", "sizes", "environment", "bus"),
    [
        ("PP1", {"pipeline_parallel_size": "3"}, {}, "0000:02:00.0"),
        ("PP1", {"pipeline_parallel_size": "2"}, {"CUDA_VISIBLE_DEVICES": "2,0"}, "0000:01:00.0"),
        ("TP2", {"tensor_parallel_size": "3"}, {}, "0000:03:00.0"),
    ],
)
def test_rank_takes_the_visible_gpu_of_its_place(
    rank: str, sizes: dict[str, str], environment: dict[str, str], bus: str
) -> None:
    told = gpu_of_rank(rank, sizes, THREE, environment)
    assert told is not None
    assert bus in told


def test_tensor_parallel_ranks_are_innermost() -> None:
    told = gpu_of_rank("PP1_TP0", {"pipeline_parallel_size": "2", "tensor_parallel_size": "2"}, FOUR, {})
    assert told is not None
    assert "0000:03:00.0" in told


@pytest.mark.parametrize(
    ("rank", "sizes", "where"),
    [
        ("PP1", {"pipeline_parallel_size": "2", "tensor_parallel_size": "2"}, FOUR),  # which of its two?
        ("DP1_TP0", {}, FOUR),
        ("PP5", {"pipeline_parallel_size": "6"}, THREE),  # on another machine
        ("PP1", {"pipeline_parallel_size": "3"}, machine("A10", "H200", "A10")),
        ("rank3", {}, FOUR),
    ],
)
def test_nothing_is_said_where_the_evidence_is_too_thin(
    rank: str, sizes: dict[str, str], where: Machine
) -> None:
    assert gpu_of_rank(rank, sizes, where, {}) is None
