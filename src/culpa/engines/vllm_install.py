"""What can be known of an installed vLLM by reading its files; importing it would take many seconds."""

import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_NAME = re.compile(r"^Name:\s*(\S+)", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE | re.IGNORECASE)
_PYTHON = re.compile(r"python(\d+(\.\d+)*)?")

# Where the command line's flags and the environment's variables are declared, in old and new releases.
_SOURCES = (
    "engine/arg_utils.py",
    "entrypoints/openai/cli_args.py",
    "entrypoints/launchers/cli_args.py",
    "envs.py",
)
_DECLARED = re.compile(r"--[a-z0-9][a-z0-9-]+|VLLM_[A-Z0-9_]+|^    ([a-z][a-z0-9_]+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Installation:
    """One vLLM on disk. `declared` holds flags with dashes and `VLLM_*` names; empty means not readable."""

    version: str | None = None
    distribution: str | None = None
    declared: frozenset[str] = frozenset()

    @property
    def cpu_build(self) -> bool:
        """Whether this is the build for machines without a GPU."""
        return "cpu" in (self.distribution or "") or "+cpu" in (self.version or "")

    def has(self, name: str) -> bool:
        """Whether this release knows the flag or the variable; true where that can't be told."""
        return not self.declared or name in self.declared

    def at_least(self, *numbers: int) -> bool | None:
        """Whether the release is this one or newer; None where the version is not known."""
        release = re.match(r"\d+(\.\d+)*", self.version or "")
        if release is None:
            return None
        return tuple(int(part) for part in release.group().split(".")) >= numbers


def find_installation(argv: Iterable[str], environment: Mapping[str, str]) -> Installation:
    """The vLLM that this command would run: a folder on PYTHONPATH first, then the interpreter's packages."""
    for folder in environment.get("PYTHONPATH", "").split(":"):
        if folder and (Path(folder) / "vllm" / "__init__.py").is_file():
            return _read_installation(Path(folder))
    for word in argv:
        interpreter = _interpreter(word, environment)
        if interpreter is not None:
            for packages in _package_folders(interpreter):
                if (packages / "vllm").is_dir():
                    return _read_installation(packages)
    return Installation()


def find_interpreter(argv: Iterable[str], environment: Mapping[str, str]) -> Path | None:
    """The Python that this command would run, or None."""
    found = (_interpreter(word, environment) for word in argv)
    return next((interpreter for interpreter in found if interpreter is not None), None)


def _interpreter(word: str, environment: Mapping[str, str]) -> Path | None:
    """The Python behind a word of the command: itself, or the one in the first line of a `vllm` script."""
    name = Path(word).name
    if name != "vllm" and not _PYTHON.fullmatch(name):
        return None
    found = shutil.which(word, path=environment.get("PATH"))
    if found is None:
        return None
    if name != "vllm":
        return Path(found)
    try:
        with Path(found).open("rb") as script:
            first = script.readline(512).decode("utf-8", "replace")
    except OSError:
        return None
    return Path(first[2:].split()[0]) if first.startswith("#!/") else None


def _package_folders(interpreter: Path) -> list[Path]:
    """Folders with packages that an interpreter uses: those of its virtual environment, of the system."""
    folders: list[Path] = []
    for prefix in dict.fromkeys((interpreter.parent.parent, interpreter.resolve().parent.parent)):
        for lib in ("lib", "lib64", "local/lib"):
            for kind in ("site-packages", "dist-packages"):
                folders.extend(sorted((prefix / lib).glob(f"python3*/{kind}")))
    return folders


@cache
def _read_installation(packages: Path) -> Installation:
    version = distribution = None
    for metadata in sorted(packages.glob("vllm*.dist-info/METADATA")):
        head = metadata.read_text(encoding="utf-8", errors="replace")[:4000]
        name, number = _NAME.search(head), _VERSION.search(head)
        if name and number and re.fullmatch(r"vllm([-_][a-z0-9]+)?", name[1].lower()):
            distribution, version = name[1].lower(), number[1]
            break
    declared: set[str] = set()
    for source in _SOURCES:
        file = packages / "vllm" / source
        if file.is_file():
            for match in _DECLARED.finditer(file.read_text(encoding="utf-8", errors="replace")):
                # A field of an argument class is the flag of the same name.
                declared.add(f"--{match[1].replace('_', '-')}" if match[1] else match.group())
    return Installation(version, distribution, frozenset(declared))
