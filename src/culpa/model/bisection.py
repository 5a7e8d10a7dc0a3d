"""Versions of an engine, and what a bisection over them found."""

from dataclasses import dataclass, field
from typing import Literal

from culpa.model.finding import Count
from culpa.model.launch import Launch
from culpa.model.outcome import Signature
from culpa.model.trial import Trial

#: The factor that stands for the version of the engine, or of a package that it uses.
ENGINE_VERSION = "engine_version"

BisectionOutcome = Literal["found", "interval", "good_fails", "inconclusive", "no_failure"]
SettingsVerdict = Literal["version_alone", "settings_too", "unknown", "not_asked"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One version that may be tried. `label` is how the user and the engine call it, `title` what is known of it."""

    label: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """What the trials of one version came to; `said` is the version that the engine named, `note` why it was no use."""

    label: str
    failed: int = 0
    passed: int = 0
    other: int = 0
    untestable: int = 0
    said: str = ""
    note: str = ""
    chance: float | None = None

    @property
    def tried(self) -> int:
        """How many trials of it there were."""
        return self.failed + self.passed + self.other + self.untestable


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """A setting that the engine printed with another value before and after the change, the command being the same."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class WhatChanged:
    """What lies between the last version on one side and the first on the other.

    `titles` are commits or entries of release notes, newest last; `source` says where they come from. `settings` are
    what both versions printed of their configuration, where they differ.
    """

    titles: tuple[str, ...] = ()
    source: str = ""
    settings: tuple[ChangedSetting, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisection:
    """Everything that a report may say of one run of `culpa bisect`.

    `versions` go from the good end to the bad end. `turned` is true if the good end is the newer one, so that the
    first version that works again is looked for. `edge` is the last good and the first bad version, None where they
    are not known; `interval` are all versions that may be the first bad one. `settings` says whether the failure needs
    settings of the launch beside the version, `isolated` which ones were isolated together with it.
    """

    culpa_version: str
    run_id: str
    started: str
    elapsed_seconds: float
    engine: str
    launch: Launch
    source: str
    packages: tuple[str, ...]
    outcome: BisectionOutcome
    versions: tuple[VersionRow, ...]
    turned: bool = False
    edge: tuple[str | None, str | None] = (None, None)
    interval: tuple[str, ...] = ()
    probability: float | None = None
    confidence: float = 0.95
    bad: Count = field(default_factory=lambda: Count(0, 0))
    good: Count = field(default_factory=lambda: Count(0, 0))
    hunted: Signature | None = None
    trials: tuple[Trial, ...] = ()
    changed: WhatChanged = field(default_factory=WhatChanged)
    settings: SettingsVerdict = "not_asked"
    settings_text: str = ""
    isolated: tuple[str, ...] = ()
    isolated_probability: float | None = None
    commands: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()
    limits_reached: tuple[str, ...] = ()
    interrupted: bool = False
    folder: str = ""
