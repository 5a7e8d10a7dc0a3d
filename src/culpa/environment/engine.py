"""Which engine of which release a launch starts, and with which settings, without starting it."""

import re
import subprocess
from collections.abc import Iterator, Mapping

from culpa.engines import BadLaunch, find_adapter
from culpa.environment.packages import Installed
from culpa.environment.secrets import shown
from culpa.model import Launch
from culpa.model.diagnosis import SettingValue
from culpa.model.environment import Fact
from culpa.triage.configuration import ConfigurationReader
from culpa.triage.lines import LogLine

_SECONDS = 20.0
#: Engines, and the distributions that hold them, first match wins.
_DISTRIBUTIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("vllm", re.compile(r"vllm(?:-(?:cpu|rocm|xpu|tpu))?")),
    ("sglang", re.compile(r"sglang")),
    ("tensorrt-llm", re.compile(r"tensorrt-llm")),
    ("lmdeploy", re.compile(r"lmdeploy")),
    ("llama.cpp", re.compile(r"xllamacpp|llama-cpp-python")),
    ("culpa-lab", re.compile(r"culpa")),
)
_LLAMA_VERSION = re.compile(r"version: (\d{1,7}) \(([0-9a-f]{6,40})\)")
_VLLM_FLAGS = frozenset({"culpa-lab", "vllm"})


def engine_name(launch: Launch) -> str | None:
    """The engine by its launch; None if no adapter knows it."""
    try:
        return find_adapter(launch, None).name
    except BadLaunch:
        return None


def engine_facts(
    launch: Launch | None, installed: Installed, surrounding: Mapping[str, str]
) -> Iterator[Fact]:
    """Name, release and build."""
    name = engine_name(launch) if launch is not None else None
    packages = installed.packages or {}
    held = [
        (engine, distribution)
        for engine, pattern in _DISTRIBUTIONS
        for distribution in packages
        if pattern.fullmatch(distribution)
    ]
    if name is None:
        others = [pair for pair in held if pair[0] != "culpa-lab"]
        if launch is not None:
            reason = "the launch starts none that culpa knows"
        else:
            reason = installed.reason or "none is installed for this Python"
        if not others:
            yield Fact("engine.name", None, reason=reason)
            yield Fact("engine.version", None, reason=reason)
            return
        name = others[0][0]
        yield Fact("engine.name", name, "installed")
    else:
        yield Fact("engine.name", name, "the launch")
    distribution = next((one for engine, one in held if engine == name), None)
    if distribution is not None:
        yield Fact("engine.version", packages[distribution], f"installed as {distribution}")
        return
    told = _llama_version(launch, surrounding) if name == "llama.cpp" and launch is not None else None
    if told is not None:
        yield Fact("engine.version", told, "--version")
    else:
        yield Fact(
            "engine.version", None, reason=installed.reason or f"no distribution of {name} is installed"
        )


def _llama_version(launch: Launch, surrounding: Mapping[str, str]) -> str | None:
    """The build number that `llama-server --version` prints."""
    try:
        done = subprocess.run(
            [launch.argv[0], "--version"],
            env=launch.environment(surrounding),
            cwd=launch.cwd,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    match = _LLAMA_VERSION.search((done.stdout + done.stderr).decode("utf-8", "replace"))
    return match[1] if match else None


def settings_of(launch: Launch, name: str | None = None) -> dict[str, SettingValue]:
    """What the command and its variables set, in the names that logs are read into."""
    reader = ConfigurationReader()
    argv = list(launch.argv)
    if name in _VLLM_FLAGS and "serve" in argv:  # the reference engine takes vLLM's flags
        argv = ["vllm", *argv[argv.index("serve") :]]
    text = Launch(tuple(argv), launch.env).command_line()
    reader.note(LogLine(1, text), text.lower())
    return reader.values()


def setting_facts(settings: Mapping[str, SettingValue], source: str) -> Iterator[Fact]:
    """Settings as facts; a truth is `on` or `off`."""
    for key, value in settings.items():
        text = {True: "on", False: "off"}[value] if isinstance(value, bool) else shown(str(value))
        yield Fact(f"setting.{key}", text, source)
        if key in ("attention_backend", "moe_backend"):
            yield Fact(f"backend.{key.removesuffix('_backend')}", text, source)


def package_facts(installed: Installed, found: str) -> Iterator[Fact]:
    """Python, torch's build and the libraries around it."""
    python = shown(installed.python)
    if installed.packages is None:
        yield Fact("python.version", None, reason=f"{python}: {installed.reason}")
        yield Fact("package.torch", None, reason=f"{python}: {installed.reason}")
        return
    yield Fact("python.version", installed.version, found)
    yield Fact("python.executable", python, found)
    if installed.torch is not None:
        build = installed.torch
        if build.get("hip"):
            yield Fact("torch.hip", build["hip"], "torch/version.py")
        else:
            reason = "" if build.get("cuda") else "this torch was built without CUDA"
            yield Fact("torch.cuda", build.get("cuda"), "torch/version.py" if not reason else "", reason)
        if build.get("git_version"):
            yield Fact("torch.commit", str(build["git_version"])[:12], "torch/version.py")
    if "torch" not in installed.packages:
        yield Fact("package.torch", None, reason="not installed for this Python")
    for name in sorted(installed.packages):
        yield Fact(f"package.{name}", shown(installed.packages[name]), "installed")
    if installed.hidden:
        yield Fact(
            "python.hidden", shown(", ".join(installed.hidden)), "installed twice: the first one is imported"
        )
