"""Hand-overs between stages: a checksum travels along with the tensors, and is compared where they arrive.

The sender adds one small tensor to the dictionary that goes to the next stage; the receiver takes it out again. So
both ends need the guard, and nothing else has to be agreed. Checksums are of the rows of real tokens: a stage may pad.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from culpa_guard.checks import Parcel, check_handover
from culpa_guard.guard import Guard
from culpa_guard.vllm.deferred import Fetcher

KEY = "culpa_guard_sums"
_RECORD = 6
"""Numbers per tensor: checksum, dimensions, and the first four lengths."""


class Handover:
    """Wraps a pipeline group's sending and receiving in one process."""

    def __init__(self, group: Any, fetcher: Fetcher, guard: Guard) -> None:
        self.tokens = 0
        """Tokens of the current step; rows beyond are padding."""
        self.corrupt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        """A planted fault: what to send instead."""
        self._fetcher = fetcher
        self._guard = guard
        self._sent: Any = None
        self._names: list[str] = []
        send, receive = group.isend_tensor_dict, group.irecv_tensor_dict

        def isend_tensor_dict(tensor_dict: dict[str, Any], *words: Any, **names: Any) -> Any:
            outgoing: list[dict[str, Any]] = []
            gather = names.get("all_gather_group")
            guard.run("handover_sent", lambda: outgoing.append(self._outgoing(tensor_dict, gather)))
            return send(outgoing[0] if outgoing else tensor_dict, *words, **names)

        def irecv_tensor_dict(*words: Any, **names: Any) -> Any:
            tensor_dict, handles, postprocess = receive(*words, **names)
            self._sent = tensor_dict.pop(KEY, None) if isinstance(tensor_dict, dict) else None
            if self._sent is not None:
                self._names = _tensors(tensor_dict)
                postprocess.append(lambda: self._arrived(tensor_dict))
            return tensor_dict, handles, postprocess

        group.isend_tensor_dict = isend_tensor_dict
        group.irecv_tensor_dict = irecv_tensor_dict

    def given(self, tensors: Mapping[str, Any]) -> None:
        """The model is about to compute with these."""
        sent, self._sent = self._sent, None
        if sent is not None:
            self._guard.run("handover", lambda: self._compare(sent, tensors, "what the model is given"))

    def _arrived(self, tensor_dict: Mapping[str, Any]) -> None:
        sent = self._sent
        if sent is not None:
            self._guard.run("handover", lambda: self._compare(sent, tensor_dict, "what arrived"))

    def _outgoing(self, tensor_dict: dict[str, Any], gather: Any) -> dict[str, Any]:
        names = _tensors(tensor_dict)
        sums = self._records([tensor_dict[name] for name in names])
        size = int(getattr(gather, "world_size", 1) or 1)
        while size > 1 and sums.numel() % size == 0:
            # A length that can't be shared out, so that every rank of the next stage gets the whole.
            sums = _append_zero(sums)
        sent = dict(tensor_dict)
        if self.corrupt is not None:
            sent = self.corrupt(sent)
        return {**sent, KEY: sums}

    def _compare(self, sums: Any, tensors: Mapping[str, Any], where: str) -> None:
        sent_names, names = self._names, _tensors(tensors)
        found = self._records([tensors[name] for name in names])
        step = self._guard.steps

        def arrived(contents: list[Any]) -> None:
            both = _parcels(contents[0], sent_names), _parcels(contents[1], names)
            self._guard.report(check_handover(*both, where), step)

        self._fetcher.fetch([sums, found], arrived)

    def _records(self, tensors: list[Any]) -> Any:
        import torch

        if not tensors:
            return torch.zeros(0, dtype=torch.int64)
        # Rows of padding are not handed over: each stage may have another number of them.
        rows = [one[: self.tokens] if one.dim() and one.shape[0] >= self.tokens else one for one in tensors]
        sums = torch.stack([_checksum(one) for one in rows])
        shapes = torch.tensor([[one.dim(), *[*one.shape, 0, 0, 0, 0][:4]] for one in rows], dtype=torch.int64)
        if sums.is_cuda:
            # From pinned memory, so that the copy doesn't wait for the device.
            shapes = shapes.pin_memory().to(sums.device, non_blocking=True)
        return torch.cat([sums.reshape(-1, 1), shapes], dim=1).reshape(-1)


def _tensors(tensor_dict: Mapping[str, Any]) -> list[str]:
    return sorted(name for name, value in tensor_dict.items() if hasattr(value, "data_ptr"))


def _checksum(tensor: Any) -> Any:
    """One whole number of a tensor's bytes, on its device. It depends on their order."""
    import torch

    flat = tensor.detach().contiguous().view(torch.uint8).reshape(-1)
    if flat.device.type == "cpu":
        return torch.tensor(zlib.crc32(memoryview(flat.numpy())), dtype=torch.int64)
    flat = torch.nn.functional.pad(flat, (0, -flat.numel() % 4)).view(torch.int32).to(torch.int64)
    weights = torch.arange(1, 2 * flat.numel(), 2, device=flat.device, dtype=torch.int64)
    return (flat * weights).sum()


def _append_zero(tensor: Any) -> Any:
    import torch

    return torch.cat([tensor, torch.zeros(1, dtype=tensor.dtype, device=tensor.device)])


def _parcels(numbers: Any, names: list[str]) -> dict[str, Parcel]:
    parcels = {}
    for place, name in enumerate(names):
        record = [int(number) for number in numbers[place * _RECORD : (place + 1) * _RECORD]]
        if len(record) == _RECORD:
            parcels[name] = Parcel(tuple(record[2 : 2 + min(record[1], 4)]), record[0])
    return parcels
