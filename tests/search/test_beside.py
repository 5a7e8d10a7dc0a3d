"""A cause that other settings keep away, beside one that was found."""

from culpa.model import Configuration, Factor, Level, Observation, Outcome
from culpa.search import Strategy

#: A search of the reference engine with two faults, factors by their first letters: execution, capture sizes, async
#: scheduling, prefix caching, number of blocks, k at once, requests before. Few blocks without prefix caching keep
#: requests from running at once, and so the one fault away.
TWO_FAULTS = [
    ("ecapnkr", "F"), ("", "P"), ("kr", "P"), ("ecpn", "P"), ("ecpnk", "F"), ("ek", "P"), ("pk", "P"), ("epk", "P"),
    ("eck", "F"), ("ck", "P"), ("ec", "P"), ("eck", "F"), ("capnkr", "F"), ("c", "P"), ("ck", "P"), ("ckr", "P"),
    ("apnkr", "F"), ("a", "P"), ("akr", "P"), ("apnr", "P"), ("apnk", "F"), ("nk", "P"), ("apk", "P"), ("pnk", "F"),
    ("pn", "P"), ("pnkr", "F"), ("ecankr", "P"), ("ecank", "P"),
]  # fmt: skip


def test_failures_that_a_finding_does_not_explain_are_a_further_cause_by_their_own_trials() -> None:
    factors = tuple(Factor(letter, "on", ("off",)) for letter in "ecapnkr")
    outcomes = {"F": Outcome.FAIL, "P": Outcome.PASS}
    history = [
        Observation(
            Configuration.of({letter: "on" if letter in suspects else "off" for letter in "ecapnkr"}),
            outcomes[outcome],
            "baseline" if len(suspects) == 7 else "search",
        )
        for suspects, outcome in TWO_FAULTS
    ]
    conclusion = Strategy(factors).conclude(history, "the end")
    found = {"".join(member.name for member in one.members): one for one in conclusion.findings}
    assert found["pnk"].level is Level.ISOLATED
    assert (found["eck"].level, found["eck"].sufficient.failed) == (Level.CONTRAST, 2)
    assert not any("a further cause beside" in text for text in conclusion.not_excluded)
