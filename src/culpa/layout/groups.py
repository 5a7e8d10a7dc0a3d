"""Cache groups as vLLM forms them: over the whole model, then projected onto each stage.

Follows `get_kv_cache_groups`, `unify_kv_cache_spec_page_size`, `_get_kv_cache_groups_uniform_page_size` and
`_project_kv_cache_groups_to_worker` (https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/v1/core/kv_cache_utils.py),
for layouts in which a layer's blocks lie together.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from culpa.layout.errors import BadLayout
from culpa.layout.pages import Entry
from culpa.layout.settings import MambaCacheMode, Settings

# Past this ratio of the most to the fewest layers of a kind the fewest are the size of a group.
_LARGE = 1.5


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that share one block table. `size` is how many places it has; the rest of them is padding."""

    entries: tuple[Entry, ...]
    size: int

    @property
    def first(self) -> Entry:
        """Any entry: what a group's entries differ in does not matter to its block table."""
        return self.entries[0]

    @property
    def padding(self) -> int:
        """Places without a layer."""
        return self.size - len(self.entries)

    def on(self, layers: range, last: bool) -> tuple[Entry, ...]:
        """The group's entries on a stage; drafting layers stand on the last one."""
        return tuple(entry for entry in self.entries if (last if entry.drafting else entry.layer in layers))


def form_groups(entries: Sequence[Entry], settings: Settings) -> tuple[CacheGroup, ...]:
    """The groups in the engine's order.

    Raises BadLayout where the engine refuses the model with these settings.
    """
    if not entries:
        return ()
    if not settings.hybrid_manager:
        entries = _promoted(entries)
    if _one_table(entries):
        return (CacheGroup(tuple(entries), len(entries)),)
    buckets = _buckets(_same_page(entries), merge=settings.newer_shape)
    sizes = [len(bucket) for bucket in buckets]
    size = max(sizes) if max(sizes) < min(sizes) * _LARGE else min(sizes)
    groups: list[CacheGroup] = []
    for bucket in buckets:
        count = -(-len(bucket) // size)
        # Taken in turns, so that a stage has about as many layers of each group.
        groups += [CacheGroup(tuple(bucket[index::count]), size) for index in range(count)]
    return tuple(groups)


def blocks_per_request(
    group: CacheGroup, max_model_len: int, mode: MambaCacheMode, settings: Settings
) -> int:
    """Blocks that one request of the longest length takes from a group (`max_memory_usage_bytes` / page)."""
    return max(_blocks_of(entry, max_model_len, mode, settings) for entry in _distinct(group.entries))


def _blocks_of(entry: Entry, length: int, mode: MambaCacheMode, settings: Settings) -> int:
    spec = settings.speculative_tokens
    if entry.kind == "state":
        if mode == "all":
            return _ceil(length, entry.block_size) + spec
        return (2 if mode == "align" else 1) + spec
    if entry.kind == "sliding":
        assert entry.window is not None
        # One more, since a window may begin in the middle of a block.
        return _ceil(min(entry.window - 1 + settings.in_flight_tokens, length), entry.block_size) + 1
    if entry.kind == "chunked":
        assert entry.window is not None
        return _ceil(min(entry.window + settings.in_flight_tokens, length), entry.block_size)
    return _ceil(length, entry.block_size)


def _one_table(entries: Sequence[Entry]) -> bool:
    """Whether all layers need the same number of token slots, so that one block table serves them all."""
    first = entries[0]
    if any(entry.block_size != first.block_size for entry in entries):
        return False
    if first.kind in ("full", "latent"):
        return all(entry.kind in ("full", "latent") for entry in entries)
    if first.kind == "state":
        return all(entry.kind == "state" and entry.page_bytes == first.page_bytes for entry in entries)
    return all(entry.kind == first.kind and entry.window == first.window for entry in entries)


def _promoted(entries: Sequence[Entry]) -> list[Entry]:
    """With the hybrid manager off, local layers are kept like full ones."""
    kinds = {entry.kind for entry in entries}
    if kinds & {"full", "latent"} and kinds & {"sliding", "chunked"}:
        entries = [
            replace(entry, kind="full") if entry.kind in ("sliding", "chunked") else entry
            for entry in entries
        ]
    if not _one_table(entries):
        raise BadLayout(
            "--disable-hybrid-kv-cache-manager: vLLM can't keep this model's layers in one group "
            "(attention beside recurrent states), so it refuses to start"
        )
    return list(entries)


def _same_page(entries: Sequence[Entry]) -> list[Entry]:
    """All entries with the largest page: longer blocks where that fits, padding where it does not."""
    largest = max(entry.page_bytes for entry in entries)
    empty = next((entry for entry in entries if entry.page_bytes <= 0), None)
    if empty is not None:
        raise BadLayout(
            f"layer {empty.layer}: its page has no bytes, so config.json has a size of 0 somewhere"
        )
    made = []
    for entry in entries:
        if entry.page_bytes == largest:
            made.append(entry)
        elif entry.kind != "state" and largest % entry.page_bytes == 0:
            ratio = largest // entry.page_bytes
            made.append(
                replace(
                    entry,
                    block_size=entry.block_size * ratio,
                    raw_bytes=entry.raw_bytes * ratio,
                    page_bytes=largest,
                )
            )
        elif entry.kind == "latent":
            raise BadLayout(
                f"layer {entry.layer}: its page of {entry.page_bytes} bytes does not divide the largest one of "
                f"{largest}, and a latent page can't be padded: vLLM refuses to start"
            )
        else:
            made.append(replace(entry, page_bytes=largest))
    return made


def _buckets(entries: Iterable[Entry], merge: bool) -> list[list[Entry]]:
    """Entries of one specification each, in the order in which the specifications first appear."""
    buckets: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        window = None if merge and entry.kind in ("full", "latent") else entry.window
        key = (
            entry.kind, entry.block_size, entry.page_bytes, entry.heads, entry.head_dim, entry.parts, window
        )  # fmt: skip
        buckets.setdefault(key, []).append(entry)
    return list(buckets.values())


def _distinct(entries: Iterable[Entry]) -> list[Entry]:
    seen: dict[tuple[object, ...], Entry] = {}
    for entry in entries:
        seen.setdefault((entry.kind, entry.block_size, entry.window), entry)
    return list(seen.values())


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
