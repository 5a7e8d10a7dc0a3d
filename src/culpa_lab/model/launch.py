"""How layers run their calls: at once, or written to a tape that is replayed later; and where scratch comes from.

A layer never calls NumPy directly in decode: it *launches* kernels (`launch(kernel, *arguments)`, the output
among the arguments). `eager` runs them at once. A `Tape` writes them down with their buffers bound, as the capture
of a CUDA graph does, and `replay` runs them without the Python between them: the same addresses every time.
A kernel is any callable that works in place on the buffers bound to it and decides nothing while it is recorded.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from culpa_lab.model.arrays import Array


class Launch(Protocol):
    """Runs a kernel, or writes it down. What a kernel returns is dropped: it works in place."""

    def __call__(self, kernel: Callable[..., object], /, *arguments: object) -> None: ...


def eager(kernel: Callable[..., object], /, *arguments: object) -> None:
    """Run at once."""
    kernel(*arguments)


class Tape:
    """A captured step: kernels in order with their arguments bound. Capturing runs nothing.

    Views that a layer makes while it is recorded (slices, reshapes, transpositions) are made once, at capture.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[Callable[..., object], tuple[object, ...]]] = []

    def __call__(self, kernel: Callable[..., object], /, *arguments: object) -> None:
        """Write a kernel down."""
        self._calls.append((kernel, arguments))

    def __len__(self) -> int:
        return len(self._calls)

    def replay(self) -> None:
        """Run all kernels in order on the buffers they were captured with."""
        for kernel, arguments in self._calls:
            kernel(*arguments)


class Workspace:
    """Scratch memory by name: the same name and shape give the same memory until a larger shape was asked for.

    Nothing in it outlives a layer. Two workers, or a captured step and an eager one that may run between its
    calls, need one each. What a tape has bound stays alive with the tape.
    """

    def __init__(self) -> None:
        self._buffers: dict[str, Array] = {}
        self._views: dict[tuple[str, tuple[int, ...]], Array] = {}

    def array(self, name: str, *shape: int) -> Array:
        """A C-contiguous float32 array of that shape. Its content is whatever was left there."""
        view = self._views.get((name, shape))
        if view is None:
            size = 1
            for length in shape:
                size *= length
            flat = self._buffers.get(name)
            if flat is None or flat.size < size:
                flat = np.empty(size, np.float32)
                self._buffers[name] = flat
                self._views = {key: kept for key, kept in self._views.items() if key[0] != name}
            if len(self._views) > 4096:
                self._views.clear()
            view = flat[:size].reshape(shape)
            self._views[name, shape] = view
        return view

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return sum(buffer.nbytes for buffer in self._buffers.values())
