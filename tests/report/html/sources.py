"""Stored runs that the tests of the page render, made without a run."""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache, partial
from typing import Any

from tests.report.blocks import trial
from tests.report.cases import CASES, incident
from tests.report.guard_cases import located, watched_in_vain

from culpa.model import (
    Conclusion,
    Experiment,
    ExperimentOutcome,
    Exposure,
    Factor,
    FactorStatus,
    Incident,
    Outcome,
    Signature,
    all_suspect,
)
from culpa.model.mitigation import Exposure as Passed
from culpa.model.mitigation import Measured, Mitigation, NotOffered, Option, Workaround
from culpa.model.told import Told
from culpa.report.excerpts import LogExcerpt, ShownLine
from culpa.report.html import page
from culpa.report.html.labels import Language
from culpa.report.mitigation import mitigation_json
from culpa.report.probed import Exchange, Probed
from culpa.report.source import ReportSource, TrialSource

LOG = (
    "(APIServer pid=11) INFO 12-01 15:19:55 [api_server.py:28] starting",
    "(Worker_PP0 pid=12) INFO 12-01 15:19:56 [stage.py:61] loading",
    "(Worker_PP1 pid=13) INFO 12-01 15:19:56 [stage.py:61] loading",
    "(Worker_PP1 pid=13) ERROR 12-01 15:19:58 [exec.py:71] RuntimeError: an illegal memory access",
    "(EngineCore pid=14) ERROR 12-01 15:19:58 [core.py:48] EngineCore encountered a fatal error.",
    "(APIServer pid=11) ERROR 12-01 15:19:58 [async_llm.py:80] EngineDeadError",
)
ROLES = {4: "same", 5: "cascade", 6: "cascade"}
KERNEL_LINE = "2026-12-01T15:19:58+0000 host kernel: NVRM: Xid (PCI:0000:41:00): 31, pid=13, name=Worker"


def engine_log(folder: str, lines: tuple[str, ...] = LOG, total: int | None = None) -> LogExcerpt:
    """A log of the engine of which all lines are shown, at the end of a longer one if `total` says so."""
    count = total or len(lines)
    first = count - len(lines) + 1
    shown = tuple(
        ShownLine(first + index, text, ROLES.get(index + 1, ""))  # type: ignore[arg-type]
        for index, text in enumerate(lines)
    )
    return LogExcerpt(f"{folder}/engine.log", 100 * count, count, shown)


def kernel_log(folder: str) -> LogExcerpt:
    """The kernel's word on it, the root event."""
    line = ShownLine(1, KERNEL_LINE, "root", "kernel", "", "2026-12-01T15:19:58+0000")
    return LogExcerpt(f"{folder}/kernel.log", len(KERNEL_LINE), 1, (line,))


def exchange(question: str = "What is 2+2?", answer: str = "4") -> Exchange:
    """A short question that was answered."""
    return Exchange("/v1/chat/completions", question, "{}", answer, "stop", 200, "", 14, 0, 2, 0.1)


def source_of(experiment: Experiment, **changes: Any) -> ReportSource:
    """The experiment with evidence for each of its trials."""
    trials = []
    beliefs: list[tuple[tuple[str, ...], float]] = [(("execution",), 0.2), (("prefix_caching",), 0.1)]
    for number, one in enumerate(experiment.trials):
        after = tuple((names, min(0.9, chance + 0.08 * number)) for names, chance in beliefs)
        failed = one.outcome in (Outcome.FAIL, Outcome.OTHER)
        logs = (
            (kernel_log(one.folder), engine_log(one.folder)) if failed else (engine_log(one.folder, LOG[:3]),)
        )
        probe = Probed("short", "right", "1 request answered", "", "", None, 1, (exchange(),))
        trials.append(
            TrialSource(
                trial=one,
                why="the launch as it is" if number == 0 else "expected to tell 0.8 bits",
                told=Told(one.id, 0.4, 0.8, 0.5, after, after) if number else None,
                command=experiment.launch.command_line(),
                probes=(probe,),
                logs=logs,
                incident=Incident("cuda_illegal_access", None) if failed else None,
                log_of=None,
            )
        )
    return replace(ReportSource(experiment, tuple(trials), (), False), **changes)


