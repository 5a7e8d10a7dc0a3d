"""Metadata of one cache group must not be used by another."""

from collections.abc import Iterator

from culpa_guard import kinds
from culpa_guard.mirror import Mirror
from culpa_guard.views import GroupView, StepView
from culpa_guard.violation import Violation


def check_sharing(mirror: Mirror, view: StepView) -> Iterator[Violation]:
    """Two groups with one metadata object, or with one index buffer at the same address."""
    objects: dict[int, GroupView] = {}
    buffers: dict[int, tuple[str, GroupView]] = {}
    for given in view.groups:
        other = objects.setdefault(given.identity, given)
        if other.group != given.group:
            yield _shared(given, other, "the metadata object")
            continue
        for name, address in given.buffers:
            first, owner = buffers.setdefault(address, (name, given))
            if owner.group != given.group:
                yield _shared(given, owner, f"{name} (there {first}) at the same address")


def _shared(given: GroupView, other: GroupView, what: str) -> Violation:
    return Violation(
        kinds.METADATA_SHARED_ACROSS_GROUPS,
        layer=given.layers[0],
        layer_type=given.layer_type,
        group=given.group,
        expected=f"metadata of group {given.group}",
        found=f"metadata of group {other.group}",
        detail=f"{what} is also used by layer {other.layers[0]}",
    )
