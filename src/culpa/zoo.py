"""The reference engine's faults as cases with a known answer: what to launch, what to find, what was found."""

import sys
import tomllib
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from importlib.util import find_spec
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from culpa.engines import closest
from culpa.guard.launching import out_folder
from culpa.isolate import Asked, execute, new_run, set_up
from culpa.model import Experiment, Factor
from culpa.model.options import IsolateOptions
from culpa.model.trial import GUARD
from culpa.model.zoo import KnownFault, ZooResult
from culpa.report.deliver import write_reports
from culpa.report.lines import Quiet
from culpa.search import Strategy
from culpa.store import JOURNAL, BadRunFolder
from culpa.truth import BadSchedule, right

MODULE = "culpa_lab"
TABLE = Path("faults") / "table.toml"
# The reference engine is quick: a hang need not be waited for as long as a large model's first step.
_START_SECONDS = 90.0
_STALL_SECONDS = 10.0
_REQUEST_SECONDS = 90.0


class BadFault(ValueError):
    """There is no such fault, or no reference engine; the message is one line for the user."""


@cache
def known_faults() -> tuple[KnownFault, ...]:
    """All faults in the order of the engine's table. Raises BadFault if the engine is not installed."""
    try:
        return parse_faults(_beside_the_table(TABLE.name).read_text(encoding="utf-8"))
    except OSError as error:
        raise BadFault(f"the reference engine's table of faults can't be read: {error}") from None


def _beside_the_table(name: str) -> Path:
    """A file in the engine's folder of faults. Raises BadFault if the engine is not installed."""
    package = find_spec(MODULE)
    places = package.submodule_search_locations if package is not None else None
    if not places:
        raise BadFault("the reference engine (culpa_lab) is not installed beside culpa")
    return Path(places[0]) / TABLE.parent / name


def parse_faults(text: str) -> tuple[KnownFault, ...]:
    """The faults of a table. Raises ValueError for a row that does not hold what a fault needs."""
    from pydantic import TypeAdapter

    rows: list[dict[str, Any]] = tomllib.loads(text)["fault"]
    names = {field.name for field in fields(KnownFault)}
    for row in rows:
        if unknown := row.keys() - names:
            raise ValueError(f"fault {row.get('name')}: unknown key {min(unknown)}")
        row["env"] = tuple(row.get("env", {}).items())
    return TypeAdapter(tuple[KnownFault, ...]).validate_python(rows)


def fault_named(name: str) -> KnownFault:
    """The fault of that name. Raises BadFault with the nearest name that exists."""
    known = {fault.name: fault for fault in known_faults()}
    if name in known:
        return known[name]
    near = closest(name, known)
    raise BadFault(
        f"there is no fault {name!r}: {f'did you mean {near}?' if near else 'see culpa demo --list'}"
    )


def command(fault: KnownFault) -> tuple[str, ...]:
    """The words of the launch that shows the fault, environment in front."""
    rate = f":{fault.rate:g}" if fault.rate < 1 else ""
    return (
        *(f"{name}={value}" for name, value in fault.env),
        *(sys.executable, "-m", MODULE, "serve", *fault.argv, "--fault", f"{fault.name}{rate}"),
    )


def asked(fault: KnownFault, options: IsolateOptions, *, with_arms: bool = True) -> Asked:
    """What `culpa isolate` is asked for this fault; without its arms nothing is run but what the search wants."""
    options = replace(
        options,
        start_timeout=_START_SECONDS,
        stall_timeout=_STALL_SECONDS,
        request_timeout=_REQUEST_SECONDS,
        probes=options.probes or fault.probes,
        probe_tokens=fault.probe_tokens if options.probe_tokens is None else options.probe_tokens,
        request_file=str(_beside_the_table(fault.requests)) if fault.requests else options.request_file,
    )
    return Asked(command(fault), options, skip=fault.skip, arms=fault.arms if with_arms else ())


