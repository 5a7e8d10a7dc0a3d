"""From an isolated failure to the smallest thing that a maintainer can run."""

from culpa.minimize.run import FOLDER, MinimizeOptions, NothingToMinimize, Watcher, minimize

__all__ = ["FOLDER", "MinimizeOptions", "NothingToMinimize", "Watcher", "minimize"]
