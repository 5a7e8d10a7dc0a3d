"""Root mean square normalisations, and the two activations, as kernels that allocate nothing.

Formulas: transformers, models/qwen3_next/modeling_qwen3_next.py (Qwen3NextRMSNorm, Qwen3NextRMSNormGated, l2norm).
sigmoid(x) is written (1 + tanh(x/2)) / 2, which can't overflow.
"""

from dataclasses import dataclass

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.launch import Launch, Workspace, eager

L2_EPSILON = 1e-6
ONE = np.float32(1)
HALF = np.float32(0.5)


@dataclass(frozen=True)
class NormWeights:
    """x / sqrt(mean(x²) + eps) * weight, held as x / sqrt(sum(x²) + n·eps) * (weight · sqrt(n)).

    Attributes:
        gain: weight · sqrt(n), over the last axis (n long) of what is normalised.
        epsilon: n · eps.
    """

    gain: Array
    epsilon: np.float32

    @classmethod
    def zero_centred(cls, weight: Array, eps: float) -> "NormWeights":
        """Qwen3NextRMSNorm: the stored weight is an offset from 1."""
        return cls.plain(1 + weight, eps)

    @classmethod
    def plain(cls, weight: Array, eps: float) -> "NormWeights":
        """Qwen3NextRMSNormGated: the stored weight is the factor itself."""
        width = weight.shape[-1]
        return cls(np.asarray(weight * np.sqrt(width), np.float32), np.float32(width * eps))


def rms_norm(
    x: Array, w: NormWeights, out: Array, workspace: Workspace, launch: Launch = eager, name: str = "norm"
) -> None:
    """Normalise the last axis of `x` [..., n] into `out` (may be `x`)."""
    length = workspace.array(f"{name}.length", *x.shape[:-1], 1)
    launch(np.vecdot, x, x, length[..., 0])
    launch(np.add, length, w.epsilon, length)
    launch(np.sqrt, length, length)
    launch(np.divide, x, length, out)
    launch(np.multiply, out, w.gain, out)


def half_silu(h: Array, scratch: Array, out: Array, launch: Launch = eager) -> None:
    """silu(2h) = h (1 + tanh(h)) into `out` (may be `h`): weights before a gate are halved at load, which is exact.

    `scratch` has the shape of `h`.
    """
    launch(np.tanh, h, scratch)
    launch(np.add, scratch, ONE, scratch)
    launch(np.multiply, h, scratch, out)


def half_sigmoid(h: Array, launch: Launch = eager) -> None:
    """sigmoid(2h) = (1 + tanh(h)) / 2, in place."""
    launch(np.tanh, h, h)
    launch(np.add, h, ONE, h)
    launch(np.multiply, h, HALF, h)