def check_room(faults: Sequence[KnownFault], out: Path) -> None:
    """Raise BadRunFolder where one of the runs would find no folder of its own in `out`, before the first is made."""
    if out.exists() and not out.is_dir():
        raise BadRunFolder(f"--out {out}: is not a folder: choose another")
    taken = next((fault.name for fault in faults if (out / fault.name / JOURNAL).exists()), None)
    if taken is not None:
        raise BadRunFolder(f"--out {out}: already holds a run of {taken}: choose another")


def isolate_fault(fault: KnownFault, out: Path | None, *, max_trials: int, seed: int) -> ZooResult | None:
    """Run `culpa isolate` on a fault, showing nothing, and compare; the run stays in `out` if that is given.

    None if it was interrupted. Raises whatever `set_up` and `new_run` raise.
    """
    with TemporaryDirectory(prefix="culpa-zoo-") as temporary:
        folder = (out or Path(temporary)) / fault.name
        options = IsolateOptions(max_trials=max_trials, seed=seed)
        run = new_run(set_up(asked(fault, options, with_arms=False)), folder)
        experiment = execute(run, Quiet())
        if out is not None:
            write_reports(experiment, folder)
        return None if experiment.interrupted else score(fault, experiment)


def score(fault: KnownFault, experiment: Experiment) -> ZooResult:
    """Compare a finished run with the truth."""
    found = tuple(
        tuple(sorted(member.name for member in finding.members)) for finding in experiment.conclusion.findings
    )
    expected = tuple(tuple(sorted(one)) for one in fault.expected)
    hunted = experiment.hunted
    rank = hunted.rank if hunted is not None else None
    bits = [_bits(experiment.factors, one) for one in expected]
    return ZooResult(
        fault=fault.name,
        expected=expected,
        found=found,
        exact=sorted(found) == sorted(expected),
        symptom=hunted.symptom if hunted is not None else "",
        symptom_right=hunted is not None and _alike(hunted.symptom, fault.symptom),
        rank=rank,
        rank_right=None if fault.rank is None else rank == fault.rank,
        trials=sum(trial.purpose != GUARD for trial in experiment.trials),
        bound=round(sum(one for one in bits if one is not None), 1) if None not in bits else None,
        seconds=round(experiment.elapsed_seconds, 1),
        located=_located(experiment),
        located_right=_located_right(fault, experiment),
    )


def _located(experiment: Experiment) -> tuple[str, ...]:
    """Where each finding begins, in a few words."""
    places = [finding.located for finding in experiment.conclusion.findings]
    return tuple(
        f"{one.violation.kind}, {one.violation.stage} {one.violation.layer} step {one.violation.step}"
        for one in places
        if one is not None
    )


def _located_right(fault: KnownFault, experiment: Experiment) -> bool | None:
    """Whether the expected sets that were found begin where the table says, and at least one was; what is no fault of
    state is to be located nowhere."""
    found = {
        tuple(sorted(member.name for member in finding.members)): finding.located
        for finding in experiment.conclusion.findings
    }
    if not fault.located:
        return False if any(found.values()) else None
    folder = Path(experiment.folder)
    pairs = [
        (found[tuple(sorted(members))], place)
        for members, place in zip(fault.expected, fault.located, strict=True)
        if tuple(sorted(members)) in found
    ]
    for seen, place in pairs:
        trial = experiment.trial(seen.trial) if seen is not None else None
        if seen is None or trial is None:
            return False
        try:
            if not right(place, seen.violation, out_folder(folder / trial.folder)):
                return False
        except BadSchedule:
            return False
    return bool(pairs)


def _alike(found: str, expected: str) -> bool:
    """Whether two symptoms are one: how garbled a wrong answer is depends on chance."""
    return found == expected or {found, expected} <= {"wrong_answer", "gibberish"}


def _bits(factors: Sequence[Factor], expected: Sequence[str]) -> float | None:
    """-log2 of the prior of a set, with the priors that the search began with; None for an unknown factor."""
    if not set(expected) <= {factor.name for factor in factors}:
        return None
    return -log2(Strategy(factors).prior_of(expected))
