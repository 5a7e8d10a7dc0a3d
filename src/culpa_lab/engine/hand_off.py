"""Hidden states on their way from one stage to the next: a ring of buffers in memory that both stages share."""

import mmap

import numpy as np
import numpy.typing as npt


class HandOff:
    """A ring of [rows, hidden] float32 buffers, one for each step that may be in flight and one to spare.

    Made before the stages' processes are forked: they share the memory. A step's buffer is found by its number;
    it is free again before the ring comes round, since fewer steps are in flight than there are buffers.
    """

    def __init__(self, depth: int, rows: int, hidden: int) -> None:
        self._slots = depth + 1
        memory = mmap.mmap(-1, max(1, self._slots * rows * hidden * 4))
        self._buffers = np.frombuffer(memory, dtype=np.float32).reshape(self._slots, rows, hidden)
        signatures = mmap.mmap(-1, self._slots * 16)
        self._signatures = np.frombuffer(signatures, dtype=np.int64).reshape(self._slots, 2)

    def buffer(self, step: int, rows: int) -> npt.NDArray[np.float32]:
        """The first rows of a step's buffer."""
        view: npt.NDArray[np.float32] = self._buffers[step % self._slots, :rows]
        return view

    def sign(self, step: int, rows: int, checksum: int) -> None:
        """Leave word of what was put into a step's buffer, for whoever takes it out."""
        self._signatures[step % self._slots] = rows, checksum

    def signed(self, step: int) -> tuple[int, int]:
        """Rows and checksum of a step's buffer as its sender left them."""
        rows, checksum = self._signatures[step % self._slots].tolist()
        return rows, checksum
