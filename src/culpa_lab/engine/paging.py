"""Keys and values of a request, read and written through its block table and the device's page checks."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from culpa_lab.engine.device import Device

Array = npt.NDArray[np.float32]


@dataclass
class TableRow:
    """Where a request stands: its block table and the position of its first new token; -1 for padding.

    Captured calls hold the object, so that a replay sees what was copied into it.
    """

    table: npt.NDArray[np.int64]
    start: int = -1


class PagedCache:
    """The model's view of one layer's cache of one request (`culpa_lab.model.KeyValueCache`)."""

    def __init__(self, device: Device, pages: Array, row: TableRow) -> None:
        self._device = device
        self._pages = pages  # [block, 2, block size, kv heads, head dim]
        self._block_size = pages.shape[2]
        self._row = row
        self._written = 0

    def write(self, k: Array, v: Array, /) -> None:
        """Store the next tokens; padding goes to the null block."""
        row, size = self._row, self._block_size
        if row.start < 0:
            self._device.touch(0, "WRITE")
            self._pages[0, 0, 0], self._pages[0, 1, 0] = k[0], v[0]
            return
        position = row.start + self._written
        done = 0
        while done < len(k):
            column, offset = divmod(position + done, size)
            count = min(size - offset, len(k) - done)
            block = int(row.table[column])
            self._device.touch(block, "WRITE")
            page = self._pages[block]
            page[0, offset : offset + count] = k[done : done + count]
            page[1, offset : offset + count] = v[done : done + count]
            done += count
        self._written += len(k)

    def read(self) -> Iterator[tuple[Array, Array]]:
        """Pages from position 0 to what was written last."""
        row, size = self._row, self._block_size
        if row.start < 0:
            return
        total = row.start + self._written
        self._written = 0
        columns = -(-total // size)
        blocks = row.table[:columns]
        self._device.touch_all(blocks)
        for block in blocks.tolist():
            page = self._pages[block]
            count = min(size, total)
            yield page[0, :count], page[1, :count]
            total -= count
