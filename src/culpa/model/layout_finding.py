"""What planning alone says of a launch: computed from the model's configuration, before anything is started."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class LayoutFinding:
    """Something worth knowing. `factors` are the names of factors of a launch that it speaks of.

    `error`: the engine will not start, or dies; `warning`: it costs something or may surprise; `note`: good to know.
    """

    id: str
    level: Level
    text: str
    factors: tuple[str, ...] = ()
