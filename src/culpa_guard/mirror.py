"""An independent account of which cache blocks belong to whom, kept from the scheduler's own output alone.

The engine's workers keep block tables of their own; the mirror never looks at those. What a step is given is compared
with what the scheduler said.
"""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from culpa_guard import kinds
from culpa_guard.violation import Violation

NULL_BLOCK = 0
"""vLLM's block for padding and for what was freed on purpose; it belongs to nobody."""

ATTENTION = "attention"
WINDOW = "window"
STATE = "state"
OTHER = "other"


@dataclass(frozen=True, slots=True)
class Group:
    """A cache group: layers that share one block table.

    kind: `attention` (a block for every `block_size` tokens), `window` (the same, of which only the last `window`
    tokens are kept), `state` (recurrent state) or `other` (nothing is checked).
    block_size: tokens per scheduler's block. ratio: kernel blocks per scheduler's block.
    mode: of a state group: `none` (one block for the whole request), `align` (a block for every `block_size` tokens,
    the last one is written). extra: further blocks of a state group for speculative tokens.
    """

    index: int
    kind: str
    layers: tuple[str, ...]
    block_size: int
    ratio: int = 1
    mode: str = "none"
    window: int = 0
    extra: int = 0

    @property
    def kernel_block_size(self) -> int:
        """Tokens per block of the kernel's table."""
        return self.block_size // self.ratio


@dataclass(frozen=True, slots=True)
class Grant:
    """What the scheduler says of one request in one step.

    blocks: ids for each group, None for none. computed: tokens before this step. replaces: `blocks` are the whole
    rows (a new or resumed request) and not additions.
    """

    request: str
    blocks: Sequence[Sequence[int]] | None
    computed: int
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The scheduler's output for one step."""

    grants: Sequence[Grant]
    scheduled: Mapping[str, int]
    """Tokens of this step by request."""
    finished: Collection[str] = ()
    preempted: Collection[str] = ()


@dataclass(slots=True)
class Live:
    """A request that holds blocks. `kernel_rows` are `rows` in kernel blocks."""

    request: str
    rows: list["array[int]"]
    kernel_rows: list["array[int]"]
    computed: int = 0
    scheduled: int = 0
    fresh: bool = True
    """Whether this is the first step since its rows were granted whole."""

    @property
    def end(self) -> int:
        """Tokens after the current step."""
        return self.computed + self.scheduled


