"""Who holds which cache block: block tables of the full-attention groups, state blocks of the GDN groups."""

from collections.abc import Sequence

from culpa_lab.engine.block_pool import BlockPool, Key
from culpa_lab.engine.cache_groups import FULL, GDN, CacheGroup
from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.request import Request
from culpa_lab.engine.steps import StateRow


class KVCacheManager:
    """Allocates blocks of all groups from one pool and finds prefixes that were computed before.

    A full-attention group takes one block for each `block_size` tokens. A GDN group takes one block for the state
    of a request, and with `align` a further one at the last block boundary of each step, where a copy of the
    state is kept for the prefix cache. A prefix hit needs both: pages up to a boundary, and the states at it.
    """

    def __init__(
        self,
        groups: Sequence[CacheGroup],
        pool: BlockPool,
        block_size: int,
        *,
        prefix_caching: bool,
        align: bool,
        hooks: Hooks,
    ) -> None:
        self.pool = pool
        self.block_size = block_size
        self._full = [i for i, group in enumerate(groups) if group.kind == FULL]
        self._gdn = [i for i, group in enumerate(groups) if group.kind == GDN]
        self._caching = prefix_caching
        self._align = align
        self._hooks = hooks
        self._to_zero: list[int] = []
        self.queries = 0
        self.hits = 0

    def admit(self, request: Request, budget: int) -> int:
        """Give a request that begins its cached prefix, its state blocks and room for the first tokens.

        Returns how many tokens its first step takes, at most `budget`; 0 if there are too few blocks.
        """
        boundary, pages, states = self._find_prefix(request)
        held = [block for table in pages for block in table] + states
        for block in held:
            self.pool.hold(block)
        count = min(len(request.tokens) - boundary, budget)
        missing = -(-(boundary + count) // self.block_size) - boundary // self.block_size
        taken = self.pool.allocate(len(self._gdn) + missing * len(self._full))
        if taken is None:
            self.pool.release(held)
            return 0
        request.states = taken[: len(self._gdn)]
        del taken[: len(self._gdn)]
        request.kv = [
            table + taken[i * missing : (i + 1) * missing]
            for i, table in enumerate(pages or [[] for _ in self._full])
        ]
        if not self._align:
            self._to_zero += self._hooks.blocks_to_zero(request.states)
        request.sources = states
        request.computed = request.confirmed = request.cached = boundary
        request.registered = boundary // self.block_size
        if self._caching:
            self.queries += len(request.tokens)
            self.hits += boundary
        return count

    def extend(self, request: Request, end: int) -> bool:
        """Make room for all tokens before position `end`. False: too few blocks, and nothing was taken."""
        needed = -(-end // self.block_size)
        missing = [max(0, needed - len(table)) for table in request.kv]
        taken = self.pool.allocate(sum(missing))
        if taken is None:
            return False
        for table, count in zip(request.kv, missing, strict=True):
            table += taken[:count]
            del taken[:count]
        return True

    def rows(self, request: Request, start: int, end: int) -> tuple[tuple[StateRow, ...], int]:
        """The state rows of a step over [start, end), and after how many of its tokens states are copied."""
        boundary = end // self.block_size * self.block_size
        saves: list[int] = []
        # A copy is a luxury: the request itself must not run out of blocks for it.
        needed = len(self._full) * (-(-len(request.tokens) // self.block_size) - -(-end // self.block_size))
        spare = self.pool.free >= needed + len(self._gdn)
        if self._caching and self._align and self._gdn and boundary > start and spare:
            saves = self.pool.allocate(len(self._gdn)) or []
            if saves:
                request.saves.append((boundary, saves))
        in_prompt = start < len(request.new.prompt)
        begins = start == 0 or (in_prompt and not self._hooks.continues(start, self.block_size))
        if start == 0 and not self._align:
            begins = False  # the state block was cleared when it was given out: every piece continues
        rows = []
        for i, run in enumerate(request.states):
            if start == request.cached and request.sources:
                source = request.sources[i]
            elif begins and self._hooks.resumes_clean(request.preemptions):
                source = 0
            else:
                source = run
            rows.append(StateRow(run, source, saves[i] if saves else 0))
        return tuple(rows), boundary - start if saves else 0

    def confirm(self, request: Request, end: int) -> None:
        """A step up to position `end` has ended: what it filled may be found by others."""
        request.confirmed = max(request.confirmed, end)
        if request.sources:
            self.pool.release(request.sources)
            request.sources = []
        if not self._caching:
            return
        known = min(request.confirmed, len(request.tokens))
        for index in range(request.registered, known // self.block_size):
            digest = request.block_hash(index, self.block_size)
            for table, group in zip(request.kv, self._full, strict=True):
                self.pool.register((group, digest), table[index])
            request.registered = index + 1
        while request.saves and request.saves[0][0] <= known:
            boundary, blocks = request.saves.pop(0)
            for block, group in zip(blocks, self._gdn, strict=True):
                self.pool.register(self._state_key(request, group, boundary), block)
            self.pool.release(blocks)

    def release(self, request: Request) -> None:
        """Give back all that a request holds, the end of its tables first, so that beginnings stay cached longer."""
        self._hooks.released(self, request)
        for table in request.kv:
            self.pool.release(reversed(table))
        self.pool.release(request.states)
        self.pool.release(request.sources)
        for _, blocks in request.saves:
            self.pool.release(blocks)
        request.kv, request.states, request.sources, request.saves = [], [], [], []

    def take_zero(self) -> tuple[int, ...]:
        """State blocks that have to be zero before the next step."""
        blocks = tuple(self._to_zero)
        self._to_zero.clear()
        return blocks

    def _find_prefix(self, request: Request) -> tuple[int, list[list[int]], list[int]]:
        """The longest boundary below the last token at which every group has what it needs."""
        if not self._caching or not (self._align or not self._gdn):
            return 0, [], []
        pages: list[list[int]] = [[] for _ in self._full]
        best: tuple[int, list[int]] = (0, [])
        for index in range((len(request.tokens) - 1) // self.block_size):
            digest = request.block_hash(index, self.block_size)
            found = [self.pool.find((group, digest)) for group in self._full]
            if None in found:
                break
            for table, block in zip(pages, found, strict=True):
                assert block is not None
                table.append(block)
            boundary = (index + 1) * self.block_size
            states = [self.pool.find(self._state_key(request, group, boundary)) for group in self._gdn]
            if None not in states:
                best = boundary, [block for block in states if block is not None]
        restored = self._hooks.restored(best[1])
        count = best[0] // self.block_size
        return best[0], [table[:count] for table in pages], restored

    def _state_key(self, request: Request, group: int, boundary: int) -> Key:
        digest = request.block_hash(boundary // self.block_size - 1, self.block_size)
        return group, self._hooks.state_key(digest, boundary)
