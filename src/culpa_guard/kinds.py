"""The kinds of violation. Their names are stable: reports, explanations and tests go by them."""

from typing import Final

BLOCK_OUT_OF_RANGE: Final = "block_out_of_range"
BLOCK_NOT_OWNED: Final = "block_not_owned"
BLOCK_OWNED_BY_TWO_GROUPS: Final = "block_owned_by_two_groups"
BLOCK_OWNED_BY_TWO_REQUESTS: Final = "block_owned_by_two_requests"
SLOT_MAPPING_MISMATCH: Final = "slot_mapping_mismatch"
STATE_INDEX_OUT_OF_RANGE: Final = "state_index_out_of_range"
STATE_INDEX_NOT_UNIQUE: Final = "state_index_not_unique"
STATE_INDEX_NOT_SCHEDULED: Final = "state_index_not_scheduled"
INITIAL_STATE_MISMATCH: Final = "initial_state_mismatch"
FREED_STATE_READ: Final = "freed_state_read"
METADATA_SHARED_ACROSS_GROUPS: Final = "metadata_shared_across_groups"
BIND_MISMATCH: Final = "bind_mismatch"
CAPTURED_POINTER_STALE: Final = "captured_pointer_stale"
HANDOVER_MISMATCH: Final = "handover_mismatch"
PAGE_CHANGED_WITHOUT_WRITE: Final = "page_changed_without_write"
RED_ZONE_CHANGED: Final = "red_zone_changed"
STATE_NOT_FINITE: Final = "state_not_finite"
PREFIX_STATE_MISMATCH: Final = "prefix_state_mismatch"

KINDS: Final[tuple[str, ...]] = (
    BLOCK_OUT_OF_RANGE,
    BLOCK_NOT_OWNED,
    BLOCK_OWNED_BY_TWO_GROUPS,
    BLOCK_OWNED_BY_TWO_REQUESTS,
    SLOT_MAPPING_MISMATCH,
    STATE_INDEX_OUT_OF_RANGE,
    STATE_INDEX_NOT_UNIQUE,
    STATE_INDEX_NOT_SCHEDULED,
    INITIAL_STATE_MISMATCH,
    FREED_STATE_READ,
    METADATA_SHARED_ACROSS_GROUPS,
    BIND_MISMATCH,
    CAPTURED_POINTER_STALE,
    HANDOVER_MISMATCH,
    PAGE_CHANGED_WITHOUT_WRITE,
    RED_ZONE_CHANGED,
    STATE_NOT_FINITE,
    PREFIX_STATE_MISMATCH,
)
