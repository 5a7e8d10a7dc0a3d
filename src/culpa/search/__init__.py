"""Outcomes so far -> the next configuration. Pure: no I/O, no clock, no randomness that is not handed in."""

from culpa.search.proposal import Proposal, Purpose
from culpa.search.strategy import Strategy

__all__ = ["Proposal", "Purpose", "Strategy"]
