"""One run in one line: what `culpa runs` lists."""

from dataclasses import dataclass, replace

from culpa.model.experiment import Experiment


@dataclass(frozen=True, slots=True)
class RunSummary:
    """What is worth knowing of a stored run before it is opened.

    `outcome` is an outcome of an experiment, or "running", "interrupted" or "broken" for a run without a
    conclusion; `finding` names the factors that were found, or says in words why there are none.
    """

    run_id: str
    started: str
    engine: str
    outcome: str
    finding: str = ""
    trials: int = 0
    elapsed_seconds: float = 0.0


def summarise(experiment: Experiment) -> RunSummary:
    """The line for an experiment that has ended."""
    findings = [
        " + ".join(f"{member.name}={member.suspect}" for member in finding.members)
        for finding in experiment.conclusion.findings
    ]
    engine = " ".join(part for part in (experiment.engine, experiment.engine_version) if part)
    outcome = experiment.conclusion.outcome.value
    return RunSummary(
        run_id=experiment.run_id,
        started=experiment.started,
        engine=engine,
        outcome="interrupted" if experiment.interrupted else outcome,
        finding="; ".join(findings) or _failure(experiment),
        trials=len(experiment.trials),
        elapsed_seconds=experiment.elapsed_seconds,
    )


def _failure(experiment: Experiment) -> str:
    """The failure without its event, which may be long."""
    return replace(experiment.hunted, event=None).describe() if experiment.hunted else ""
