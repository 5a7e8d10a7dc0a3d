"""A device that behaves like a GPU: pages, faults that are noticed late, a context that stays poisoned."""

from collections.abc import Iterable

import numpy as np

from culpa_lab.engine.errors import (
    ILLEGAL_ACCESS,
    TRITON_ILLEGAL_ACCESS,
    AcceleratorError,
    KernelFault,
)
from culpa_lab.engine.kernel_log import KernelLog

_BASE_ADDRESS = 0x7F3A_0400_0000
_BUSES = ("21", "41", "61", "81", "a1", "c1", "e1", "f1")


class Device:
    """The pages of one stage and the state of its context.

    A page is a cache block. `touch` stands at the head of every kernel: an access to a page that is not mapped
    ends the kernel (`KernelFault`), leaves a line in the kernel log and poisons the context. As on a GPU nobody
    is told at that moment: the error is raised where the context is used next, by `launch` or `synchronize`.
    With blocking launches (`CULPA_LAUNCH_BLOCKING=1`) it is raised at once.
    """

    def __init__(self, ordinal: int, kernel_log: KernelLog, process: str, *, blocking: bool = False) -> None:
        self.ordinal = ordinal
        self.bus = f"0000:{_BUSES[ordinal % len(_BUSES)]}:00"
        self.blocking = blocking
        self.poisoned = False
        self._kernel_log = kernel_log
        self._process = process
        self._mapped: np.ndarray = np.zeros(0, dtype=bool)
        self._page_bytes = 0

    def reserve(self, pages: int, page_bytes: int) -> None:
        """Make an address space of so many pages, none of them mapped."""
        self._mapped = np.zeros(pages, dtype=bool)
        self._page_bytes = page_bytes

    def map(self, pages: Iterable[int]) -> None:
        """Put memory behind pages."""
        for page in pages:
            self._mapped[page] = True

    def unmap(self, pages: Iterable[int]) -> None:
        """Take the memory behind pages away; the addresses stay reserved."""
        for page in pages:
            self._mapped[page] = False

    def mapped(self, page: int) -> bool:
        """Whether there is memory behind a page."""
        return 0 <= page < len(self._mapped) and bool(self._mapped[page])

    def touch(self, page: int, access: str = "READ") -> None:
        """One page is read or written by a kernel. Raises KernelFault (blocking: AcceleratorError)."""
        if self.poisoned or not (0 <= page < len(self._mapped)) or not self._mapped[page]:
            self._fault(page, access)

    def touch_all(self, pages: np.ndarray, access: str = "READ") -> None:
        """Many pages at once, checked like `touch`."""
        if self.poisoned:
            self._fault(0, access)
        if len(pages) == 0:
            return
        if int(pages.min()) < 0 or int(pages.max()) >= len(self._mapped):
            self._fault(int(pages.max()), access)
        good = self._mapped[pages]
        if not good.all():
            self._fault(int(pages[int(np.argmin(good))]), access)

    def launch(self) -> None:
        """The head of a step: launching a kernel on a poisoned context raises."""
        if self.poisoned:
            raise RuntimeError(TRITON_ILLEGAL_ACCESS)

    def synchronize(self) -> None:
        """Wait for all that was launched. Raises AcceleratorError if any of it went wrong."""
        if self.poisoned:
            raise AcceleratorError(ILLEGAL_ACCESS)

    def _fault(self, page: int, access: str) -> None:
        if not self.poisoned:
            self.poisoned = True
            if 0 <= page < len(self._mapped):
                address = _BASE_ADDRESS + page * self._page_bytes
                self._kernel_log.xid_page_fault(self.bus, self._process, address & ~0xFFF, access)
            else:
                self._kernel_log.xid_out_of_range(self.bus, self._process)
        if self.blocking:
            raise AcceleratorError(ILLEGAL_ACCESS)
        raise KernelFault(f"page {page}")
