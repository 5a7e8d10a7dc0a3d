"""Checks inside a running engine that its state and cache bindings are right.

A package of its own: it imports nothing of `culpa`, and at import time nothing but the standard library. It is loaded
into the engine's processes, does nothing unless `CULPA_GUARD` says so, and never changes a result.
"""

from culpa_guard.guard import Guard, GuardViolation, Place
from culpa_guard.kinds import KINDS
from culpa_guard.mirror import Grant, Group, Mirror, Plan
from culpa_guard.settings import Settings, read_settings
from culpa_guard.version import VERSION
from culpa_guard.views import GroupView, StepView
from culpa_guard.violation import Violation

__all__ = [
    "KINDS",
    "VERSION",
    "Grant",
    "Group",
    "GroupView",
    "Guard",
    "GuardViolation",
    "Mirror",
    "Place",
    "Plan",
    "Settings",
    "StepView",
    "Violation",
    "read_settings",
]
