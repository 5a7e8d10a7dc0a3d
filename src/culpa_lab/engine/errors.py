"""Errors of the engine and of its device, printed under the names that users of vLLM know."""


class BadLaunch(ValueError):
    """The engine can't be started like this. The message is one clear line."""


class BadRequest(ValueError):
    """A request that can't be served (HTTP 400). The message is one clear line."""


class EngineDeadError(Exception):
    """The engine core is gone; what killed it stands earlier in the log."""

    def __init__(self) -> None:
        super().__init__("EngineCore encountered an issue. See stack trace (above) for the root cause.")


class KernelFault(Exception):
    """A kernel touched a bad address. Stays inside a stage: users see it at a later synchronisation."""


class AcceleratorError(RuntimeError):
    """A device error as PyTorch reports it."""


class OutOfMemoryError(RuntimeError):
    """The device's memory is used up, as PyTorch reports it."""


# Tracebacks name a class with its module. Logs of real engines say `torch.AcceleratorError`, and so do these.
AcceleratorError.__module__ = "torch"
OutOfMemoryError.__module__ = "torch"
EngineDeadError.__module__ = "vllm.v1.engine.exceptions"

ILLEGAL_ACCESS = """CUDA error: an illegal memory access was encountered
Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""  # noqa: E501 - the text of PyTorch
TRITON_ILLEGAL_ACCESS = "Triton Error [CUDA]: an illegal memory access was encountered"
