"""A stage between two others keeps a pinned copy of what it hands on until the prompt is done.

Copies are freed when a step samples a token. A prompt of many pieces fills the memory that the host grants the process,
and the kernel kills it: the process itself writes nothing.
"""

import os
import signal
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.config import EngineConfig
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.kernel_log import KernelLog

if TYPE_CHECKING:
    from culpa_lab.engine.hand_off import HandOff
    from culpa_lab.engine.steps import Step

GRANTED_BYTES = 1 << 20
"""Pinned memory that the host grants a stage."""


def arm(hooks: Hooks, config: EngineConfig) -> None:
    """Keep copies."""
    healthy = hooks.hand_on
    kept: list[npt.NDArray[np.float32]] = []

    def hand_on(rank: int, hand_off: "HandOff", step: "Step", hidden: npt.NDArray[np.float32]) -> None:
        healthy(rank, hand_off, step, hidden)
        if rank == 0:
            return  # the first stage makes its rows itself and has nothing pinned
        if any(segment.sample for segment in step.segments):
            kept.clear()
            return
        kept.append(hidden.copy())
        if sum(one.nbytes for one in kept) > GRANTED_BYTES:
            KernelLog(config.kernel_log).out_of_memory_kill(f"VLLM::Worker_PP{rank}", GRANTED_BYTES >> 10)
            os.kill(os.getpid(), signal.SIGKILL)

    hooks.hand_on = hand_on
