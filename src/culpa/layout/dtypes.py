"""Bytes of the dtypes that weights, keys and states are kept in."""

from culpa.layout.errors import BadLayout

_BYTES = {
    "float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "float64": 8,
    "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "fp8_inc": 1, "int8": 1,
}  # fmt: skip
CACHE_DTYPES = ("auto", "bfloat16", "float16", "float32", "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc")


def dtype_bytes(name: str) -> int:
    """Bytes of one element. Raises BadLayout for a dtype that is not known."""
    try:
        return _BYTES[name.removeprefix("torch.")]
    except KeyError:
        raise BadLayout(f"dtype {name}: its size is not known here (known: {', '.join(_BYTES)})") from None


def is_dtype(name: str) -> bool:
    """Whether the size of this dtype is known."""
    return name.removeprefix("torch.") in _BYTES
