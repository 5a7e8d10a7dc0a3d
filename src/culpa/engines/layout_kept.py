"""What a layout is computed from, in the folder of a run: the model's configuration and the launch's settings."""

import dataclasses
import json
from pathlib import Path

from culpa.engines.base import EngineAdapter
from culpa.engines.errors import BadLaunch
from culpa.layout import BadLayout
from culpa.model import Launch
from culpa.written import write_whole

SCHEMA = "culpa.layout-input/1"
FILE = "layout.json"
#: Mixtures of experts name each tensor of each expert: beyond that many, the weights are estimated.
_MOST_TENSORS = 20_000


def keep_layout(folder: Path, adapter: EngineAdapter, launch: Launch) -> None:
    """Write `layout.json` into the folder, where the engine's layout is known and the model's configuration is here.

    A report can then draw the layout from the run alone. What is there already stays. Raises OSError.
    """
    path = folder / FILE
    if path.exists():
        return
    try:
        found = adapter.layout_input(launch)
    except (BadLaunch, BadLayout):
        return  # the notes of the run say what is missing
    if found is None:
        return
    sizes = {name: dataclasses.asdict(size) for name, size in (found.tensors or {}).items()}
    document = {
        "schema": SCHEMA,
        "config": found.config,
        "settings": dataclasses.asdict(found.settings),
        "tensors": sizes if 0 < len(sizes) <= _MOST_TENSORS else None,
    }
    write_whole(path, json.dumps(document, ensure_ascii=True) + "\n")
