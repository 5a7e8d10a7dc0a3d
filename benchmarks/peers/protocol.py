"""What every peer is given: an oracle that answers configurations, and the names of the factors.

A peer is a function `(oracle, factors) -> found set`. It asks `oracle.fails(suspects)`: does it fail with these
factors at their suspect level and all others at the preferred safe one? What was asked once is not run again, as
every careful implementation has a cache. For intermittent faults the oracle repeats each configuration a fixed
number of times (see `benchmarks.peers.repeats`), so that the peers themselves need not know.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from benchmarks.peers.repeats import ONCE, Repeats


class Answer(Enum):
    """The three answers of Zeller and Hildebrandt's test function. UNRESOLVED is another failure than the one
    that is looked for, or an arm that can't be tested."""

    PASS = "pass"
    FAIL = "fail"
    UNRESOLVED = "unresolved"


Suspects = frozenset[str]
Trial = Callable[[Suspects], Answer]


class OutOfTrials(RuntimeError):
    """The budget of trials is spent."""


class Oracle:
    """Answers sets of suspects by running trials, and counts them. `trial` runs one."""

    def __init__(
        self, trial: Trial, *, repeats: Repeats = ONCE, budget: int = 400, size: int | None = None
    ) -> None:
        """`size` is the number of members that a method may be told beforehand (None: unknown)."""
        self.trials = 0
        self.size = size
        self._trial = trial
        self._repeats = repeats
        self._budget = budget
        self._known: dict[Suspects, Answer] = {}

    def answer(self, suspects: Iterable[str]) -> Answer:
        """Run a configuration as often as it takes, or remember what it came to. Raises OutOfTrials."""
        asked = frozenset(suspects)
        if asked not in self._known:
            self._known[asked] = self._run(asked)
        return self._known[asked]

    def fails(self, suspects: Iterable[str]) -> bool:
        """Whether it fails; unresolved counts as not failing."""
        return self.answer(suspects) is Answer.FAIL

    def see_it_fail(self, suspects: Iterable[str]) -> None:
        """Run a configuration that is known to fail until it does. Raises OutOfTrials."""
        asked = frozenset(suspects)
        while self._once(asked) is not Answer.FAIL:
            pass
        self._known[asked] = Answer.FAIL

    def _once(self, suspects: Suspects) -> Answer:
        if self.trials >= self._budget:
            raise OutOfTrials(f"{self._budget} trials are spent")
        self.trials += 1
        return self._trial(suspects)

    def _run(self, suspects: Suspects) -> Answer:
        """Repeated until the answer can't change any more. Unresolved once is unresolved."""
        failed = passed = 0
        while True:
            answer = self._once(suspects)
            if answer is Answer.UNRESOLVED:
                return answer
            failed += answer is Answer.FAIL
            passed += answer is Answer.PASS
            if failed >= self._repeats.failures:
                return Answer.FAIL
            if passed > self._repeats.runs - self._repeats.failures:
                return Answer.PASS


Peer = Callable[[Oracle, Sequence[str]], Suspects]
