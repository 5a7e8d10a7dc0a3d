"""Every trial with what it left behind: command, what was asked, settings, judgement, annotated log."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from culpa.model import Incident, Outcome, Signature, Trial
from culpa.report import clean, incident_words, words
from culpa.report.excerpts import LogExcerpt
from culpa.report.html.conclusion import changed_levels, plain_words
from culpa.report.html.labels import Labels
from culpa.report.html.logs import read_rows
from culpa.report.probed import Exchange, Probed
from culpa.report.source import ReportSource, TrialSource

#: Requests that the page shows of a trial that matters, of another one, and of all trials together.
_KEY_EXCHANGES, _OTHER_EXCHANGES, _ALL_EXCHANGES = 40, 12, 4000
#: In a longer run the logs of trials that passed are only linked.
_MOST_WITH_LOGS = 300


def trial_views(source: ReportSource, labels: Labels, base: str) -> list[dict[str, Any]]:
    """What the template shows of each trial."""
    key = _key_trials(source)
    share = min(_OTHER_EXCHANGES, _ALL_EXCHANGES // max(1, len(source.trials)))
    few = len(source.trials) <= _MOST_WITH_LOGS
    views = []
    for one in source.trials:
        matters = one.trial.id in key
        with_logs = few or matters or one.trial.outcome is not Outcome.PASS
        most = _KEY_EXCHANGES if matters else share
        views.append(_view(source, one, labels, base, most, key=matters, with_logs=with_logs))
    return views


def _key_trials(source: ReportSource) -> set[int]:
    """The trials that stand for the failure and for the pass."""
    failing, commands = source.failing(), source.experiment.commands
    key = {failing.trial.id} if failing is not None else set()
    if commands is not None:
        key |= {commands.failing_trial or 0, commands.passing_trial or 0}
    return key


def _view(
    source: ReportSource,
    one: TrialSource,
    labels: Labels,
    base: str,
    exchanges: int,
    *,
    key: bool,
    with_logs: bool,
) -> dict[str, Any]:
    trial = one.trial
    return {
        "id": trial.id,
        "outcome": trial.outcome.value,
        "arm": trial.arm or labels.purpose(trial.purpose),
        "key": key,
        "changed": changed_levels(source.experiment, trial),
        "failed": words.why(replace(trial, signature=_short(trial))),
        "time": words.duration(trial.seconds),
        "facts": _facts(source, one, labels),
        "command": plain_words(one.command) if one.command else None,
        "probes": [(probe.probe, probe.status, _evidence(probe)) for probe in one.probes],
        "exchanges": [_exchange(found) for probe in one.probes for found in probe.exchanges][:exchanges],
        "effective": sorted((name, clean.value(name, value)) for name, value in trial.effective),
        "diagnosis": _diagnosis(one.incident, labels),
        "logs": [_log(log, labels) for log in one.logs if log.lines] if with_logs else [],
        "engine_of": one.log_of,
        "files": _files(one, base),
    }


def _short(trial: Trial) -> Signature | None:
    """The signature without its event, which the page gives in full elsewhere."""
    return replace(trial.signature, event=None) if trial.signature is not None else None


def _facts(source: ReportSource, one: TrialSource, labels: Labels) -> list[tuple[str, str]]:
    trial = one.trial
    exposure = trial.exposure
    ready, verdict = trial.start_seconds, trial.verdict_delay_seconds
    facts = [
        ("run_for", labels.purpose(trial.purpose)),
        ("reason", labels.say(one.why)),
        ("changed", changed_levels(source.experiment, trial) or labels("as_launched")),
        ("what_failed", words.why(trial)),
        ("first_to_fail", words.place(trial.signature)),
        ("was_asked", words.asked(exposure)),
        ("at_once", str(exposure.concurrency) if exposure.concurrency > 1 else ""),
        ("started_in", words.duration(ready) if ready else ""),
        ("verdict_after", words.duration(verdict) if verdict else ""),
        ("exit_code", str(trial.exit_code) if trial.exit_code is not None else ""),
    ]
    if one.told is not None:
        told = one.told
        chance = labels("expected_to_fail", chance=words.percent(told.failing)) if told.failing else ""
        bits = labels("bits_expected_told", expected=f"{told.expected:.2f}", told=f"{told.told:.2f}")
        facts.append(("information", f"{chance}{bits}"))
    return [(labels(name), value) for name, value in facts if value]


def _evidence(probe: Probed) -> str:
    return "; ".join(part for part in (probe.evidence, probe.caveat) if part)


def _exchange(found: Exchange) -> tuple[str, ...]:
    counts = (found.prompt_tokens, found.cached_tokens, found.completion_tokens)
    return (
        found.question,
        found.failure or found.answer,
        found.finish_reason or (str(found.status) if found.status is not None else ""),
        " / ".join("–" if count is None else f"{count:,}" for count in counts),
        words.duration(found.seconds) if found.seconds is not None else "",
    )


def _diagnosis(incident: Incident | None, labels: Labels) -> list[str]:
    if incident is None or incident.diagnosis is None:
        return []
    found = incident.diagnosis
    sentences = []
    if found.verdict.why:
        sentences.append(f"{found.verdict.blame}: {found.verdict.why}")
    if found.gpu is not None:
        sentences.append(f"GPU {incident_words.gpu(found.gpu)}")
    sentences += [f"Xid {told}" for told, _ in incident_words.xids(found.own_xids)]
    reasons = "; ".join(found.confidence_why)
    sentences.append(labels("confidence", level=found.confidence, why=reasons or "–"))
    return sentences


def _log(log: LogExcerpt, labels: Labels) -> Mapping[str, Any]:
    short, count = log.name.rpartition("/")[2], f"{log.total:,}"
    title = labels("log_whole", name=short, count=count)
    if log.truncated:
        shown = f"{len(log.lines):,}"
        title = labels("log_cut", name=short, shown=shown, count=count, size=_size(log.size))
    return {
        "name": log.name,
        "title": title,
        "rows": read_rows(log),
        "after": log.total - log.lines[-1].number,
    }


def _files(one: TrialSource, base: str) -> list[tuple[str, str]]:
    """The folder of the trial and its logs, as links that lead there from the page."""
    folder = one.trial.folder
    if not folder:
        return []
    return [
        (f"{folder}/", f"{_address(base)}{_address(folder)}/"),
        *((log.name.rpartition("/")[2], _address(base) + _address(log.name)) for log in one.logs),
    ]


def _address(path: str) -> str:
    """A relative path as an address: no scheme, no host."""
    return quote(path.lstrip("/"), errors="replace")


def _size(count: int) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count} B"
