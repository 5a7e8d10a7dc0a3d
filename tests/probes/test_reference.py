import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.probes.answers import chat, measured, probe, said

from culpa.probes import Answer, compare, reference_from
from culpa.probes.reference import nearest

SURE = {"a": -0.1, "z": -4.0}


def answer(*tokens: str, logprob: float = -0.1) -> Answer:
    return measured(*[(token, logprob, {"z": -4.0, "y": -5.0}) for token in tokens])


def test_equal_tokens_within_the_tolerance_are_the_same() -> None:
    comparison = compare(answer("a", "b"), answer("a", "b", logprob=-0.15), tolerance=0.1)
    assert comparison.verdict == "same"
    assert comparison.deviation == pytest.approx(0.05)


def test_equal_tokens_beyond_the_tolerance_deviate() -> None:
    comparison = compare(answer("a", "b"), answer("a", "b", logprob=-2.0), tolerance=0.1)
    assert comparison.verdict == "deviates"
    assert "1.90 nats" in comparison.sentence


def test_a_divergence_at_a_near_tie_is_no_failure() -> None:
    reference = measured(("a", -0.1, {"z": -4.0}), ("b", -0.700, {"c": -0.704, "z": -4.0}))
    comparison = compare(reference, answer("a", "c"), tolerance=0.1)
    assert comparison.verdict == "near_tie"
    assert comparison.gap == pytest.approx(0.004)


def test_a_token_that_the_reference_rated_far_below_its_own_diverges() -> None:
    comparison = compare(answer("a", "b"), answer("a", "z"), tolerance=0.1)
    assert comparison.verdict == "diverges"
    assert comparison.tokens == 1


def test_a_near_tie_of_other_tokens_does_not_excuse_a_third_one() -> None:
    reference = measured(("a", -0.70, {"b": -0.71, "c": -6.0}))
    assert compare(reference, answer("q"), tolerance=0.1).verdict == "diverges"


def test_a_token_below_a_flat_list_of_candidates_is_undecided() -> None:
    reference = measured(("a", -6.20, {"b": -6.21, "c": -6.22}))
    assert compare(reference, answer("q"), tolerance=0.1).verdict == "undecided"


def test_a_deviation_before_a_near_tie_still_counts() -> None:
    reference = measured(("a", -0.1, {"z": -4.0}), ("b", -0.70, {"c": -0.70}))
    changed = measured(("a", -3.0, {"z": -4.0}), ("c", -0.70, {"b": -0.70}))
    assert compare(reference, changed, tolerance=0.1).verdict == "deviates"


def test_a_text_without_numbers_is_laid_against_the_references_tokens() -> None:
    reference = measured(("The", -1.96, {"Two": -2.00, "A": -7.0}), (" answer", -0.1, {" end": -5.0}))
    assert compare(reference, said("The answer"), tolerance=0.1).verdict == "same"
    assert compare(reference, said("Two plus"), tolerance=0.1).verdict == "near_tie"
    assert compare(reference, said("The end"), tolerance=0.1).verdict == "diverges"


def test_different_texts_without_any_numbers_are_undecided() -> None:
    assert compare(said("yes"), said("no"), tolerance=0.1).verdict == "undecided"


def test_an_answer_that_ends_early_is_undecided() -> None:
    assert compare(answer("a", "b"), answer("a"), tolerance=0.1).verdict == "undecided"


def test_only_one_side_listing_its_end_token_is_the_same() -> None:
    assert compare(answer("a", ""), answer("a"), tolerance=0.1).verdict == "same"


def test_embeddings_compare_by_direction() -> None:
    one = said("", embedding=(1.0, 0.0))
    assert compare(one, said("", embedding=(2.0, 0.001)), tolerance=0.1).verdict == "same"
    assert compare(one, said("", embedding=(0.0, 1.0)), tolerance=0.1).verdict == "diverges"
    assert compare(one, said("", embedding=(1.0,)), tolerance=0.1).verdict == "diverges"


def test_an_equal_text_does_not_hide_that_log_probabilities_moved() -> None:
    references = [said("ab"), answer("a", "b")]
    assert nearest(references, answer("a", "b", logprob=-3.0), tolerance=0.1).verdict == "deviates"


def test_the_tolerance_is_twice_the_references_own_noise() -> None:
    asked = probe(chat(), chat())
    reference = reference_from([(asked, (answer("a"), answer("a", logprob=-0.3)))])
    assert reference.noise == pytest.approx(0.2)
    assert reference.tolerance == pytest.approx(0.4)
    assert reference.pairs == 1


def test_the_tolerance_has_a_floor() -> None:
    assert reference_from([(probe(chat()), (answer("a"),))]).tolerance == 0.1


def test_a_streamed_answer_counts_for_the_same_request() -> None:
    reference = reference_from([(probe(chat(stream=True)), (said("4"),))])
    assert reference.to(chat()) == (said("4"),)


def test_failed_answers_are_no_reference() -> None:
    lost = Answer(failure="connection_lost", error="gone")
    assert reference_from([(probe(chat(expect="4")), (lost,))]).answers == {}


def test_a_reference_knows_only_what_it_always_got_right() -> None:
    asked = probe(chat(expect="4"), chat(expect="4"))
    assert reference_from([(asked, (said("4"), said("4")))]).knows == {"test"}
    assert reference_from([(asked, (said("4"), said("5")))]).knows == frozenset()


tokens = st.lists(st.sampled_from(["a", "b", ""]), max_size=6)


@given(tokens, tokens, st.floats(-5, 0), st.floats(0.01, 2))
def test_comparing_never_fails_and_equal_answers_are_the_same(
    one: list[str], other: list[str], logprob: float, tolerance: float
) -> None:
    first, second = answer(*one), answer(*other, logprob=logprob)
    compare(first, second, tolerance)
    compare(first, said("".join(other)), tolerance)
    assert compare(second, second, tolerance).verdict == "same"
