"""Read and write safetensors files with NumPy alone, bfloat16 included, a tensor at a time.

Format: https://huggingface.co/docs/safetensors/index#format (8 bytes little-endian length of a JSON header, the
header, then the tensors' bytes). The library of that name can't give NumPy a bfloat16 tensor.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from culpa_lab.model.arrays import Array, BadCheckpoint

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_STORED = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_NAMES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}
_LONGEST_HEADER = 100_000_000


def to_bfloat16_bits(values: Array) -> npt.NDArray[np.uint16]:
    """Upper halves of float32, rounded to nearest, ties to even; a NaN stays one."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    upper = np.where(np.isnan(values), (bits >> np.uint32(16)) | np.uint32(0x40), rounded)
    return upper.astype(np.uint16)


def from_bfloat16_bits(bits: npt.NDArray[np.uint16]) -> Array:
    """The float32 values whose upper halves these are."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def rounded(values: Array, dtype: str) -> Array:
    """Values rounded to `float32`, `float16` or `bfloat16`, held as float32."""
    if dtype == "float32":
        return values.astype(np.float32, copy=False)
    if dtype == "float16":
        return values.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":
        return from_bfloat16_bits(to_bfloat16_bits(values))
    raise BadCheckpoint(f"dtype {dtype!r} is not one of {', '.join(_NAMES)}")


class Tensors:
    """The tensors of a model folder by name, in one file or in shards."""

    def __init__(self, folder: Path) -> None:
        """Read the headers only.

        Raises:
            BadCheckpoint: if there is no safetensors file, or one is damaged.
        """
        self._folder = Path(folder)
        self._files: dict[str, tuple[Path, dict[str, Any], int]] = {}
        for path in self._shards():
            header, start = _header(path)
            self._files |= {name: (path, entry, start) for name, entry in header.items()}

    def _shards(self) -> list[Path]:
        index = self._folder / INDEX
        if index.exists():
            try:
                names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise BadCheckpoint(f"{index} is damaged: {error!r}") from None
            return [self._folder / name for name in names]
        if not (self._folder / SINGLE).exists():
            raise BadCheckpoint(f"{self._folder} has neither {SINGLE} nor {INDEX}")
        return [self._folder / SINGLE]

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def names(self) -> list[str]:
        """Names of all tensors, sorted."""
        return sorted(self._files)

    def read(self, name: str) -> Array:
        """One tensor as float32.

        Raises:
            BadCheckpoint: if there is none of that name, its type is not a float, or the file is too short.
        """
        if name not in self._files:
            raise BadCheckpoint(f"{self._folder} has no tensor {name}")
        path, entry, start = self._files[name]
        stored = _STORED.get(entry["dtype"])
        if stored is None:
            raise BadCheckpoint(
                f"{path}: {name} is {entry['dtype']}, and only {', '.join(_STORED)} can be read"
            )
        first, last = entry["data_offsets"]
        count = int(np.prod(entry["shape"], dtype=np.int64))
        if last - first != count * np.dtype(stored).itemsize or start + last > path.stat().st_size:
            raise BadCheckpoint(f"{path}: {name} does not fit its shape, the file is damaged")
        raw = np.fromfile(path, dtype=stored, count=count, offset=start + first).reshape(entry["shape"])
        if entry["dtype"] == "BF16":
            return from_bfloat16_bits(raw)
        return raw.astype(np.float32)


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The header without its metadata, and where the tensors' bytes begin."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(path.stat().st_size, _LONGEST_HEADER):
                raise BadCheckpoint(f"{path} is not a safetensors file, or is damaged")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        for entry in header.values():
            entry["dtype"], entry["shape"], entry["data_offsets"]
    except OSError as error:
        raise BadCheckpoint(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, BadCheckpoint):
            raise
        raise BadCheckpoint(f"{path} is not a safetensors file, or is damaged") from None
    return header, 8 + length


def write(path: Path, tensors: Mapping[str, Array], dtype: str = "float32") -> None:
    """Write tensors in the order of their names, rounded to `dtype`; the same tensors give the same bytes."""
    if dtype not in _NAMES:
        raise ValueError(f"dtype {dtype!r} is not one of {', '.join(_NAMES)}")
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    offset = 0
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name], np.float32)
        if dtype == "bfloat16":
            data = to_bfloat16_bits(values).astype("<u2").tobytes()
        else:
            data = values.astype("<f2" if dtype == "float16" else "<f4").tobytes()
        header[name] = {
            "dtype": _NAMES[dtype],
            "shape": list(values.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        offset += len(data)
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    # The format asks that the tensors begin at a multiple of 8.
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for part in parts:
            file.write(part)
