"""Rounding errors add up over a long prompt: what is a difference after 100 tokens is noise after 25,000."""

import pytest

from culpa.probes.reference import TOLERANCE_FLOOR, Reference, tolerance_floor


@pytest.mark.parametrize(("tokens", "floor"), [(0, 0.1), (1000, 0.1), (4000, 0.2), (25_000, 0.5)])
def test_floor_grows_with_the_root_of_the_length(tokens: int, floor: float) -> None:
    assert tolerance_floor(tokens) == pytest.approx(floor, rel=0.02)


def test_measured_noise_counts_where_it_is_larger() -> None:
    noisy = Reference({}, noise=0.4, pairs=5, tolerance=0.8)
    assert noisy.tolerance_at(25_000) == 0.8


def test_floor_counts_where_the_measured_noise_is_smaller() -> None:
    quiet = Reference({}, noise=0.0, pairs=10, tolerance=TOLERANCE_FLOOR)
    assert quiet.tolerance_at(25_000) == pytest.approx(0.5)
