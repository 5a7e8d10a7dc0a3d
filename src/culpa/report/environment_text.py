"""The environment of a run as a maintainer reads it: from `environment.json` where the run has it."""

from culpa.report import words
from culpa.report.source import ReportSource

# Facts by the names that the experiment itself uses, and the keys of `environment.json` that say more.
_KEYS = {
    "os": ("system.os",),
    "kernel": ("system.kernel",),
    "python": ("python.version",),
    "cpu": ("system.cpu",),
    "memory": ("system.memory",),
    "torch": ("package.torch",),
    "cuda": ("torch.cuda", "gpu.cuda"),
    "triton": ("package.triton",),
    "driver": ("gpu.driver",),
    "image": ("engine.image",),
}


def environment_lines(source: ReportSource) -> list[str]:
    """`name: value` lines: engine, machine, the launch's variables, what the engine said of itself."""
    experiment = source.experiment
    lines = [f"engine: {words.engine(experiment)}"]
    facts = _facts(source)
    if facts:
        lines += [f"{key}: {value}" for key, value in facts.items() if key != "launch.command"]
    else:
        lines += [f"{name}: {value}" for name, value in experiment.environment]
    kernel_log = dict(experiment.environment).get("kernel_log")
    if facts and kernel_log:
        lines.append(f"kernel log: {kernel_log}")
    known = {key.removeprefix("variable.") for key in facts}
    lines += [
        f"variable {name}={'(unset)' if value is None else value}"
        for name, value in experiment.launch.env
        if name not in known
    ]
    told = source.failing()
    if told is not None and told.trial.effective:
        lines += ["", f"effective configuration, as the engine said it in trial {told.trial.id}:"]
        lines += [f"  {name}: {value}" for name, value in sorted(told.trial.effective)]
    return [line.replace("\n", " ") for line in lines]


def fact(source: ReportSource, name: str) -> str:
    """A fact of the machine, empty where it was not recorded."""
    facts = _facts(source)
    if name == "gpus" and facts:
        names = [value for key, value in facts.items() if key.startswith("gpu.") and key.endswith(".name")]
        if names:
            counted = {one: names.count(one) for one in names}
            return ", ".join(f"{count} x {one}" if count > 1 else one for one, count in counted.items())
    found = next((facts[key] for key in _KEYS.get(name, ()) if key in facts), "")
    return found or dict(source.experiment.environment).get(name, "")


def _facts(source: ReportSource) -> dict[str, str]:
    """What `environment.json` knows, by key, in its order."""
    document = source.environment
    rows = document.get("facts") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return {}
    return {
        str(row["key"]): str(row["value"])
        for row in rows
        if isinstance(row, dict) and row.get("value") not in (None, "") and "key" in row
    }
