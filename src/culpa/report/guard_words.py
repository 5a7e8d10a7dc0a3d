"""What the guard saw in the engine, in sentences that every report shares. Everything in it was said by the engine."""

from collections.abc import Sequence

from culpa.model import Experiment
from culpa.model.guard import Explanation, GuardedProcess, GuardedTrial, GuardRecord, Hypothesis, Violation
from culpa.report.words import listing, plural

BLIND = (
    "That does not prove the bindings right: a kernel that reads or writes wrongly within pages that are its own, "
    "and whatever a check was left out for, is not seen. docs/guard.md lists what can't be seen."
)
FIRST_MATTERS = "It is the first violation by step and time; later ones may be its consequences."


def where(violation: Violation) -> str:
    """Stage, layer, group, step and request, as far as they were told."""
    rank = f" (rank {violation.rank})" if violation.rank is not None else ""
    layer_type = f" ({violation.layer_type})" if violation.layer_type else ""
    parts = (
        f"{violation.stage}{rank}" if violation.stage else rank.strip(" ()"),
        f"layer {violation.layer}{layer_type}" if violation.layer else "",
        f"group {violation.group}" if violation.group is not None else "",
        _step(violation),
        f"request {violation.request}" if violation.request else "",
    )
    return ", ".join(part for part in parts if part) or "the guard does not say where"


def _step(violation: Violation) -> str:
    if violation.step is None:
        return ""
    return f"step {violation.step}" if violation.step > 0 else "before the first step"


def what(violation: Violation) -> str:
    """What was expected there and what was found."""
    parts = (
        f"expected {violation.expected}" if violation.expected is not None else "",
        f"found {violation.found}" if violation.found is not None else "",
        f"block {violation.block}" if violation.block is not None else "",
        f"index {violation.index}" if violation.index is not None else "",
        violation.detail,
    )
    return ", ".join(part for part in parts if part) or "no more was told"


def one_line(violation: Violation) -> str:
    """A violation in a line, for a view of what happens now."""
    return f"{violation.kind}: {where(violation)}: {what(violation)}"


def hypotheses(explanation: Explanation) -> list[tuple[str, Sequence[Hypothesis]]]:
    """Headings with the candidates under them; only those that there are."""
    rows = (
        ("speaks for", explanation.supports),
        ("rules out as the first cause", explanation.rules_out),
    )
    return [(heading, found) for heading, found in rows if found]


def brief(explanation: Explanation) -> list[tuple[str, list[str]]]:
    """The same for a terminal: what it speaks for in words, what it rules out by name; the report has the rest."""
    rows = []
    if explanation.supports:
        rows.append(("speaks for", [f"{one.id}: {one.text}" for one in explanation.supports]))
    if explanation.rules_out:
        names = ", ".join(one.id for one in explanation.rules_out)
        rows.append(("rules out", [f"{names} as the first cause"]))
    return rows


def checked(record: GuardRecord) -> list[str]:
    """What was watched: processes, steps, checks; and what was not, with the reason."""
    sentences = []
    if record.processes:
        count = len(record.processes)
        parts = [f"{count:,} process{'' if count == 1 else 'es'}", plural(record.steps, "step")]
        if record.requests:
            parts.append(plural(record.requests, "request"))
        sentences.append(f"The guard watched {listing(parts)}; checks: {', '.join(record.checks) or 'none'}.")
    else:
        sentences.append("No process of the engine had the guard in it: nothing was checked.")
    sentences += [f"Left out: {one.check} ({one.reason})." for one in record.left_out]
    return sentences + [f"Trouble: {problem}." for problem in record.problems]


def unlocated(watched: GuardedTrial) -> list[str]:
    """What is to be said of a watched trial in which nothing was violated."""
    sentences = [f"In trial {watched.trial} the guard saw no violation.", *checked(watched.record)]
    if not watched.failed:
        sentences.append(
            "With the guard in the engine the failure did not show: it may be rare, or the guard may hide it."
        )
    return [*sentences, BLIND] if watched.record.processes else sentences


def silent(experiment: Experiment) -> list[GuardedTrial]:
    """The watched trials that locate no finding."""
    located = {one.located.trial for one in experiment.conclusion.findings if one.located is not None}
    return [one for one in experiment.guarded if one.trial not in located]


def process_name(process: GuardedProcess) -> str:
    """A process by its stage or role."""
    return " ".join(part for part in (process.role, process.stage) if part)
