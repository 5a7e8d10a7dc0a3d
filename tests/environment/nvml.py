"""A stand-in for the pynvml module: two GPUs that answer what a test sets, and refuse the rest."""

from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    value = 3

    def __str__(self) -> str:
        return "Not Supported"


class StandIn:
    """Answers by name of the call and index of the GPU; calls that `refused` names raise."""

    NVMLError = NVMLError
    NVML_ERROR_LIBRARY_NOT_FOUND = 12
    nvmlMemory_v2 = 2

    def __init__(self, **changes: Any) -> None:
        self.refused: set[str] = set()
        self.answers: dict[str, Any] = {
            "nvmlInit": None,
            "nvmlDeviceGetCount": 2,
            "nvmlSystemGetDriverVersion": "570.86.10",
            "nvmlSystemGetCudaDriverVersion_v2": 12080,
            "nvmlDeviceGetName": "NVIDIA A100",
            "nvmlDeviceGetCudaComputeCapability": (8, 0),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 << 30, used=0),
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
            "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetTemperature": 41,
            "nvmlDeviceGetPowerManagementLimit": 400_000,
            "nvmlDeviceGetCurrPcieLinkGeneration": 1,
            "nvmlDeviceGetMaxPcieLinkGeneration": 4,
            "nvmlDeviceGetCurrPcieLinkWidth": 16,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetTopologyCommonAncestor": 50,
            "nvmlDeviceGetP2PStatus": 0,
            **changes,
        }

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:
        return f"GPU-{handle}"

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=f"00000000:{0x41 + handle:02X}:00.0")

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        states = self.answers.get("links", {}).get(handle, ())
        if link >= len(states):
            raise NVMLError
        return int(states[link])

    def __getattr__(self, name: str) -> Any:
        if name not in self.answers:
            raise AttributeError(name)

        def call(*_: Any, **__: Any) -> Any:
            if name in self.refused:
                raise NVMLError
            return self.answers[name]

        return call
