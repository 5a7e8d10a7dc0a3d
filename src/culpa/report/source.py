"""What a report is made of: a stored run, read from its folder alone, with everything private taken out.

Redaction happens here and nowhere else: whoever renders a `ReportSource` may show any text of it. Texts are plain: they
hold no characters that act or hide, but they are not escaped for any markup. Nothing here reads a clock, and the same
folder gives the same value.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from culpa.model import Experiment, Incident, Outcome, Trial
from culpa.model.told import Told
from culpa.record import Record
from culpa.redaction import Redacted, Redactor
from culpa.redaction.walk import learn_all, redact_all
from culpa.report.excerpts import LogExcerpt, RawExcerpt, Role, read_excerpt
from culpa.report.probed import Asked, Probed, read_probes, user_texts
from culpa.report.stored import stored_experiment
from culpa.store import BadRunFolder, open_run

Json = Any
#: Results of other verbs that a run's folder may hold: the field of the source, and the file.
ATTACHED = (
    ("environment", "environment.json"),
    ("mitigation", "mitigation.json"),
    ("guard", "guard.json"),
    ("layout", "layout.json"),
    ("minimization", "minimize/minimization.json"),
)
#: Lines of logs that all trials together may show, and one trial.
MOST_LINES = 8000
MOST_LINES_OF_TRIAL = 160
LEAST_LINES_OF_TRIAL = 12
_LOGS = ("kernel.log", "engine.log")
_MOST_BYTES = 64 << 20
_MOST_TEXT = 1 << 20
_WENT_ON = re.compile(r"engine of trial (\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class TrialSource:
    """A trial with its evidence. `command` is the launch as it was started, with port and instruments; `why` the reason
    for the trial and `told` what it told, where it told anything; `probes` what was asked and answered, `incident` what
    triage made of the logs; `log_of` names the trial whose engine this one went on with."""

    trial: Trial
    why: str
    told: Told | None
    command: str
    probes: tuple[Probed, ...]
    logs: tuple[LogExcerpt, ...]
    incident: Incident | None
    log_of: int | None


@dataclass(frozen=True, slots=True)
class ReportSource:
    """A run, ready to be rendered. `redactions` say what was taken out; with `prompts_included` the user's own prompts
    and their answers were left in. `environment`, `mitigation`, `guard`, `layout` and `minimization` are the
    documents of these verbs, None where the run holds none."""

    experiment: Experiment
    trials: tuple[TrialSource, ...]
    redactions: tuple[Redacted, ...]
    prompts_included: bool
    environment: Json | None = None
    mitigation: Json | None = None
    guard: Json | None = None
    layout: Json | None = None
    minimization: Json | None = None

    def trial(self, number: int | None) -> TrialSource | None:
        """The trial with this id, or None."""
        return next((one for one in self.trials if one.trial.id == number), None)

    def failing(self) -> TrialSource | None:
        """The trial that stands for the failure: that of the root event, else of the failing command, else the first
        that failed."""
        root, commands = self.experiment.root, self.experiment.commands
        numbers = [root.trial if root else None, commands.failing_trial if commands else None]
        numbers += [one.trial.id for one in self.trials if one.trial.outcome is Outcome.FAIL]
        return next((found for number in numbers if (found := self.trial(number))), None)


def load(folder: Path, *, include_prompts: bool = False) -> ReportSource:
    """Read a run. Raises BadRunFolder with one line for a folder that holds no run that has ended, or a damaged one."""
    if folder.exists() and not folder.is_dir():
        raise BadRunFolder(f"{folder} is a file: give the folder of a run")
    try:
        journal, header, entries = open_run(folder)
        record = Record(journal, entries)
        experiment = stored_experiment(folder, header, record)
        return _Loader(folder, header, record, include_prompts).load(experiment)
    except OSError as error:
        raise BadRunFolder(f"can't read {error.filename or folder}: {error.strerror}") from None


class _Loader:
    """One reading of one folder."""

    def __init__(
        self, folder: Path, header: Mapping[str, Any], record: Record, include_prompts: bool
    ) -> None:
        self._folder = folder
        self._header = header
        self._record = record
        self._include_prompts = include_prompts
        self._redactor = Redactor(keep_prompts=include_prompts)

    def load(self, experiment: Experiment) -> ReportSource:
        """Learn from everything first: what is private is often named in one place only."""
        redactor = self._redactor
        attached = {field: _json(self._folder / name) for field, name in ATTACHED}
        options = self._header.get("options")
        users = user_texts(options if isinstance(options, dict) else {})
        asked = {trial.id: self._asked(trial, users) for trial in experiment.trials}
        trials = [self._trial(trial, asked[trial.id].probes) for trial in experiment.trials]
        words = self._header.get("words")
        learn_all(redactor, " ".join(map(str, words)) if isinstance(words, list) else "")
        learn_all(redactor, (experiment, tuple(trials), attached))
        for text in (*users, *(text for one in asked.values() for text in one.private)):
            redactor.learn_prompt(text)
        logs = {one.trial.id: self._logs(one) for one in trials}
        for raw in (raw for found in logs.values() for raw, _ in found):
            for text in raw.texts():
                redactor.learn(text)
        redactor.note_earlier(json.dumps([experiment.launch.command_line(), list(experiment.environment)]))
        kept = {field: redact_all(redactor, value) for field, value in attached.items()}
        return ReportSource(
            experiment=redact_all(redactor, experiment),
            trials=tuple(
                replace(redact_all(redactor, one), logs=self._shown(logs[one.trial.id])) for one in trials
            ),
            redactions=redactor.report(),
            prompts_included=self._include_prompts,
            **kept,
        )

    def _asked(self, trial: Trial, users: tuple[str, ...]) -> Asked:
        if not trial.folder:
            return Asked()
        path = self._folder / trial.folder / "answers.json"
        return read_probes(path, users, keep_prompts=self._include_prompts)

    def _trial(self, trial: Trial, probes: tuple[Probed, ...]) -> TrialSource:
        """The trial and its evidence as they lie there, without its logs."""
        folder = self._folder / trial.folder if trial.folder else None
        return TrialSource(
            trial=trial,
            why=self._record.reasons.get(trial.id, ""),
            told=self._record.told.get(trial.id),
            command=_text(folder / "launch.sh") if folder else "",
            probes=probes,
            logs=(),
            incident=_incident(folder / "trial.json") if folder else None,
            log_of=_log_of(folder / "engine.log.txt") if folder else None,
        )

    def _logs(self, one: TrialSource) -> list[tuple[RawExcerpt, dict[int, Role]]]:
        if not one.trial.folder:
            return []
        share = MOST_LINES // max(len(self._record.trials), 1)
        most = min(MOST_LINES_OF_TRIAL, max(LEAST_LINES_OF_TRIAL, share))
        if one.trial.outcome is Outcome.PASS:
            most = min(most, 2 * LEAST_LINES_OF_TRIAL)
        found = []
        for name in _LOGS:
            relative = f"{one.trial.folder}/{name}"
            roles = _roles(one.incident, name)
            raw = read_excerpt(self._folder / relative, relative, roles, most)
            if raw is not None:
                found.append((raw, roles))
        return found

    def _shown(self, logs: list[tuple[RawExcerpt, dict[int, Role]]]) -> tuple[LogExcerpt, ...]:
        return tuple(raw.shown(roles, self._redactor.text) for raw, roles in logs)


def _roles(incident: Incident | None, name: str) -> dict[int, Role]:
    """Roles of the lines of a log. Triage counts the kernel's lines behind the engine's; of its own log only the root
    has its own number."""
    if incident is None:
        return {}
    in_kernel = incident.root is not None and incident.root.process == "kernel"
    roles: dict[int, Role] = {}
    if name == "engine.log":
        roles.update(dict.fromkeys(incident.cascade_lines, "cascade"))
        roles.update(dict.fromkeys(incident.root_alternates, "same"))
    if incident.root is not None and incident.root.line and in_kernel == (name == "kernel.log"):
        roles[incident.root.line] = "root"
    return roles


def _incident(path: Path) -> Incident | None:
    content = _json(path)
    told = content.get("incident") if isinstance(content, dict) else None
    if not isinstance(told, dict):
        return None
    from pydantic import TypeAdapter, ValidationError

    try:
        found: Incident = TypeAdapter(Incident).validate_python(told)
    except ValidationError:
        return None  # of another version: the trial itself is the journal's
    return found


def _log_of(path: Path) -> int | None:
    match = _WENT_ON.search(_text(path))
    return int(match.group(1)) if match else None


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_TEXT).rstrip("\n")
    except OSError:
        return ""


def _json(path: Path) -> Json | None:
    """A JSON file of the run; None where there is none, or none that can be read."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        content: Json = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return None
    return content
