"""Array types, and the error of a checkpoint that can't be used."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float32]
Indices: TypeAlias = npt.NDArray[np.int64]


class BadCheckpoint(ValueError):
    """A model folder that can't be used. The message is one line that says what is wrong and what to do."""
