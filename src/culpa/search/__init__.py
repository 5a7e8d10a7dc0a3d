"""Outcomes so far -> the next configuration. Pure: no I/O, no clock, no randomness that is not handed in."""

from culpa.search.proposal import Proposal, Purpose
from culpa.search.strategy import Strategy, threshold_trials

__all__ = ["Proposal", "Purpose", "Strategy", "threshold_trials"]
