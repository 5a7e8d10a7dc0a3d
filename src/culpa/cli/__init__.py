"""The command line: one file a verb, no logic."""

from culpa.cli.app import main

__all__ = ["main"]
