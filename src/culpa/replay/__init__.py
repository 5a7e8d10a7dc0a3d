"""Recorded traffic asked again: of an engine that runs, or of one that is started for each part of it."""

from culpa.replay.play import Now, Played, Wanted, play, played
from culpa.replay.reduce import REDUCED, Found, Options, Tried, reduce

__all__ = ["REDUCED", "Found", "Now", "Options", "Played", "Tried", "Wanted", "play", "played", "reduce"]
