"""One thing that is not as it has to be."""

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """What a check found. The guard adds where (stage, rank) and when (step, time).

    `kind` is one of `KINDS`. `index` is the position of the wrong number: a column of a block table, a token of the
    step, a byte. `expected` and `found` are in the unit of the thing checked: block ids, slots, bytes, checksums.
    """

    kind: str
    layer: str | None = None
    layer_type: str | None = None
    group: int | None = None
    request: str | None = None
    block: int | None = None
    index: int | None = None
    expected: object = None
    found: object = None
    detail: str | None = None

    def fields(self) -> dict[str, object]:
        """Its fields by name, ready for JSON."""
        return asdict(self)
