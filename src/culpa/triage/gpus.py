"""Which GPU is which: tables of nvidia-smi, NCCL's and llama.cpp's own words, and the variables that reorder."""

import re
from dataclasses import dataclass
from typing import TypeVar

from culpa.triage.lines import LogLine, Ranks
from culpa.triage.xids import bus_address

_BUS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
# nvidia-smi, and the same with MIG or without persistence mode.
_SMI_GPU = re.compile(
    rf"^\|\s{{1,8}}(\d{{1,3}})\s{{1,8}}(\S.{{0,60}}?)\s{{1,40}}(?:On|Off|N/A)?\s{{0,8}}\|\s{{1,8}}({_BUS})\s"
)
_SMI_PROCESS = re.compile(
    r"^\|\s{1,8}(\d{1,3})\s{1,8}(?:\S{1,6}\s{1,8}\S{1,6}\s{1,10})?(\d{1,10})\s{1,10}[CGM+]{1,3}\s{1,8}(\S.{0,80}?)\s{1,60}"
    r"(?:\d{1,9}MiB|N/A)\s{0,4}\|"
)
_LISTED = re.compile(r"^GPU (\d{1,3}): (.{1,80}?) \(UUID: (GPU-[0-9a-fA-F-]{8,40})\)")
_KERNEL_UUID = re.compile(r"NVRM: GPU at PCI:([0-9a-fA-F:.]{7,16}): (GPU-[0-9a-fA-F-]{8,40})")
_NCCL = re.compile(
    r"\brank (\d{1,5}) nranks (\d{1,5}) cudaDev (\d{1,3})(?: nvmlDev \d{1,3})? busId ([0-9a-fA-F]{3,12})\b"
)
_NCCL_SPEAKER = re.compile(r"^[\w.-]{1,120}:(\d{1,10}):\d{1,10} \[(\d{1,3})\] ")
_VISIBLE = re.compile(
    r"\b(?:CUDA|NVIDIA)_VISIBLE_DEVICES['\"]?\s{0,3}[=:]\s{0,3}['\"]?((?:\d{1,3}|GPU-[0-9a-fA-F-]{8,40})(?:,\s?(?:\d{1,3}|GPU-[0-9a-fA-F-]{8,40})){0,31})"
)
_ORDER = re.compile(r"\bCUDA_DEVICE_ORDER['\"]?\s{0,3}[=:]\s{0,3}['\"]?(PCI_BUS_ID|FASTEST_FIRST)")
_LLAMA_DEVICE = re.compile(r"^\s{0,6}Device (\d{1,3}): (.{1,60}?), compute capability ")
_LLAMA_BUS = re.compile(rf"using device CUDA(\d{{1,3}}) \((.{{1,60}}?)\) \(({_BUS})\)")
_TRT_RANK = re.compile(r"\bRank (\d{1,5}) is using GPU (\d{1,3})\b")
_LOCAL = re.compile(r"world_size=(\d{1,6}) rank=(\d{1,6}) local_rank=(\d{1,6})")
_WORKER_TITLE = re.compile(r"(?:Worker|scheduler)_?((?:_?(?:DP|PP|TP)\d{1,5}){1,3})")
_RANK_PART = re.compile(r"(DP|PP|TP)(\d{1,5})")
_COLUMNS = frozenset({"index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "name", "pid", "process_name"})
_MAX = 1024

_K = TypeVar("_K")
_V = TypeVar("_V")

LITERALS = (
    "nvidia-smi", "visible_devices", "cuda_device_order", "(uuid: gpu-", "busid", "compute capability",
    "using device cuda", "is using gpu", "local_rank=", "gpu at pci:", "pci.bus_id", "gpu_bus_id", "is using gpu",
)  # fmt: skip


@dataclass(slots=True)
class _Gpu:
    index: int | None = None
    name: str | None = None
    uuid: str | None = None


class GpuTable:
    """What a log says of the machine's GPUs and of who uses them. Bounded; never raises for any text."""

    def __init__(self) -> None:
        self._by_bus: dict[str, _Gpu] = {}
        self._bus_by_index: dict[int, str | None] = {}
        self._uuid_by_index: dict[int, str] = {}
        self._bus_by_pid: dict[int, str | None] = {}
        self._index_by_pid: dict[int, int | None] = {}
        self._bus_by_ordinal: dict[int, str | None] = {}
        self._bus_by_rank: dict[int, str | None] = {}
        self._nranks: set[int] = set()
        self._bus_by_place: dict[Ranks, str | None] = {}
        self._index_by_place: dict[Ranks, int | None] = {}
        self._name_by_ordinal: dict[int, str] = {}
        self._local_by_pid: dict[int, int | None] = {}
        self._local_by_rank: dict[int, int | None] = {}
        self._visible: set[str] = set()
        self._order: set[str] = set()
        self._header: list[str] | None = None

    def note(self, line: LogLine) -> None:
        """Learn from any line."""
        text = line.text
        if text.startswith("|"):
            self._smi(text)
            return
        if self._header is not None or ("," in text and "index" in text) or "pid, " in text:
            self._csv(text)
        if "GPU " in text and (match := _LISTED.match(text)):
            self._uuid_by_index.setdefault(int(match[1]), match[3])
        if "GPU at PCI" in text and (match := _KERNEL_UUID.search(text)):
            self._gpu(match[1], uuid=match[2])
        if "busId" in text and (match := _NCCL.search(text)):
            self._nccl(line, match)
        if "VISIBLE_DEVICES" in text and (match := _VISIBLE.search(text)):
            self._visible.add(match[1].replace(" ", ""))
        if "CUDA_DEVICE_ORDER" in text and (match := _ORDER.search(text)):
            self._order.add(match[1])
        if "compute capability" in text and (match := _LLAMA_DEVICE.match(text)):
            self._name_by_ordinal[int(match[1])] = match[2]
        if "using device CUDA" in text and (match := _LLAMA_BUS.search(text)):
            _settle(self._bus_by_ordinal, int(match[1]), bus_address(match[3]))
        if "local_rank=" in text and (match := _LOCAL.search(text)):
            _settle(self._local_by_rank, int(match[2]), int(match[3]))
            if line.pid is not None:
                _settle(self._local_by_pid, line.pid, int(match[3]))
        if "is using GPU" in text and (match := _TRT_RANK.search(text)):
            _settle(self._local_by_rank, int(match[1]), int(match[2]))

    @property
    def in_table(self) -> bool:
        """Whether rows below a header may still come."""
        return self._header is not None

    # -- reading -------------------------------------------------------------------------------------------

    def _gpu(
        self, bus_text: str, *, index: int | None = None, name: str | None = None, uuid: str | None = None
    ) -> None:
        bus = bus_address(bus_text)
        if bus is None or (bus not in self._by_bus and len(self._by_bus) >= _MAX):
            return
        gpu = self._by_bus.setdefault(bus, _Gpu())
        gpu.name = name or gpu.name
        gpu.uuid = uuid or gpu.uuid
        if index is not None:
            gpu.index = index
            _settle(self._bus_by_index, index, bus)

    def _smi(self, text: str) -> None:
        if match := _SMI_GPU.match(text):
            self._gpu(match[3], index=int(match[1]), name=match[2])
        elif match := _SMI_PROCESS.match(text):
            index = int(match[1])
            _settle(self._index_by_pid, int(match[2]), index)
            if (title := _WORKER_TITLE.search(match[3])) is not None:
                parts = {kind.lower(): int(number) for kind, number in _RANK_PART.findall(title[1])}
                place = tuple((kind, parts[kind]) for kind in ("dp", "pp", "tp") if kind in parts)
                _settle(self._index_by_place, place, index)

    def _csv(self, text: str) -> None:
        """Rows of nvidia-smi --query-gpu and --query-compute-apps, below the header that names their columns."""
        cells = [cell.strip() for cell in text.split(",")]
        names = [cell.split(" [")[0] for cell in cells]
        if len(_COLUMNS.intersection(names)) >= 2 and text.islower():
            self._header = names
            return
        if self._header is None or len(cells) != len(self._header):
            self._header = None
            return
        row = dict(zip(self._header, cells, strict=True))
        bus = row.get("pci.bus_id") or row.get("gpu_bus_id")
        index, pid = row.get("index", ""), row.get("pid", "")
        if bus is None:
            return
        if pid.isdigit():
            _settle(self._bus_by_pid, int(pid), bus_address(bus))
        else:
            number = int(index) if index.isdigit() and len(index) < 4 else None
            self._gpu(bus, index=number, name=row.get("name"), uuid=row.get("uuid") or row.get("gpu_uuid"))

    def _nccl(self, line: LogLine, match: re.Match[str]) -> None:
        digits = match[4].lower().rjust(9, "0")
        bus = f"{digits[-9:-5]}:{digits[-5:-3]}:{digits[-3:-1]}.{digits[-1]}"
        if len(digits) > 9 or bus_address(bus) is None:
            return
        _settle(self._bus_by_rank, int(match[1]), bus)
        self._nranks.add(int(match[2]))
        pid = line.pid
        if pid is None and (speaker := _NCCL_SPEAKER.match(line.text)):
            pid = int(speaker[1])
        if pid is not None:
            _settle(self._bus_by_pid, pid, bus)
        if line.ranks:
            _settle(self._bus_by_place, line.ranks, bus)

    # -- answers -------------------------------------------------------------------------------------------

    def known(self) -> tuple[tuple[int, str, str | None], ...]:
        """Index in nvidia-smi's order, place on the bus and name of every GPU whose index the log tells."""
        return tuple(
            sorted((gpu.index, bus, gpu.name) for bus, gpu in self._by_bus.items() if gpu.index is not None)
        )

    def describe(self, bus: str) -> tuple[int | None, str | None]:
        """nvidia-smi's index and the UUID of a GPU, where the log has them."""
        gpu = self._by_bus.get(bus, _Gpu())
        uuid = gpu.uuid or (self._uuid_by_index.get(gpu.index) if gpu.index is not None else None)
        return gpu.index, uuid

    def bus_of_pid(self, pid: int | None) -> str | None:
        """The GPU of a process, as NCCL or nvidia-smi name it."""
        if pid is None:
            return None
        index = self._index_by_pid.get(pid)
        return self._bus_by_pid.get(pid) or (self._bus_by_index.get(index) if index is not None else None)

    def bus_of_place(self, ranks: Ranks, pid: int | None, *, only_tensor_parallel: bool) -> str | None:
        """The GPU of a rank: by what NCCL or nvidia-smi say of that rank, else by the order of devices where the log
        proves that order."""
        if not ranks:
            return None
        if ranks in self._bus_by_place:
            return self._bus_by_place[ranks]
        index = self._index_by_place.get(ranks)
        if index is not None:
            return self._bus_by_index.get(index)
        kind, number = ranks[0]
        if kind == "device":
            return self._bus_of_ordinal(number)
        single = len(ranks) == 1 and (kind == "rank" or (kind == "tp" and only_tensor_parallel))
        if single and len(self._nranks) == 1 and number in self._bus_by_rank:
            return self._bus_by_rank[number]
        local = self._local_by_pid.get(pid) if pid is not None else None
        if local is None and single:
            local = self._local_by_rank.get(number)
        return self._bus_of_ordinal(local) if local is not None else None

    def place_of_bus(self, bus: str) -> tuple[Ranks | None, int | None]:
        """Who uses a GPU: the place that nvidia-smi or NCCL name, and the device ordinal where order proves it."""
        index = self._by_bus.get(bus, _Gpu()).index
        named = {place for place, one in self._bus_by_place.items() if one == bus}
        named |= {place for place, one in self._index_by_place.items() if one is not None and one == index}
        if len(named) == 1:
            return next(iter(named)), None
        numbers = {rank for rank, one in self._bus_by_rank.items() if one == bus}
        if len(self._nranks) == 1 and len(numbers) == 1:
            return (("rank", next(iter(numbers))),), None
        ordinals = [one for one in range(len(self._by_bus)) if self._bus_of_ordinal(one) == bus]
        return None, ordinals[0] if len(ordinals) == 1 else None

    def pid_of_local(self, local: int) -> int | None:
        """The one process with this local rank."""
        pids = [pid for pid, one in self._local_by_pid.items() if one == local]
        return pids[0] if len(pids) == 1 else None

    def _bus_of_ordinal(self, ordinal: int) -> str | None:
        """The GPU behind a CUDA device ordinal. Proven only if the log lists all GPUs and their order is that of
        the bus: CUDA sorts by speed unless told otherwise, which makes no difference among equal GPUs."""
        if ordinal in self._bus_by_ordinal:
            return self._bus_by_ordinal[ordinal]
        known = {index: bus for index, bus in self._bus_by_index.items() if bus is not None}
        if not known or sorted(known) != list(range(len(known))):
            return None
        if len(self._visible) > 1 or len(self._order) > 1:
            return None
        names = {self._by_bus[bus].name for bus in known.values()}
        if self._order != {"PCI_BUS_ID"} and len(names) > 1:
            return self._by_name(ordinal)
        if self._visible:
            chosen = next(iter(self._visible)).split(",")
            if ordinal >= len(chosen):
                return None
            if chosen[ordinal].startswith("GPU-"):
                found = [bus for bus in self._by_bus if self.describe(bus)[1] == chosen[ordinal]]
                return found[0] if len(found) == 1 else None
            return known.get(int(chosen[ordinal]))
        return known.get(ordinal)

    def _by_name(self, ordinal: int) -> str | None:
        """Among unlike GPUs the engine's own device list tells by name, if only one has that name."""
        name = self._name_by_ordinal.get(ordinal)
        found = [bus for bus, gpu in self._by_bus.items() if name is not None and gpu.name == name]
        return found[0] if len(found) == 1 else None


def _settle(store: dict[_K, _V | None], key: _K, value: _V | None) -> None:
    """Remember a value; two that disagree leave none."""
    if key not in store and len(store) >= _MAX:
        return
    if store.setdefault(key, value) != value:
        store[key] = None
