"""Versions of Python packages: each in an environment of its own, or unpacked in front of the launch's environment.

Unpacked takes seconds and the size of the wheel; it is right only where the environment satisfies what the version
requires, which is what `auto` looks for. With an engine held and a dependency exchanged, an environment of its own is a
copy of the launch's one with that package exchanged.
"""

import asyncio
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from culpa.model import Launch
from culpa.versions.cache import Cache
from culpa.versions.commands import answer, carry_out
from culpa.versions.errors import CannotPrepare
from culpa.versions.installed import Installed, installed, requirements_of, unmet
from culpa.versions.order import is_of_engine, same_version
from culpa.versions.provider import Tell
from culpa.versions.redirect import (
    check_sees_path,
    command_in,
    in_environment,
    interpreter_of,
    with_first_on_path,
)
from culpa.versions.unpack import unpack_wheel

Way = Literal["auto", "overlay", "own"]
_PACKAGES = "packages"
_ENVIRONMENT = "environment"


@dataclass(slots=True)
class Packages:
    """`packages` of one version each, from an index or from a folder of wheels.

    `engine` is the adapter's name, `launch` the user's launch, whose interpreter is taken; `extra` are further
    requirements that each environment of its own gets.
    """

    packages: tuple[str, ...]
    engine: str
    launch: Launch
    surrounding: Mapping[str, str]
    cache: Cache
    way: Way = "auto"
    wheels: Path | None = None
    extra: tuple[str, ...] = ()
    carries_settings: bool = False
    python: Path = field(init=False)
    there: Installed | None = field(init=False)
    _ways: dict[str, Literal["overlay", "own"]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own = interpreter_of(self.launch, self.surrounding)
        self.python = own or Path(sys.executable)
        environment = {
            name: value for name, value in self.launch.env if name == "PYTHONPATH" and value is not None
        }
        self.there = installed([str(self.python)], environment) if own is not None else None
        if self.way == "overlay":
            check_sees_path(self.launch)

    def is_ready(self, label: str) -> bool:
        """Whether one of the two ways was finished before."""
        way = self._known_way(label)
        return way is not None and self.cache.ready(self._key(label, way))

    async def make_ready(self, label: str, tell: Tell) -> None:
        """Install or unpack, unless the cache has it. Raises CannotPrepare."""
        way = self._known_way(label)
        if way is not None and self.cache.ready(self._key(label, way)):
            self.cache.use(self._key(label, way))
            self._ways[label] = way
            return
        way = way or await self._choose(label, tell)
        self._ways[label] = way
        key = self._key(label, way)
        if self.cache.ready(key):
            self.cache.use(key)
            return
        with self.cache.locked(key):
            tell(f"{label}: {'unpacking' if way == 'overlay' else 'making an environment for'} {self._named}")
            place = self.cache.begin(key)
            if way == "overlay":
                await self._unpack(label, place / _PACKAGES)
            else:
                await self._install(label, place / _ENVIRONMENT, self.cache.log(key))
            self._check(label)
            self.cache.finish(key, label)

    def redirect(self, launch: Launch, label: str) -> Launch:
        """The launch with the version's packages first, or with the version's own interpreter and commands."""
        way = self._known_way(label) or "own"
        place = self.cache.place(self._key(label, way))
        if way == "overlay":
            return with_first_on_path(launch, place / _PACKAGES, self.surrounding)
        return in_environment(launch, place / _ENVIRONMENT, self.surrounding)

    # -- which way -----------------------------------------------------------------------------------------

    def _known_way(self, label: str) -> Literal["overlay", "own"] | None:
        if self.way != "auto":
            return self.way
        if label in self._ways:
            return self._ways[label]
        for way in ("overlay", "own"):
            if self.cache.ready(self._key(label, way)):
                return way
        return None

    async def _choose(self, label: str, tell: Tell) -> Literal["overlay", "own"]:
        """Unpacked where all packages are there already and their requirements are satisfied."""
        there = self.there
        if there is None or any(there.version(package) is None for package in self.packages):
            return "own"
        for package in self.packages:
            wheel = await self._wheel(package, label)
            needs = requirements_of(wheel) if wheel is not None else None
            if needs is None:
                return "own"
            missing = unmet(needs, there, self.packages)
            if missing:
                shown = ", ".join(missing[:3]) + (" and more" if len(missing) > 3 else "")
                tell(f"{label}: gets an environment of its own, as the launch's one lacks {shown}")
                return "own"
        return "overlay"

    async def _wheel(self, package: str, label: str) -> Path | None:
        """The wheel of this version: in the user's folder, or fetched into the cache."""
        folder = self.wheels
        if folder is None:
            key = self.cache.key("wheel", package, label, str(self.python))
            if not self.cache.ready(key):
                with self.cache.locked(key):
                    place = self.cache.begin(key)
                    pip = pip_for(self.python)
                    if pip is None:
                        return None
                    words = [*pip, "download", "--no-deps", "-d", str(place), f"{package}=={label}"]
                    await carry_out(label, words, self.cache.log(key))
                    self.cache.finish(key, label)
            self.cache.use(key)
            folder = self.cache.place(key)
        from culpa.versions.sources import wheel_version

        found = (wheel for wheel in sorted(folder.glob("*.whl")) if _is(wheel_version(wheel, package), label))
        return next(found, None)

    # -- making --------------------------------------------------------------------------------------------

    async def _unpack(self, label: str, target: Path) -> None:
        for package in self.packages:
            wheel = await self._wheel(package, label)
            if wheel is None:
                raise CannotPrepare(
                    f"{label}: there is no wheel of {package} to unpack: try --environment own"
                )
            await asyncio.to_thread(unpack_wheel, wheel, target)

    async def _install(self, label: str, prefix: Path, log: Path) -> None:
        await carry_out(label, _making(self.python, prefix), log)
        held = self._held()
        python = prefix / "bin" / "python"
        if held:
            listed = log.with_suffix(".requirements")
            listed.write_text("\n".join(held) + "\n", encoding="utf-8")
            await carry_out(label, [*installer(python), "--no-deps", "-r", str(listed)], log)
        await carry_out(label, [*installer(python), *self._specs(label), *self.extra], log)

    def _held(self) -> list[str]:
        """What the launch's environment holds beside the packages, where these are parts of it and not the engine."""
        there = self.there
        if there is None or any(there.version(package) is None for package in self.packages):
            return []
        if any(is_of_engine(package, self.engine) for package in self.packages):
            return []
        frozen = answer([*(pip_for(self.python) or [str(self.python), "-m", "pip"]), "freeze"]) or ""
        left_out = {package.lower().replace("_", "-") for package in self.packages}
        return [
            line
            for line in frozen.splitlines()
            if line
            and not line.startswith(("#", "-e"))
            and line.partition("==")[0].partition(" @")[0].strip().lower().replace("_", "-") not in left_out
        ]

    def _specs(self, label: str) -> list[str]:
        where = ["--no-index", "--find-links", str(self.wheels)] if self.wheels is not None else []
        return [*where, *(f"{package}=={label}" for package in self.packages)]

    def _check(self, label: str) -> None:
        """Raise CannotPrepare unless the redirected interpreter sees just this version, and the command is there."""
        launch = self.redirect(self.launch, label)
        env = {name: value for name, value in launch.env if name == "PYTHONPATH" and value is not None}
        way = self._ways.get(label, self.way)
        place = self.cache.place(self._key(label, "own" if way == "own" else "overlay"))
        python = place / _ENVIRONMENT / "bin" / "python" if way == "own" else self.python
        seen = installed([str(python)], env)
        if seen is None:
            raise CannotPrepare(f"{label}: {python} can't be asked what it holds")
        for package in self.packages:
            have = seen.version(package)
            if have is None or not same_version(have, label):
                raise CannotPrepare(f"{label}: the environment holds {package} {have or 'not at all'}")
        if way == "own" and not command_in(self.launch, place / _ENVIRONMENT).exists():
            name = command_in(self.launch, place / _ENVIRONMENT).name
            raise CannotPrepare(f"{label}: it brings no command {name}")

    def _key(self, label: str, way: str) -> str:
        source = str(self.wheels.resolve()) if self.wheels is not None else "index"
        return self.cache.key(
            way, source, str(self.python), str(self.python.resolve()),
            label, *self.packages, *(self.extra if way == "own" else ()),
        )  # fmt: skip

    @property
    def _named(self) -> str:
        return " and ".join(self.packages)


def _is(found: str | None, label: str) -> bool:
    return found is not None and same_version(found, label)


def _making(python: Path, prefix: Path) -> list[str]:
    """The words that make an empty environment; it needs no pip of its own where culpa has one."""
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "venv", "-q", "--python", str(python), str(prefix)]
    return [
        str(python), "-m", "venv", *(["--without-pip"] if find_spec("pip") is not None else []), str(prefix)
    ]  # fmt: skip


@cache
def _has_pip(python: Path) -> bool:
    return answer([str(python), "-m", "pip", "--version"]) is not None


def pip_for(python: Path) -> list[str] | None:
    """pip that works on the environment of an interpreter: its own, or that of culpa; None if there is none."""
    if _has_pip(python):
        return [str(python), "-m", "pip"]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "--python", str(python)]
    return None


def installer(python: Path) -> list[str]:
    """The words that install into the environment of an interpreter: uv where it is there, else pip."""
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "-q", "--python", str(python)]
    pip = pip_for(python)
    if pip is None:
        raise CannotPrepare(f"{python} has no pip, and there is no uv: install one of them")
    return [*pip, "install", "-q", "--disable-pip-version-check", "--no-compile"]