def _made(make: Callable[[], Experiment]) -> ReportSource:
    return source_of(make())


def measured() -> ReportSource:
    """A run with a comparison of what keeps the failure away: better, worse, alike and unknown ratios."""
    throughput = Measured("throughput", 36.9, 30.0, 40.0, 3, 0.41, 0.23, 0.72)
    first = Measured("first_token", 0.21, 0.2, 0.3, 3, 1.0, 0.99, 1.01)
    token = Measured("inter_token", 0.011, 0.01, 0.012, 3, 0.02, 0.01, 0.03)
    capacity = Measured("capacity", 370617, 370617, 370617, 1)
    option = Option(
        "execution=eager",
        (("execution", "graphs", "eager"),),
        "vllm serve model --enforce-eager",
        Passed(2, 18, 0.776, 0.153),
        (throughput, first, token, capacity),
        1.74,
        (Workaround("vllm-63505", "https://github.com/vllm-project/vllm/issues/63505", "closed"),),
        "passed",
    )
    found = Mitigation(
        "0.1.0",
        "2026-01-01T13:00:00+00:00",
        60.0,
        "vllm serve model",
        "3 prompts of about 256 tokens",
        3,
        (Measured("throughput", 90.0, 80.0, 95.0, 3),),
        (option,),
        (
            NotOffered(
                (("prefix_caching", "on", "off"),), "symptom_shift", "gibberish in its place (trial 5)"
            ),
        ),
        ("the machine was busy",),
    )
    return source_of(incident(), mitigation=json.loads(mitigation_json(found)))


SOURCES: Mapping[str, Callable[[], ReportSource]] = {
    **{name: partial(_made, make) for name, make in CASES.items()},
    "located": partial(_made, located),
    "watched_in_vain": partial(_made, watched_in_vain),
    "measured": measured,
}


@cache
def rendered(name: str, language: Language = "en") -> str:
    """The page of a source."""
    return page(SOURCES[name](), language)


@cache
def large_page() -> str:
    """The page of a thousand trials."""
    return page(large())


@cache
def large(count: int = 1000, factors: int = 12) -> ReportSource:
    """A run of very many trials, each with logs and requests, as the loader cuts them."""
    names = tuple(
        Factor(f"factor_{index:02}", "suspect", ("safe",), prior=0.1, numeric=index % 3 == 0)
        for index in range(factors)
    )
    launched = all_suspect(names)
    signature = Signature("cuda_illegal_access", "worker", "PP1", "RuntimeError: illegal access")
    trials = []
    for number in range(1, count + 1):
        changed = {one.name: "safe" for index, one in enumerate(names) if number >> index & 1}
        failed = not {"factor_00", "factor_01"} & changed.keys()
        outcome = Outcome.FAIL if failed else Outcome.OTHER if number % 17 == 0 else Outcome.PASS
        made = trial(
            number,
            outcome,
            launched.with_levels(changed),
            arm=f"{len(changed)} of {factors} safe",
            signature=None if outcome is Outcome.PASS else signature,
            exposure=Exposure(9, 9000, 3.0),
        )
        trials.append(made)
    statuses = tuple(
        FactorStatus(one.name, "suspect", "safe", "in" if index < 2 else "out", "by trials")
        for index, one in enumerate(names)
    )
    experiment = replace(
        incident(),
        factors=names,
        trials=tuple(trials),
        conclusion=Conclusion(ExperimentOutcome.ISOLATED, (), statuses, ("a rare second cause",)),
        commands=None,
        layout=(),
    )
    return source_of(experiment)


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    """The same value with every text in it changed; names that the program itself compares stay."""
    if isinstance(value, Enum) or value is None or isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    if is_dataclass(value):
        changes = {
            one.name: mapped(getattr(value, one.name), change)
            for one in fields(value)
            if one.init and one.name not in _KEPT
        }
        return replace(value, **changes)  # type: ignore[type-var]
    return value


#: Fields that hold words of the program itself, not of a log, a launch or a person.
_KEPT = frozenset(
    {"status", "role", "scope", "purpose", "level", "blame", "confidence", "outcome", "kind", "url"}
)
