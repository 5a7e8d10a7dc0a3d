"""What can be wrong with versions, each error one line for the user."""

from culpa.engines.errors import BadLaunch


class BadVersions(ValueError):
    """The versions asked for can't be had as they were asked for."""


class CannotPrepare(BadLaunch):
    """One version can't be made ready to run here; others may."""
