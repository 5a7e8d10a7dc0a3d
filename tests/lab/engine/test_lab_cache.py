"""Cache groups, the pool of blocks, and who holds what."""

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from culpa_lab.engine.block_pool import BlockPool
from culpa_lab.engine.cache_groups import (
    FULL,
    GDN,
    blocks_per_request,
    cache_groups,
    capacity_tokens,
    default_partition,
    stage_width,
)

SIXTY_FOUR = (GDN, GDN, GDN, FULL) * 16


def test_a_hybrid_of_64_layers_has_three_gdn_groups_and_one_of_full_attention() -> None:
    groups = cache_groups(SIXTY_FOUR)
    assert [(group.kind, len(group.layers)) for group in groups] == [(GDN, 16)] * 3 + [(FULL, 16)]
    assert groups[1].layers[:3] == (1, 5, 9)
    assert groups[3].layers[:3] == (3, 7, 11)


@pytest.mark.parametrize(
    ("partition", "widths"),
    [((23, 23, 18), [6, 6, 5]), ((24, 24, 16), [6, 6, 4]), ((64,), [16]), ((3, 30, 31), [1, 8, 8])],
)
def test_a_block_is_as_wide_as_the_widest_group_on_the_stage(
    partition: tuple[int, ...], widths: list[int]
) -> None:
    groups = cache_groups(SIXTY_FOUR)
    firsts = [sum(partition[:stage]) for stage in range(len(partition))]
    found = [
        stage_width(groups, first, first + count) for first, count in zip(firsts, partition, strict=True)
    ]
    assert found == widths


@pytest.mark.parametrize(("blocks", "tokens"), [(492, 370_617), (452, 340_485)])
def test_capacity_is_what_vllm_reported_for_such_a_model(blocks: int, tokens: int) -> None:
    # https://github.com/vllm-project/vllm/issues/63505: blocks of 784 tokens, contexts of 131,072.
    groups = cache_groups(SIXTY_FOUR)
    assert blocks_per_request(groups, 131_072, 784, "align") == 174
    assert capacity_tokens(groups, blocks, 131_072, 784, "align") == tokens


def test_a_model_of_one_kind_has_one_group() -> None:
    assert [len(group.layers) for group in cache_groups([FULL] * 7)] == [7]


@pytest.mark.parametrize(
    ("layers", "stages", "counts"),
    [(64, 1, (64,)), (64, 3, (21, 22, 21)), (64, 4, (16,) * 4), (9, 4, (2, 2, 3, 2))],
)
def test_the_remainder_goes_to_stages_before_the_last(
    layers: int, stages: int, counts: tuple[int, ...]
) -> None:
    assert default_partition(layers, stages) == counts


class Pools(RuleBasedStateMachine):
    """A pool against plain bookkeeping: nobody gets what another holds, and what is held or known is mapped."""

    SIZE = 12

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(self.SIZE, elastic=True)
        self.held: list[int] = []  # one entry for each user
        self.known: dict[bytes, int] = {}
        self.mapped: set[int] = set()

    @rule(count=st.integers(1, 5))
    def allocate(self, count: int) -> None:
        taken = self.pool.allocate(count)
        if taken is None:
            assert count > self.SIZE - 1 - len(set(self.held))
            return
        assert not set(taken) & set(self.held)
        assert 0 not in taken
        self.known = {key: block for key, block in self.known.items() if block not in taken}
        self.held += taken

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        block = data.draw(st.sampled_from(self.held))
        self.pool.release([block])
        self.held.remove(block)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), key=st.sampled_from([b"a", b"b", b"c", b"d"]))
    def register(self, data: st.DataObject, key: bytes) -> None:
        block = data.draw(st.sampled_from(self.held))
        self.pool.register((0, key), block)
        if block not in self.known.values():
            self.known[key] = block

    @rule(key=st.sampled_from([b"a", b"b", b"c", b"d"]))
    def find(self, key: bytes) -> None:
        block = self.pool.find((0, key))
        assert block == self.known.get(key)
        if block is not None:
            self.pool.hold(block)
            self.held.append(block)

    @rule()
    def step(self) -> None:
        mapping, unmapping = self.pool.take_changes()
        assert not set(mapping) & self.mapped
        assert set(unmapping) <= self.mapped
        self.mapped = (self.mapped | set(mapping)) - set(unmapping)
        assert self.mapped == set(self.held) | set(self.known.values())

    @invariant()
    def counts(self) -> None:
        assert self.pool.free == self.SIZE - 1 - len(set(self.held))


TestPools = Pools.TestCase
TestPools.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_cached_blocks_are_given_out_last_released_last() -> None:
    pool = BlockPool(4, elastic=False)
    blocks = pool.allocate(3)
    assert blocks is not None
    for block in blocks:
        pool.register((0, bytes([block])), block)
    pool.release([blocks[1]])
    pool.release([blocks[0], blocks[2]])
    assert pool.allocate(2) == [blocks[1], blocks[0]]
    assert pool.find((0, bytes([blocks[2]]))) == blocks[2]


def test_a_block_that_nobody_holds_can_not_be_released() -> None:
    pool = BlockPool(3, elastic=False)
    with pytest.raises(KeyError):
        pool.release([1])
