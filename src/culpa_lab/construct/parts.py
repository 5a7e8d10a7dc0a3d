"""Layers as they are written by hand: projections as rows of forms, neurons one by one."""

import numpy as np
import numpy.typing as npt

from culpa_lab.construct.registers import HIDDEN, Form, const

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

KEY_DIM, VALUE_DIM, KERNEL = 16, 20, 4
HEAD_DIM, ROTARY = 16, 2
WIDTH = 36
ACTIVE = 16.0
"""silu(16) is 16 within 2e-6, and a power of two: dividing by it is exact in bfloat16."""
OUTPUT_GATE = 8.0
_NORM_GAIN = 8.03125
"""Undoes the norm of a residual stream whose other dimensions have a square length of 32."""


def silu(x: float) -> float:
    """x · sigmoid(x)."""
    return float(x / (1 + np.exp(-x)))


class Neurons:
    """A SwiGLU: each neuron adds silu(gate · x) (up · x) times a vector."""

    def __init__(self) -> None:
        self._rows: list[tuple[Form, Form, Vector]] = []

    def add(self, gate: Form, up: Form, down: Vector) -> None:
        """One neuron."""
        self._rows.append((gate, up, down))

    def when(self, conditions: list[Form], up: Form, down: Vector) -> None:
        """Adds `up` times `down` where all conditions are 1. A condition is 1, or 0 and less."""
        gate = sum(conditions, const(0.5 - len(conditions))) * (2 * ACTIVE)
        self.add(gate, up, down / ACTIVE)

    def put(self, conditions: list[Form], down: Vector) -> None:
        """Adds a vector where all conditions are 1."""
        self.when(conditions, const(1), down)

    def linear(self, up: Form, down: Vector) -> None:
        """Adds `up` times `down` everywhere."""
        self.add(const(ACTIVE), up, down / ACTIVE)

    def clear(self, first: int, count: int = 1) -> None:
        """Sets dimensions to zero."""
        for dimension in range(first, first + count):
            self.linear(unit(dimension), -unit(dimension))

    def step(self, form: Form, threshold: float, gap: float, down: Vector) -> None:
        """Adds a vector where `form` is above a threshold; the values next to it are `gap` apart."""
        half, slope = gap / 16, 256 / gap
        for sign in (1, -1):
            gate = (form - const(threshold - sign * half)) * slope
            self.add(gate, const(1), sign * down / (2 * half * slope))

    def sharpen(self, dimension: int) -> None:
        """Makes a flag that is about 0 or about 1 exactly that."""
        self.clear(dimension)
        self.step(unit(dimension), 0.5, 0.6, unit(dimension))

    def tensors(self, name: str) -> dict[str, Matrix]:
        """Weights by name."""
        if len(self._rows) > WIDTH:
            raise ValueError(f"{name}: {len(self._rows)} neurons, and there is room for {WIDTH}")
        gate, up, down = np.zeros((3, WIDTH, HIDDEN))
        for row, (one_gate, one_up, one_down) in enumerate(self._rows):
            gate[row], up[row], down[row] = one_gate, one_up, one_down
        return {
            f"{name}gate_proj.weight": gate,
            f"{name}up_proj.weight": up,
            f"{name}down_proj.weight": down.T,
        }


class DeltaNet:
    """A gated delta net with one head. What it reads comes out normalised over its channels.

    Attributes:
        q, k, v: a form for each channel.
        taps: of k's and v's convolution, by channel; lag 0 alone unless set.
        strength, decay: forms of b and a; `decay` is added to -20, that is none at all.
        gate: form of z for all channels; 8 is open, 0 shut.
        out: [hidden, channel], applied to channels of mean square 1.
    """

    def __init__(self) -> None:
        self.q, self.k = np.zeros((2, KEY_DIM, HIDDEN))
        self.v = np.zeros((VALUE_DIM, HIDDEN))
        self._taps = np.zeros((VALUE_DIM, KERNEL))
        self._taps[:, 0] = 1
        self.strength, self.decay = const(16), const(0)
        self.gate = const(OUTPUT_GATE)
        self.out = np.zeros((HIDDEN, VALUE_DIM))

    def taps(self, channel: int, by_lag: dict[int, float]) -> None:
        """The convolution of a value channel: its weight for each lag."""
        self._taps[channel] = 0
        for lag, weight in by_lag.items():
            self._taps[channel, lag] = weight

    def read_into(self, channel: int, down: Vector, full: float) -> None:
        """Adds `down` times the channel, which is counted as 1 where it is `full` of the channels' whole length."""
        self.out[:, channel] += down / (full * np.sqrt(VALUE_DIM) * silu(OUTPUT_GATE))

    def tensors(self, name: str) -> dict[str, Matrix]:
        """Weights by name."""
        z = np.tile(self.gate, (VALUE_DIM, 1))
        single = np.zeros((KEY_DIM, KERNEL))
        single[:, 0] = 1
        conv = np.concatenate([single, single, self._taps])[:, ::-1]
        return {
            f"{name}in_proj_qkvz.weight": np.concatenate([self.q, self.k, self.v, z]),
            f"{name}in_proj_ba.weight": np.stack([self.strength, self.decay]),
            f"{name}conv1d.weight": conv[:, None, :],
            f"{name}dt_bias": np.array([-20.0]),
            f"{name}A_log": np.array([0.0]),
            f"{name}norm.weight": np.ones(VALUE_DIM),
            f"{name}out_proj.weight": self.out,
        }


class Attention:
    """Full attention with one head and a gate that is open. The two rotary dimensions, 0 and 1, stay zero.

    Attributes:
        q, k, v: a form for each dimension.
        out: [hidden, dimension].
    """

    SHARPNESS = 20.0
    """Gain of both norms: scores are 4 · 20² times the cosine of query and key."""

    def __init__(self) -> None:
        self.q, self.k, self.v = np.zeros((3, HEAD_DIM, HIDDEN))
        self.out = np.zeros((HIDDEN, HEAD_DIM))

    def tensors(self, name: str) -> dict[str, Matrix]:
        """Weights by name."""
        gate = np.tile(const(ACTIVE), (HEAD_DIM, 1))
        return {
            f"{name}q_proj.weight": np.concatenate([self.q, gate]),
            f"{name}k_proj.weight": self.k,
            f"{name}v_proj.weight": self.v,
            f"{name}o_proj.weight": self.out,
            f"{name}q_norm.weight": np.full(HEAD_DIM, self.SHARPNESS - 1),
            f"{name}k_norm.weight": np.full(HEAD_DIM, self.SHARPNESS - 1),
        }


def switch(flag: Form) -> Form:
    """What the silu after the convolution makes 20 of where a flag is 1, and exactly 0 where it is about 0.

    A leak of a thousandth would add up over thousands of tokens.
    """
    return (flag - const(0.5)) * 40


def unit(dimension: int, value: float = 1.0) -> Vector:
    """A vector along one dimension of the residual stream."""
    vector = np.zeros(HIDDEN)
    vector[dimension] = value
    return vector


def norm_weight() -> Vector:
    """Weights of a zero-centred norm over the residual stream that leave it as it is."""
    return np.full(HIDDEN, _NORM_GAIN - 1)
