"""What changed between the last good and the first bad version: titles of commits, release notes, printed settings."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from culpa.engines import EngineAdapter
from culpa.model import Outcome, Trial
from culpa.model.bisection import ENGINE_VERSION, Candidate, ChangedSetting
from culpa.model.redact import printable, redact
from culpa.store import BadRunFolder
from culpa.triage import printed_settings
from culpa.versions.commands import answer
from culpa.versions.order import parsed, same_version

MOST_TITLES = 400
_MOST_LINES = 20_000
_HEADING = re.compile(r"^#{1,4}\s+(?P<markdown>\S.{0,200})$")
_WORD = re.compile(r"v?\d[\w.+!-]*")
# Paths and addresses differ from trial to trial, whatever the version.
_OWN = re.compile(r"/(?:tmp|home|root|var|work)/|0x[0-9a-f]{4,}|127\.0\.0\.1|culpa-runs")
_NAMES_A_PLACE = frozenset({"port", "host", "api_server_count", "data_parallel_rpc_port", "engine_version"})


@dataclass(frozen=True, slots=True)
class NotesAsked:
    """Where titles may be read: a file of release notes, and a checkout whose tags are the versions."""

    file: str | None = None
    repository: str | None = None


def check_notes(asked: NotesAsked) -> None:
    """Raises BadRunFolder where a file or a repository that was named can't be read."""
    if asked.file is not None and not Path(asked.file).is_file():
        raise BadRunFolder(f"--notes {asked.file}: no such file")
    if asked.repository is not None and answer(["git", "-C", asked.repository, "rev-parse"]) is None:
        raise BadRunFolder(f"--checkout {asked.repository}: is no git repository (or git is not installed)")


def titles_between(
    candidates: Sequence[Candidate], older: str, newer: str, asked: NotesAsked
) -> tuple[tuple[str, ...], str]:
    """What came in after `older` up to `newer`, oldest first, and where that was read; nothing where it was not told.

    `candidates` are the versions in their order, oldest first.
    """
    labels = [candidate.label for candidate in candidates]
    part = candidates[labels.index(older) + 1 : labels.index(newer) + 1]
    own = [f"{one.label} {one.title}" for one in part if one.title]
    if own:
        return _shown(own), "the list of versions"
    if asked.repository is not None:
        lines = _log(asked.repository, older, newer)
        if lines:
            return _shown(lines), f"git log of {asked.repository}"
    if asked.file is not None:
        text = Path(asked.file).read_text(encoding="utf-8", errors="replace")
        return _shown(sections(text, [one.label for one in part])), asked.file
    return (), ""


def sections(notes: str, labels: Sequence[str]) -> list[str]:
    """The headings and entries of release notes that belong to one of these versions."""
    found: list[str] = []
    inside = False
    for line in notes.splitlines():
        heading = _HEADING.match(line)
        if heading is not None:
            words = _WORD.findall(heading["markdown"])
            named = [word for word in words if parsed(word) is not None]
            if named or not inside:
                inside = any(same_version(word, label) for word in named for label in labels)
            if inside:
                found.append(heading["markdown"])
        elif inside and line.lstrip().startswith(("-", "*", "+")):
            found.append(line.strip().lstrip("-*+ "))
    return found


def changed_settings(
    adapter: EngineAdapter, folder: Path, trials: Sequence[Trial], good: str, bad: str
) -> tuple[ChangedSetting, ...]:
    """What the two versions printed of their configuration for the same command, where it differs."""
    before = _printed(adapter, folder, trials, good, (Outcome.PASS, Outcome.FAIL))
    after = _printed(adapter, folder, trials, bad, (Outcome.FAIL, Outcome.PASS))
    if not before or not after:
        return ()
    names = sorted(before.keys() | after.keys())
    return tuple(
        ChangedSetting(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name) and not _own(name, before.get(name), after.get(name))
    )


def _printed(
    adapter: EngineAdapter, folder: Path, trials: Sequence[Trial], label: str, outcomes: tuple[Outcome, ...]
) -> dict[str, str]:
    own = [
        trial
        for outcome in outcomes
        for trial in trials
        if trial.outcome is outcome
        and trial.configuration.get(ENGINE_VERSION) == label
        and trial.purpose != "settings"
    ]
    for trial in own:
        try:
            with (folder / trial.folder / "engine.log").open(encoding="utf-8", errors="replace") as log:
                lines = [line.rstrip("\n") for line in islice(log, _MOST_LINES)]
        except OSError:
            continue
        return {**printed_settings(lines), **adapter.effective(lines, {})}
    return {}


def _own(name: str, before: str | None, after: str | None) -> bool:
    return name in _NAMES_A_PLACE or any(_OWN.search(value) for value in (before, after) if value is not None)


def _log(repository: str, older: str, newer: str) -> list[str]:
    ends = [_tag(repository, older), _tag(repository, newer)]
    if None in ends:
        return []
    words = ["git", "-C", repository, "log", "--reverse", "--format=%h %s", f"{ends[0]}..{ends[1]}"]
    return (answer(words, seconds=120) or "").splitlines()


def _tag(repository: str, label: str) -> str | None:
    for name in (f"refs/tags/v{label}", f"refs/tags/{label}", label):
        words = [
            "git",
            "-C",
            repository,
            "rev-parse",
            "--verify",
            "-q",
            "--end-of-options",
            f"{name}^{{commit}}",
        ]
        said = answer(words)
        if said is not None:
            return said.strip()
    return None


def _shown(titles: Iterable[str]) -> tuple[str, ...]:
    return tuple(redact(printable(title))[:300] for title in islice(titles, MOST_TITLES))
