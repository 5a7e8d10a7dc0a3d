"""The search of Go's bisect: halves, and where neither half fails alone, one half beside the other.

golang.org/x/tools/cmd/bisect (documentation and behaviour of `search`), described in Cox, "Hash-based bisect
debugging in compilers and runtimes" (2024), https://research.swtch.com/bisect. It checks none and all, looks for a
locally minimal set, and confirms that the set fails alone. There, changes are halved by the bits of a hash; here by
their order, as the factors have no hash.
"""

from collections.abc import Sequence

from benchmarks.peers.protocol import Oracle, Suspects


def go_bisect(oracle: Oracle, factors: Sequence[str]) -> Suspects:
    """A locally minimal set; empty if even the safe launch fails, or if the confirming run passes."""
    if oracle.fails(()):
        return frozenset()
    found = _search(oracle, list(factors), frozenset())
    return found if oracle.fails(found) else frozenset()


def _search(oracle: Oracle, failing: list[str], added: Suspects) -> Suspects:
    """A minimal part of `failing` that fails beside `added`, knowing that all of it does."""
    if len(failing) == 1:
        return frozenset(failing)
    half = len(failing) // 2
    left, right = failing[:half], failing[half:]
    if oracle.fails(added | set(left)):
        return _search(oracle, left, added)
    if oracle.fails(added | set(right)):
        return _search(oracle, right, added)
    of_left = _search(oracle, left, added | set(right))
    # What is left of the first half with all of the second was just seen to fail.
    of_right = _search(oracle, right, added | of_left)
    return of_left | of_right