@dataclass(slots=True)
class Mirror:
    """The groups, the number of scheduler's blocks, and every live request's rows."""

    groups: tuple[Group, ...]
    blocks: int
    live: dict[str, Live] = field(default_factory=dict)
    held: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)
    """Block to those who were granted it: request, group, column. May be out of date; `_holds` decides."""
    granted: dict[int, None] = field(default_factory=dict)
    """Every block that was ever granted, oldest first."""
    step: int = 0

    def apply(self, plan: Plan) -> list[Violation]:
        """Take over a step's plan. Returns what is wrong in the plan itself: ids out of range or given twice.

        A plan without tokens only brings news, and is no step.
        """
        self.step += bool(plan.scheduled)
        for request in (*plan.finished, *plan.preempted):
            self._release(request)
        for live in self.live.values():
            live.scheduled = 0
        # All progress first: what a request no longer holds after it may be granted to another in the same plan.
        for grant in plan.grants:
            if grant.replaces:
                self._release(grant.request)
                empty = [array("i") for _ in self.groups]
                self.live[grant.request] = Live(grant.request, empty, [array("i") for _ in self.groups])
            known = self.live.get(grant.request)
            if known is not None:
                known.computed = grant.computed
                known.scheduled = plan.scheduled.get(grant.request, 0)
                known.fresh = grant.replaces
        return [found for grant in plan.grants for found in self._grant(grant)]

    def still(self) -> "Mirror":
        """The mirror as it is in this step, for checks that are made later. Rows only grow, so they are shared."""
        live = {name: replace(one) for name, one in self.live.items() if one.scheduled}
        return Mirror(self.groups, self.blocks, live, self.held, self.granted, self.step)

    def expected_states(self, request: str, group: Group) -> Sequence[int]:
        """The blocks that hold the request's state in this step: the one written, then those for speculative tokens."""
        row = self.live[request].rows[group.index]
        first = self.state_column(self.live[request], group)
        return row[first : first + 1 + group.extra]

    @staticmethod
    def state_column(live: Live, group: Group) -> int:
        """The column of a state group's row that the step writes."""
        return max(live.end - 1, 0) // group.block_size if group.mode == "align" else 0

    def holders(self, block: int) -> list[tuple[str, int]]:
        """Who holds a block now: request and group."""
        return [(request, group) for request, group, column in self._holding(block)]

    def is_freed(self, block: int) -> bool:
        """Whether a block was someone's once and is nobody's now."""
        return block in self.granted and not self._holding(block)

    def written_blocks(self) -> set[int]:
        """Every block that the current step may write: where its tokens go, what was granted for later, new rows."""
        written = {NULL_BLOCK}
        for live in self.live.values():
            if live.scheduled:
                for group, row in zip(self.groups, live.rows, strict=True):
                    written.update(row[self._first_written(live, group) :])
        return written

    @staticmethod
    def _first_written(live: Live, group: Group) -> int:
        # A new row may have blocks that are copied for it; a state of mode `none` and what isn't known is all one.
        if live.fresh or group.kind == OTHER or (group.kind == STATE and group.mode == "none"):
            return 0
        return live.computed // group.block_size

    def describe(self, block: int) -> str:
        """A block's owners in words."""
        holders = self.holders(block)
        if not holders:
            return "it belongs to nobody"
        return "it belongs to " + ", ".join(
            f"request {request} group {group}" for request, group in holders[:3]
        )

    def _grant(self, grant: Grant) -> Iterator[Violation]:
        live = self.live.get(grant.request)
        if live is None or grant.blocks is None:
            return
        for group, blocks in zip(self.groups, grant.blocks, strict=True):
            column = len(live.rows[group.index])
            live.rows[group.index].extend(blocks)
            live.kernel_rows[group.index].extend(_kernel_blocks(blocks, group.ratio))
            for offset, block in enumerate(blocks):
                if block == NULL_BLOCK:
                    continue
                yield from self._hold(live, group, column + offset, block)

    def _hold(self, live: Live, group: Group, column: int, block: int) -> Iterator[Violation]:
        if not 0 < block < self.blocks:
            yield Violation(
                kinds.BLOCK_OUT_OF_RANGE,
                group=group.index,
                request=live.request,
                block=block,
                index=column,
                expected=f"1 to {self.blocks - 1}",
                found=block,
                detail="granted by the scheduler",
            )
            return
        if not self._holds(live.request, group.index, column):
            # A prefix hit lists states of long ago, too; only what can still be used counts.
            return
        others = self._holding(block)
        # Requests may share what a prefix hit found, never what is still to be written, and groups nothing at all.
        written = column * group.block_size >= live.computed
        for request, index, _ in others:
            if index != group.index or (written and request != live.request):
                two = index != group.index
                yield Violation(
                    kinds.BLOCK_OWNED_BY_TWO_GROUPS if two else kinds.BLOCK_OWNED_BY_TWO_REQUESTS,
                    group=group.index,
                    request=live.request,
                    block=block,
                    index=column,
                    expected=f"request {live.request} group {group.index} alone",
                    found=f"also request {request} group {index}",
                    detail="granted by the scheduler while another still needs it",
                )
                break
        self.granted[block] = None
        self.held[block] = [*others, (live.request, group.index, column)]

    def _holding(self, block: int) -> list[tuple[str, int, int]]:
        return [one for one in self.held.get(block, ()) if self._holds(*one)]

    def _holds(self, request: str, index: int, column: int) -> bool:
        live = self.live.get(request)
        if live is None:
            return False
        group = self.groups[index]
        if group.kind == STATE and group.mode == "align":
            # The state before the step is the oldest one that is still needed.
            return column >= max(live.computed - 1, 0) // group.block_size
        if group.kind == WINDOW:
            return (column + 1) * group.block_size > live.computed - group.window + 1
        return True

    def _release(self, request: str) -> None:
        live = self.live.pop(request, None)
        if live is None:
            return
        for block in {block for row in live.rows for block in row}:
            kept = [one for one in self.held.get(block, ()) if one[0] != request]
            if kept:
                self.held[block] = kept
            else:
                self.held.pop(block, None)


def _kernel_blocks(blocks: Iterable[int], ratio: int) -> Iterable[int]:
    if ratio == 1:
        return blocks
    return (block * ratio + part for block in blocks for part in range(ratio))
