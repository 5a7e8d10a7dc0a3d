"""Numbers out of tensors without waiting for the device.

On the host they are there at once. On a CUDA device a copy is made in stream order, brought to pinned memory on a
stream of its own, and looked at one step later; what is not there by then is looked at later still, and given up after
a few steps. Nothing here waits for the device.
"""

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

DEPTH = 8
"""Steps that a copy may take before it is given up."""

Numbers = Sequence[Any]


class Fetcher:
    """`fetch` tensors, and get their content by a call: at once on the host, from `poll` on a device."""

    def __init__(self, device: Any) -> None:
        self.deferred = getattr(device, "type", "cpu") != "cpu"
        self.given_up = 0
        self._stream: Any = None
        self._pending: deque[tuple[Any, list[Any], Callable[[list[Any]], None]]] = deque()

    def fetch(self, tensors: Sequence[Any], then: Callable[[list[Any]], None]) -> None:
        """Call `then` with each tensor's content as something that can be indexed."""
        if not self.deferred:
            then([numbers(tensor) for tensor in tensors])
            return
        import torch

        if self._stream is None:
            self._stream = torch.cuda.Stream()
        main = torch.cuda.current_stream()
        # In the order of the main stream, so that a later step can't overwrite what this one was given.
        copies = [tensor.detach().clone() for tensor in tensors]
        self._stream.wait_stream(main)
        pinned = []
        with torch.cuda.stream(self._stream):
            for copy in copies:
                host = torch.empty(copy.shape, dtype=copy.dtype, device="cpu", pin_memory=True)
                host.copy_(copy, non_blocking=True)
                if copy.is_cuda:
                    copy.record_stream(self._stream)
                pinned.append(host)
            event = torch.cuda.Event()
            event.record(self._stream)
        self._pending.append((event, pinned, then))

    def poll(self) -> None:
        """Hand over what has arrived, oldest first."""
        while self._pending and self._pending[0][0].query():
            _, pinned, then = self._pending.popleft()
            then([numbers(tensor) for tensor in pinned])
        while len(self._pending) > DEPTH:
            self._pending.popleft()
            self.given_up += 1


def numbers(tensor: Any) -> Numbers:
    """A host tensor's content: a list of rows for two dimensions, else a flat sequence. No copy where it can be."""
    flat = tensor.detach()
    if flat.dim() == 2:
        return [_row(row) for row in flat]
    return _row(flat.reshape(-1))


def _row(tensor: Any) -> Numbers:
    name = str(tensor.dtype)
    if name == "torch.int32" and array("i").itemsize == 4 and tensor.is_contiguous():
        return memoryview(tensor.numpy())
    content: Numbers = tensor.tolist()
    return content
