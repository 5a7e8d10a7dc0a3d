"""Model configuration and partition to stages, cache groups, capacity and findings. Pure."""

from culpa.layout.errors import BadLayout
from culpa.layout.explain import Explanation, explain
from culpa.layout.finding import Finding
from culpa.layout.findings import find
from culpa.layout.plan import Plan, Stage, make_plan
from culpa.layout.reading import read_shape
from culpa.layout.settings import Settings
from culpa.layout.shape import ModelShape
from culpa.layout.stages import parse_partition

__all__ = [
    "BadLayout",
    "Explanation",
    "Finding",
    "ModelShape",
    "Plan",
    "Settings",
    "Stage",
    "explain",
    "find",
    "make_plan",
    "parse_partition",
    "read_shape",
]
