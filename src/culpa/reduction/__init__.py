"""The smallest part of a sequence that still brings a failure, by as few trials as can be. Pure."""

from culpa.reduction.reduction import Reduced, Reduction, Step

__all__ = ["Reduced", "Reduction", "Step"]
