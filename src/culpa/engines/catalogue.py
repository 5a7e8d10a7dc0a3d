"""Loads factor catalogues: TOML tables, the same format for the embedded engines and for `--factors FILE`."""

import difflib
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from culpa.engines.errors import BadFactors
from culpa.engines.tables import CatalogueTable, ConflictTable, EngineTable, FactorTable, FactTable


@dataclass(frozen=True)
class Catalogue:
    """The factors that an engine has, in the order of its file, and how the engine is reached."""

    origin: str
    engine: EngineTable
    factors: tuple[FactorTable, ...]
    facts: tuple[FactTable, ...] = ()
    conflicts: tuple[ConflictTable, ...] = ()
    names_engine: bool = False  # the file has an [engine] table: it describes an engine of its own

    def factor(self, name: str) -> FactorTable | None:
        """The factor of that name or alias."""
        for factor in self.factors:
            if name == factor.name or name in factor.aliases:
                return factor
        return None

    def extended(self, other: "Catalogue") -> "Catalogue":
        """This catalogue with the entries of another added; a factor of the same name is replaced."""
        theirs = {factor.name: factor for factor in other.factors}
        kept = [theirs.pop(factor.name, factor) for factor in self.factors]
        return replace(
            self,
            factors=(*kept, *theirs.values()),
            facts=(*self.facts, *other.facts),
            conflicts=(*self.conflicts, *other.conflicts),
        )


@cache
def embedded_catalogue(name: str) -> Catalogue:
    """The catalogue `engines/catalogue/<name>.toml` that ships with culpa."""
    file = resources.files("culpa.engines").joinpath("catalogue", f"{name}.toml")
    return parse_catalogue(file.read_text(encoding="utf-8"), f"{name}.toml")


def read_catalogue(path: Path) -> Catalogue:
    """A user's factors file. Raises BadFactors with one line that names the file and the key."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadFactors(f"factors file {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadFactors(f"factors file {path} can't be read: {error}") from None
    return parse_catalogue(text, str(path))


def parse_catalogue(text: str, origin: str) -> Catalogue:
    """A catalogue from TOML text. `origin` names the file in messages. Raises BadFactors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadFactors(f"{origin}: not valid TOML: {error}") from None
    try:
        table = CatalogueTable.model_validate(data)
    except ValidationError as error:
        raise BadFactors(f"{origin}: {_first_complaint(error, data)}") from None
    return Catalogue(
        origin=origin,
        engine=table.engine or EngineTable(),
        factors=table.factor,
        facts=table.fact,
        conflicts=table.conflict,
        names_engine=table.engine is not None,
    )


def closest(name: str, names: Iterable[str]) -> str | None:
    """The known name that a mistyped one most likely means, or None if nothing is near."""
    known = sorted(set(names))
    near = difflib.get_close_matches(name.lower().replace("-", "_"), known, n=1, cutoff=0.6)
    return near[0] if near else None


def _first_complaint(error: ValidationError, data: dict[str, Any]) -> str:
    """`factor "prefix_caching", safe: ...`: the first problem, with the place as the file spells it."""
    details = error.errors(include_url=False)
    first = details[0]
    place, message = list(first["loc"]), str(first["msg"]).removeprefix("Value error, ")
    words: list[str] = []
    if len(place) >= 2 and isinstance(place[1], int) and place[0] in ("factor", "fact", "conflict"):
        rows = data.get(str(place[0]))
        row = rows[place[1]] if isinstance(rows, list) else None
        name = row.get("name") if isinstance(row, dict) else None
        words.append(f'{place[0]} "{name}"' if isinstance(name, str) else f"{place[0]} number {place[1] + 1}")
        place = place[2:]
    key = ".".join(str(part) for part in place)
    if key:
        words.append(f"key {key}")
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return f"{', '.join(words)}: {message}{more}" if words else f"{message}{more}"
