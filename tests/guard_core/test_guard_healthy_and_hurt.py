"""The mirror against a scheduler that was written without it: silent on what is right, loud on what is not."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.guard_core.scheduler_model import GROUPS, Scheduler

from culpa_guard import Mirror, StepView, Violation
from culpa_guard.checks import STEP_CHECKS

BLOCKS = 40
NAMES = ("a", "b", "c", "d")
STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(NAMES), st.integers(1, 11), min_size=1, max_size=4),
        st.sampled_from((None, None, None, *NAMES)),
    ),
    min_size=1,
    max_size=30,
)


def play(steps: list[tuple[dict[str, int], str | None]]) -> tuple[Mirror, StepView, list[Violation]]:
    """All steps, checked; the mirror and the view of the last one."""
    scheduler, mirror, found = Scheduler(BLOCKS), Mirror(GROUPS, BLOCKS), []
    view = StepView((), (), ())
    born = 0
    for chunks, preempted in steps:
        wanted = {}
        for name, chunk in chunks.items():
            alive = next((job for job in scheduler.jobs if job.startswith(name)), None)
            if alive is None:
                born += 1
                alive = f"{name}{born}"
                scheduler.add(alive, 5 + 7 * chunk)
            wanted[alive] = chunk
        victim = next((job for job in scheduler.jobs if preempted and job.startswith(preempted)), None)
        if victim is not None:
            scheduler.preempt(victim)
        plan, view = scheduler.schedule(wanted)
        found += mirror.apply(plan)
        for check in STEP_CHECKS.values():
            found += check(mirror, view)
    return mirror, view, found


@given(STEPS)
def test_a_right_engine_raises_nothing(steps: list[tuple[dict[str, int], str | None]]) -> None:
    assert play(steps)[2] == []


@given(STEPS, st.data())
def test_one_wrong_state_index_is_found_and_named(
    steps: list[tuple[dict[str, int], str | None]], data: st.DataObject
) -> None:
    mirror, view, _ = play(steps)
    assume(view.requests)
    group, row = data.draw(st.integers(0, 1)), data.draw(st.integers(0, len(view.requests) - 1))
    given_ = view.groups[group]
    assert given_.states is not None
    right = given_.states[row]
    wrong = data.draw(st.integers(-5, BLOCKS + 5).filter(lambda block: block != right))
    states = [wrong if place == row else block for place, block in enumerate(given_.states)]
    groups = tuple(replace(one, states=states) if one is given_ else one for one in view.groups)
    hurt = replace(view, groups=groups)
    found = [one for check in STEP_CHECKS.values() for one in check(mirror, hurt)]
    (first, *_) = [one for one in found if one.kind != "state_index_not_unique"]
    assert (first.group, first.request, first.expected, first.found) == (
        group,
        view.requests[row],
        right,
        wrong,
    )
    outside = not 0 < wrong < BLOCKS
    assert (first.kind == "state_index_out_of_range") == outside


@given(STEPS, st.data())
def test_one_wrong_block_is_found_and_named(
    steps: list[tuple[dict[str, int], str | None]], data: st.DataObject
) -> None:
    mirror, view, _ = play(steps)
    assume(view.requests)
    given_ = view.groups[2]
    assert given_.table is not None
    row = data.draw(st.integers(0, len(view.requests) - 1))
    live = mirror.live[view.requests[row]]
    column = data.draw(st.integers(0, -(-live.end // 2) - 1))
    right = given_.table[row][column]
    wrong = data.draw(st.integers(-3, 2 * BLOCKS + 3).filter(lambda block: block != right))
    table = [list(one) for one in given_.table]
    table[row][column] = wrong
    groups = tuple(replace(one, table=table) if one is given_ else one for one in view.groups)
    found = [one for check in STEP_CHECKS.values() for one in check(mirror, replace(view, groups=groups))]
    (only,) = found
    assert only.kind == ("block_not_owned" if 0 <= wrong < 2 * BLOCKS else "block_out_of_range")
    assert (only.group, only.request, only.index) == (2, view.requests[row], column)
    assert (only.expected, only.found) == (right, wrong)
