"""The points at which a mechanism of the engine can be exchanged, each with the right behaviour as its default.

A fault (`culpa_lab.faults`) exchanges one of them by a wrong one. The engine itself knows of no fault.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from culpa_lab.engine.hand_off import HandOff
    from culpa_lab.engine.kv_cache_manager import KVCacheManager
    from culpa_lab.engine.request import Request
    from culpa_lab.engine.steps import Step

Indices = npt.NDArray[np.int64]
BlockOf = Callable[[], int]


def _by_content(digest: bytes, boundary: int) -> bytes:
    return digest


def _all_of_them(blocks: Sequence[int]) -> Sequence[int]:
    return blocks


def _nothing_more(cache: "KVCacheManager", request: "Request", left: int) -> None:
    pass


def _nothing_else(cache: "KVCacheManager", request: "Request") -> None:
    pass


def _read_at_replay(rank: int, continues: bool, current: BlockOf) -> BlockOf:
    return current


def _smallest_that_fits(sizes: Sequence[int], batch: int) -> int | None:
    return next((size for size in sizes if size >= batch), None)


def _own_rows(captured: bool, rows: list[Indices]) -> list[Indices]:
    return rows


def _group_index(first_is_full: bool, group: int, groups: int) -> int:
    return group


def _write_through(rank: int, hand_off: "HandOff", step: "Step", hidden: npt.NDArray[np.float32]) -> None:
    hand_off.buffer(step.number, len(hidden))[...] = hidden


def _at_once(end: Connection, step: "Step") -> None:
    end.send(step.number)


def _after_the_first(start: int, block_size: int) -> bool:
    return start > 0


def _always(preemptions: int) -> bool:
    return True


def _as_found(states: list[int]) -> list[int]:
    return states


def _flash(rank: int, captured: bool, tokens: int, context: int) -> int:
    return 0


def _zero_fill(page: npt.NDArray[np.float32]) -> None:
    page.fill(0)


@dataclass
class Hooks:
    """Mechanisms of one process.

    Scheduler side:
        state_key: by what a cached GDN state is found: the hash of the tokens before it.
        blocks_to_zero: which state blocks of a new request have to be cleared.
        continues: whether a piece of a prompt that begins at this position continues from a state.
        resumes_clean: whether a request begins with a cleared state, by how often it was preempted.
        restored: the blocks from which the states of a prefix hit are restored.
        scheduled: called after a request got its share of a step; `left` tokens of its answer
            are not scheduled yet.
        released: called when a request has ended, before its blocks are given back.
    Stage side:
        bind_state: what a captured piece of a prompt holds of a state block: a reference that is read at replay.
        bucket: the captured batch size that a decode batch runs in, None for none.
        state_rows: the block indices of each GDN group in a decode batch.
        group_index: which of the scheduler's block tables a group of the stage uses.
        hand_on: how hidden states get into the buffer that the next stage reads.
        send: how the next stage is told.
        scores: bytes that attention over a piece keeps for its scores, besides what was planned for.
        clear_state: how the state of a request that begins is cleared.
    """

    state_key: Callable[[bytes, int], bytes] = _by_content
    blocks_to_zero: Callable[[Sequence[int]], Sequence[int]] = _all_of_them
    continues: Callable[[int, int], bool] = _after_the_first
    resumes_clean: Callable[[int], bool] = _always
    restored: Callable[[list[int]], list[int]] = _as_found
    scheduled: Callable[["KVCacheManager", "Request", int], None] = _nothing_more
    released: Callable[["KVCacheManager", "Request"], None] = _nothing_else
    bind_state: Callable[[int, bool, BlockOf], BlockOf] = _read_at_replay
    bucket: Callable[[Sequence[int], int], int | None] = _smallest_that_fits
    state_rows: Callable[[bool, list[Indices]], list[Indices]] = _own_rows
    group_index: Callable[[bool, int, int], int] = _group_index
    hand_on: Callable[[int, "HandOff", "Step", npt.NDArray[np.float32]], None] = _write_through
    send: Callable[[Connection, "Step"], None] = _at_once
    scores: Callable[[int, bool, int, int], int] = _flash
    clear_state: Callable[[npt.NDArray[np.float32]], None] = _zero_fill
