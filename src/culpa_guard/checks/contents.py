"""Contents of cache pages: checksums of what nobody should have written, and of states that are restored."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from culpa_guard import kinds
from culpa_guard.mirror import NULL_BLOCK
from culpa_guard.violation import Violation

Sums = Mapping[str, int]
"""Checksums of one block by region. A region is a place in the allocation, named by its first layer."""


@dataclass(slots=True)
class PageWatch:
    """Remembers checksums of blocks, and compares them when their turn comes again.

    A block that may be written is forgotten; it is recorded anew when the rotation reaches it. So a change is seen
    at the latest one rotation after it happened, and `detail` names the steps between which it did. Every other look
    goes to a block that was in use already: in a large cache those are few, and it is they that matter.
    """

    blocks: int
    budget: int
    """Blocks looked at per step."""
    recorded: dict[int, tuple[int, Sums]] = field(default_factory=dict)
    turn: int = NULL_BLOCK
    used_turn: int = 0
    looks: int = 0

    def forget(self, written: Collection[int]) -> None:
        """Blocks that the step about to run may write."""
        for block in written:
            self.recorded.pop(block, None)

    def look(
        self,
        step: int,
        sums: Callable[[int], Sums],
        describe: Callable[[int], str],
        quiet: Callable[[int], bool],
        used: Sequence[int] = (),
    ) -> Iterator[Violation]:
        """Check and record the next blocks in turn, before the step runs.

        quiet: the step won't write the block. used: blocks that were in use already.
        """
        for block in self._next(used):
            if not quiet(block):
                continue
            current = sums(block)
            since, before = self.recorded.get(block, (step, current))
            for region, checksum in before.items():
                if current.get(region) != checksum:
                    yield Violation(
                        kinds.PAGE_CHANGED_WITHOUT_WRITE,
                        layer=region,
                        block=block,
                        expected=hex(checksum),
                        found=hex(current.get(region, 0)),
                        detail=f"changed between steps {since} and {step}; {describe(block)}",
                    )
            self.recorded[block] = (step, current)

    def _next(self, used: Sequence[int]) -> Iterable[int]:
        for _ in range(min(self.budget, 2 * (self.blocks - 1))):
            self.looks += 1
            if used and self.looks % 2:
                self.used_turn += 1
                yield used[self.used_turn % len(used)]
            else:
                self.turn = self.turn % (self.blocks - 1) + 1
                yield self.turn


@dataclass(slots=True)
class StoredStates:
    """Checksums of states at the moment they were stored, compared when a prefix hit restores them."""

    stored: dict[tuple[int, int], tuple[int, Sums]] = field(default_factory=dict)
    """Group and block to the tokens that the state is of, and its checksums by layer."""

    def store(self, group: int, block: int, tokens: int, sums: Sums) -> None:
        """Remember a state that is complete."""
        self.stored[(group, block)] = (tokens, sums)

    def forget(self, group: int, block: int) -> None:
        """The block is written again."""
        self.stored.pop((group, block), None)

    def restore(self, group: int, block: int, tokens: int, request: str, sums: Sums) -> Iterator[Violation]:
        """Compare with what was stored; nothing is said of a state that was stored before the guard looked."""
        if (group, block) not in self.stored:
            return
        stored_tokens, before = self.stored[(group, block)]
        if stored_tokens != tokens:
            yield Violation(
                kinds.PREFIX_STATE_MISMATCH,
                group=group,
                request=request,
                block=block,
                expected=tokens,
                found=stored_tokens,
                detail="tokens that the restored state is of",
            )
            return
        for layer, checksum in before.items():
            if sums.get(layer) != checksum:
                yield Violation(
                    kinds.PREFIX_STATE_MISMATCH,
                    layer=layer,
                    group=group,
                    request=request,
                    block=block,
                    expected=hex(checksum),
                    found=hex(sums.get(layer, 0)),
                    detail=f"the state of {tokens} tokens is not the one that was stored",
                )
