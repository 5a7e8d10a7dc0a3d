"""Sizes of a checkpoint's tensors, from the heads of its safetensors files; no weight is read.

Format: https://github.com/huggingface/safetensors#format
"""

import json
import struct
from pathlib import Path

from culpa.layout.weights import TensorSize

_MOST_HEAD = 64 << 20
_MOST_FILES = 1024
_DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def tensor_sizes(folder: Path) -> dict[str, TensorSize] | None:
    """Size of every tensor by name; None where the folder has no whole safetensors checkpoint."""
    files = sorted(folder.glob("*.safetensors"))
    if not files or len(files) > _MOST_FILES or not _complete(folder, files):
        return None
    sizes: dict[str, TensorSize] = {}
    for file in files:
        head = _head(file)
        if head is None:
            return None
        sizes.update(head)
    return sizes


def _complete(folder: Path, files: list[Path]) -> bool:
    """Whether all files that the index names are here."""
    try:
        index = json.loads((folder / "model.safetensors.index.json").read_text(encoding="utf-8"))
        wanted = set(index["weight_map"].values())
    except FileNotFoundError:
        return True
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return False
    return wanted <= {file.name for file in files}


def _head(file: Path) -> dict[str, TensorSize] | None:
    """Sizes by name in one file; None where it is not what its name says."""
    try:
        with file.open("rb") as stream:
            start = stream.read(8)
            if len(start) < 8:
                return None
            (length,) = struct.unpack("<Q", start)
            if length > _MOST_HEAD:
                return None
            entries = json.loads(stream.read(length))
        return {
            name: TensorSize(
                int(entry["data_offsets"][1]) - int(entry["data_offsets"][0]), _DTYPES.get(entry["dtype"])
            )
            for name, entry in entries.items()
            if name != "__metadata__"
        }
    except (OSError, ValueError, RecursionError, KeyError, TypeError, IndexError, AttributeError):
        return None
