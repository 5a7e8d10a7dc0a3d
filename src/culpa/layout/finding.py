"""One finding, under the name that it has in this room."""

from culpa.model.layout_finding import LayoutFinding as Finding
from culpa.model.layout_finding import Level

__all__ = ["Finding", "Level"]
