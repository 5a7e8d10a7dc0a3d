"""The checks, as pure functions: a mirror and what was given, to violations."""

from collections.abc import Callable, Iterator

from culpa_guard.checks.bindings import Bound, Region, check_bindings, check_pointers
from culpa_guard.checks.contents import PageWatch, StoredStates
from culpa_guard.checks.handover import Parcel, check_handover
from culpa_guard.checks.sharing import check_sharing
from culpa_guard.checks.slots import check_slots
from culpa_guard.checks.states import check_states
from culpa_guard.checks.tables import check_tables
from culpa_guard.mirror import Mirror
from culpa_guard.views import StepView
from culpa_guard.violation import Violation

STEP_CHECKS: dict[str, Callable[[Mirror, StepView], Iterator[Violation]]] = {
    "metadata_sharing": check_sharing,
    "block_tables": check_tables,
    "slot_mappings": check_slots,
    "state_indices": check_states,
}
"""The checks of every step by name. Sharing comes first: where it is the cause, the others see its effects."""

__all__ = [
    "STEP_CHECKS",
    "Bound",
    "PageWatch",
    "Parcel",
    "Region",
    "StoredStates",
    "check_bindings",
    "check_handover",
    "check_pointers",
    "check_sharing",
    "check_slots",
    "check_states",
    "check_tables",
]
