"""Two printed capacities in words: blocks, bytes, and what they are the size of."""

import pytest
from tests.layout.shapes import dense, incident_plan

from culpa.layout import BadLayout, Settings, explain, make_plan
from culpa.layout.explain import blocks_for, fullest


def test_the_incident_in_words() -> None:
    told = explain(incident_plan((23, 23, 18)), incident_plan((24, 24, 16)), (370_617, 340_485))
    assert told.blocks == (492, 452)
    assert told.explained
    words = " ".join(told.sentences)
    assert "one decoder layer less of weights" in words
    assert "The split of layer types explains nothing" in words
    assert "40 blocks of 19,267,584 bytes = 771 MB" in words
    assert "no evidence of a fault" in words


def test_the_order_of_the_two_does_not_matter() -> None:
    told = explain(incident_plan((24, 24, 16)), incident_plan((23, 23, 18)), (340_485, 370_617))
    assert told.explained
    assert "The stage that limits 23,23,18" in " ".join(told.sentences)


def test_equal_capacities_need_no_explanation() -> None:
    told = explain(incident_plan((23, 23, 18)), incident_plan((24, 24, 16)), (370_617, 370_617))
    assert told.explained
    assert "nothing to explain" in " ".join(told.sentences)


def test_a_difference_that_weights_do_not_account_for_is_said() -> None:
    plan = incident_plan((23, 23, 18))
    told = explain(plan, incident_plan((24, 24, 16)), (370_617, 210920))
    assert told.blocks == (492, 280)
    assert not told.explained
    assert "does not account for" in told.sentences[-2]


def test_numbers_that_no_blocks_give_are_not_explained_away() -> None:
    told = explain(incident_plan((23, 23, 18)), incident_plan((24, 24, 16)), (370_618, 340_485))
    assert told.blocks == (None, 452)
    assert not told.explained
    assert "No number of blocks gives 370,618" in told.sentences[0]


def test_another_length_that_gives_both_is_offered() -> None:
    plans = [incident_plan(split, max_model_len=262144) for split in ((23, 23, 18), (24, 24, 16))]
    told = explain(plans[0], plans[1], (370_617, 340_485))
    assert not told.explained
    assert "--max-model-len 131072, prefix caching on (492 and 452 blocks)" in told.sentences[-1]


@pytest.mark.parametrize("blocks", [1, 17, 174, 492, 100_003])
def test_blocks_are_found_back_from_the_capacity_they_give(blocks: int) -> None:
    plan = incident_plan(blocks=blocks)
    assert plan.capacity_tokens is not None
    assert blocks_for(plan.capacity_tokens, plan.blocks_per_request, plan.max_model_len) == blocks


def test_the_fullest_stage_counts_weights_and_blocks() -> None:
    assert fullest(incident_plan((23, 23, 18)), 492) == 0
    assert fullest(incident_plan((10, 44, 10)), 492) == 1
    assert fullest(make_plan(dense(), Settings(pipeline_parallel_size=2)), 10) == 0


def test_a_capacity_of_nothing_is_refused() -> None:
    with pytest.raises(BadLayout, match="capacity 0"):
        explain(incident_plan(), incident_plan(), (0, 5))
