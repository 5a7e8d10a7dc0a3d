"""Hand-overs: what one stage sends is what the next one receives and then computes with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from culpa_guard import kinds
from culpa_guard.violation import Violation


@dataclass(frozen=True, slots=True)
class Parcel:
    """A tensor at one end: its shape, and a checksum of its content."""

    shape: tuple[int, ...]
    checksum: int


def check_handover(
    sent: Mapping[str, Parcel], found: Mapping[str, Parcel], where: str
) -> Iterator[Violation]:
    """One violation for each tensor that is missing, new, of another shape or content. `where` says at which end."""
    for name in sorted({*sent, *found}):
        ours, theirs = sent.get(name), found.get(name)
        if ours == theirs:
            continue
        if ours is None or theirs is None:
            expected, seen = _presence(ours), _presence(theirs)
        elif ours.shape != theirs.shape:
            expected, seen = list(ours.shape), list(theirs.shape)
        else:
            expected, seen = hex(ours.checksum), hex(theirs.checksum)
        yield Violation(kinds.HANDOVER_MISMATCH, expected=expected, found=seen, detail=f"{name}: {where}")


def _presence(parcel: Parcel | None) -> object:
    return "nothing" if parcel is None else list(parcel.shape)
