"""What `culpa minimize` did to a failing case: every change that was tried, and what is left."""

from dataclasses import dataclass

from culpa.model.finding import Count


@dataclass(frozen=True, slots=True)
class Attempt:
    """One candidate: what it takes away, in which step, and how its trials ended.

    `failed` counts the trials with the hunted signature among those that are evidence (`trials`); `other` those that
    failed differently, `untestable` those that could not be run. `kept` is whether the search went on from it.
    `ids` are its trials.
    """

    step: str
    change: str
    count: Count
    other: int = 0
    untestable: int = 0
    kept: bool = False
    note: str = ""
    ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Size:
    """How much a reader of the reproduction has to look at: words of the command, variables, requests, tokens of the
    longest prompt as estimated."""

    words: int
    variables: int
    requests: int
    prompt_tokens: int


@dataclass(frozen=True, slots=True)
class Rerun:
    """How the written reproduction ended when it was run by itself: `said` is its last line."""

    control: bool
    runs: int
    failed: int
    said: str


@dataclass(frozen=True, slots=True)
class Minimization:
    """The result.

    `command` and `request` describe what is left; `before` and `after` its size; `rate` is how often the smallest case
    failed, `rate_before` how often the one that was begun with did. `thresholds` are sentences about numbers, `control`
    the change that makes it pass. `stopped` says what ended it early, empty if nothing did. `files` are the names and
    texts of the reproduction.
    """

    run_id: str
    engine: str
    signature: str
    command: str
    request: str
    before: Size
    after: Size
    rate_before: Count
    rate: Count
    rate_sentence: str
    attempts: tuple[Attempt, ...]
    thresholds: tuple[str, ...] = ()
    control: str = ""
    reruns: tuple[Rerun, ...] = ()
    notes: tuple[str, ...] = ()
    trials: int = 0
    elapsed_seconds: float = 0.0
    stopped: str = ""
    files: tuple[tuple[str, str], ...] = ()
