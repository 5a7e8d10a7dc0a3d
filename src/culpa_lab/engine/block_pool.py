"""The pool of cache blocks: free ones in the order of their release, used ones by count, cached ones by key."""

from collections import OrderedDict
from collections.abc import Iterable

Key = tuple[int, bytes]  # (cache group, hash of all tokens up to the block's end)


class BlockPool:
    """Blocks 1 to `blocks` - 1; block 0 is the null block that padding reads and writes.

    A released block that the prefix cache knows keeps its content until it is handed out again, oldest first.
    With `elastic`, memory stands behind a block only while somebody holds it or the prefix cache knows it: the
    pool tells by `take_changes` what has to be mapped and unmapped before the next step.
    """

    def __init__(self, blocks: int, *, elastic: bool, first: int = 1) -> None:
        self.size = blocks
        # The blocks below `first` are used last: warm-up has just had them.
        order = [*range(first, blocks), *range(1, first)]
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(order)
        self._refs: dict[int, int] = {}
        self._by_key: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}
        self._elastic = elastic
        self._mapped: set[int] = set()
        self._to_map: dict[int, None] = {}
        self._to_unmap: dict[int, None] = {}

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return len(self._free)

    @property
    def usage(self) -> float:
        """The share of blocks that somebody holds, 0 to 1."""
        return 1 - len(self._free) / max(1, self.size - 1)

    def allocate(self, count: int) -> list[int] | None:
        """Take `count` blocks, or none at all if there are too few."""
        if count > len(self._free):
            return None
        taken = []
        for _ in range(count):
            block, _ = self._free.popitem(last=False)
            key = self._keys.pop(block, None)
            if key is not None:
                del self._by_key[key]
            self._refs[block] = 1
            self._want(block)
            taken.append(block)
        return taken

    def find(self, key: Key) -> int | None:
        """The block that holds what `key` stands for."""
        return self._by_key.get(key)

    def hold(self, block: int) -> None:
        """One more user of a block, which may be a free one that the cache knows."""
        self._free.pop(block, None)
        self._refs[block] = self._refs.get(block, 0) + 1

    def release(self, blocks: Iterable[int]) -> None:
        """One user less of each block."""
        for block in blocks:
            self._refs[block] -= 1
            assert self._refs[block] >= 0, f"block {block} was released twice"
            if self._refs[block] == 0:
                del self._refs[block]
                self._free[block] = None
                if block not in self._keys:
                    self._drop(block)

    def register(self, key: Key, block: int) -> None:
        """The prefix cache knows a block from now on, in place of an older one with the same content."""
        if block in self._keys:
            return
        older = self._by_key.get(key)
        if older is not None:
            del self._keys[older]
            if older in self._free:
                self._drop(older)
        self._by_key[key] = block
        self._keys[block] = key

    def withdraw(self, block: int) -> None:
        """Take the memory behind a block away before the next step."""
        self._drop(block)

    def forget(self) -> None:
        """Empty the prefix cache."""
        for block in self._keys:
            if block in self._free:
                self._drop(block)
        self._by_key.clear()
        self._keys.clear()

    def take_changes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Blocks to map and blocks to unmap since the last call."""
        mapping, unmapping = tuple(self._to_map), tuple(self._to_unmap)
        self._mapped.update(mapping)
        self._mapped.difference_update(unmapping)
        self._to_map.clear()
        self._to_unmap.clear()
        return mapping, unmapping

    def _want(self, block: int) -> None:
        if not self._elastic:
            return
        self._to_unmap.pop(block, None)
        if block not in self._mapped:
            self._to_map[block] = None

    def _drop(self, block: int) -> None:
        if not self._elastic:
            return
        self._to_map.pop(block, None)
        if block in self._mapped:
            self._to_unmap[block] = None
