"""What search answers when it is asked for the next step."""

from dataclasses import dataclass
from typing import Literal

from culpa.model import Configuration

Purpose = Literal[
    "baseline",
    "all_safe",
    "arm",
    "search",
    "sufficient",
    "necessary",
    "workaround",
    "threshold",
    "relation",
    "level",
    "instrument",
    "masking",
]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The next trial: its configuration, why it is run, and how many bits it is expected to tell.

    `arm` is a name that a person recognises, `reason` a sentence for the report.
    """

    configuration: Configuration
    purpose: Purpose
    arm: str
    reason: str
    expected_bits: float = 0.0
