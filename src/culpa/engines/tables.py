"""The tables of a factor catalogue as validated data. The format is written down in docs/factors.md."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from culpa.engines.conditions import Condition

NAME = re.compile(r"[a-z][a-z0-9_]*")


def _check_name(name: str) -> str:
    if NAME.fullmatch(name) is None:
        raise ValueError(f"{name!r} must be lower-case letters, digits and underscores")
    return name


def _check_pattern(pattern: str | None) -> str | None:
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
    return pattern


def _check_condition(text: str) -> str:
    Condition.parse(text)
    return text


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str | dict) else value


Name = Annotated[str, AfterValidator(_check_name)]
Pattern = Annotated[str | None, AfterValidator(_check_pattern)]
Words = Annotated[tuple[str, ...], BeforeValidator(_as_list)]
Conditions = Annotated[
    tuple[Annotated[str, AfterValidator(_check_condition)], ...], BeforeValidator(_as_list)
]


class Table(BaseModel):
    """Strict base: an unknown key is an error, so that a typo is not silently without effect."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Table):
    """Where the engine itself says what holds: a line of its log, or a value of one of its endpoints.

    With `pattern`, the group `level` or the first group is the value; without a group, `level` says what a
    matching line means. With `api`, `key` walks the JSON by dots (or names a Prometheus metric).
    `map` translates what the engine says into the catalogue's level; words that it does not list stay.
    `first` keeps the first matching line instead of the last (a second context, of a draft model, follows).
    """

    pattern: Pattern = None
    api: str | None = None
    key: str | None = None
    level: str | None = None
    first: bool = False
    map: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_place(self) -> "Source":
        if (self.pattern is None) == (self.api is None):
            raise ValueError("needs exactly one of pattern and api")
        if (self.api is None) != (self.key is None):
            raise ValueError("api and key belong together")
        if self.pattern is not None and self.level is None and re.compile(self.pattern).groups == 0:
            raise ValueError("a pattern without a group needs level")
        return self


Sources = Annotated[tuple[Source, ...], BeforeValidator(_as_list)]


class JsonPlace(Table):
    """A key inside a flag whose value is a JSON object, also reachable as `--flag.key=value`."""

    flag: str
    flag_aliases: Words = ()
    key: str


class Way(Table):
    """What makes a named level: words of the command line and environment variables, all of them together."""

    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}

    @model_validator(mode="after")
    def _flags_first(self) -> "Way":
        if self.argv and not self.argv[0].startswith("-"):
            raise ValueError(f"{self.argv[0]!r} is no flag: a level's words begin with one")
        return self


def _as_way(value: Any) -> Any:
    return {"argv": value} if isinstance(value, list | tuple) else value


class Along(Table):
    """Changes that come along when a factor leaves the launch's level (for one of `levels`, or for any)."""

    levels: tuple[str, ...] | None = None
    flags: tuple[str, ...] = ()  # valued flags to take away, with their values
    switches: tuple[str, ...] = ()  # flags without a value to take away
    unset: tuple[str, ...] = ()  # environment variables to take away


class FactorTable(Table):
    """One `[[factor]]`: how it is read from a launch, its safe levels, how each is applied, what it means."""

    name: Name
    aliases: Words = ()
    title: str = ""
    meaning: str = ""
    source: str = ""
    prior: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05

    flag: str | None = None
    flag_aliases: Words = ()
    bare: str | None = None
    on: Words = ()
    off: Words = ()
    env: str | None = None
    json_place: Annotated[JsonPlace | None, Field(alias="json")] = None
    levels: dict[str, Annotated[Way, BeforeValidator(_as_way)]] = {}

    values: dict[str, str] = {}
    boolean: bool = False
    numeric: bool = False
    decimals: Annotated[int, Field(ge=0, le=9)] = 0  # of numeric levels
    order: Words = ()  # all levels from the lowest to the highest, where they are names
    minimum: int = 1  # in steps of the last decimal
    maximum: int | None = None
    default: str | None = None
    absent: str | None = None
    safe: Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]
    instrument: bool = False

    requires: Conditions = ()
    needs: Words = ()  # facts that the engine's adapter must know to hold, in its own words
    never: str | None = None  # why it is never varied although it is known
    gpus: Annotated[int, Field(ge=0)] = 0
    along: Annotated[tuple[Along, ...], BeforeValidator(_as_list)] = ()

    effective: Sources = ()
    resolves: Words = ()
    multiple: Annotated[int, Field(ge=1)] = 1
    capped_by: Name | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "FactorTable":
        switch = bool(self.on or self.off)
        ways = [self.flag is not None, switch, self.json_place is not None, bool(self.levels)]
        if sum(ways) > 1 or (sum(ways) == 0 and self.env is None):
            raise ValueError(
                "needs exactly one of flag, on/off, json, levels, env (env may stand beside flag or on/off)"
            )
        if self.env is not None and (self.json_place is not None or self.levels):
            raise ValueError("env can't stand beside json or levels; a named level may carry env itself")
        if self.default is not None and self.absent is not None:
            raise ValueError("default and absent exclude each other")
        if (self.flag_aliases or self.bare is not None) and self.flag is None:
            raise ValueError("flag_aliases and bare belong to flag")
        if self.levels:
            known = {*self.levels, self.unmentioned}
            unknown = [level for level in self.safe if level not in known]
            if unknown:
                raise ValueError(f"safe level {unknown[0]!r} is not in levels")
        if self.numeric:
            number = rf"-?\d+(\.\d{{1,{self.decimals}}})?" if self.decimals else r"-?\d+"
            words = [level for level in self.safe if re.fullmatch(number, level) is None]
            if words and words != [self.absent]:
                kind = f"number with at most {self.decimals} decimals" if self.decimals else "integer"
                raise ValueError(f"numeric is set, but safe level {words[0]!r} is no {kind}")
        if self.order:
            unordered = [level for level in self.safe if level not in self.order]
            if unordered or self.numeric:
                what = f"safe level {unordered[0]!r} is not in order" if unordered else "order is for names"
                raise ValueError(f"{what}: it lists all levels of a factor that is not numeric")
        elif (self.decimals or self.maximum is not None) and not self.numeric:
            raise ValueError("decimals and maximum belong to numeric")
        return self

    @property
    def is_switch(self) -> bool:
        """Whether its levels are "on" and "off"."""
        return bool(self.on or self.off) or self.boolean

    @property
    def unmentioned(self) -> str:
        """The level of a launch that does not mention the factor."""
        if self.default is not None:
            return self.default
        if self.absent is not None:
            return self.absent
        for level, way in self.levels.items():
            if not way.argv and not way.env:
                return level
        if bool(self.on) != bool(self.off):
            return "off" if self.on else "on"
        return "default"

    @property
    def taken_away(self) -> str | None:
        """The level that is applied by taking every mention away, or None where each level can be written."""
        if self.default is not None:
            return None
        return None if self.levels else self.unmentioned


class FactTable(Table):
    """One `[[fact]]`: something that the engine says of itself and that is no factor, such as its version."""

    name: Name
    effective: Annotated[Sources, Field(min_length=1)]


class ConflictTable(Table):
    """One `[[conflict]]`: levels that can't run together here, with the reason for the report."""

    when: Annotated[Conditions, Field(min_length=1)]
    reason: str


class PortPlace(Table):
    """Where the engine takes its port: a flag or an environment variable."""

    flag: str | None = None
    env: str | None = None

    @model_validator(mode="after")
    def _one_place(self) -> "PortPlace":
        if (self.flag is None) == (self.env is None):
            raise ValueError("needs exactly one of flag and env")
        return self


class EngineTable(Table):
    """The `[engine]` table: how the engine is reached. A file without it only adds factors."""

    name: str = "generic"
    dialect: Annotated[str, Field(pattern="^(generic|vllm|llamacpp)$")] = "generic"
    health: Annotated[str, Field(pattern="^/")] = "/health"
    port: PortPlace | None = None
    host: PortPlace | None = None
    api: tuple[Annotated[str, Field(pattern="^/")], ...] = ("/v1/models",)
    equals: bool = True  # --flag=value is understood
    underscores: bool = False  # --a_b is the same flag as --a-b
    valued: tuple[
        str, ...
    ] = ()  # flags with a value that are no factors: their values are never read as flags
    instrumentation: tuple[str, ...] = ()  # harmless switches that are added where they are missing
    # A start and its probes on a usual machine, in seconds: only for the rough time in a plan.
    usual_seconds: Annotated[float, Field(gt=0)] = 30.0
    # Counters of /metrics that grow while it works on a request: when they stand still, it hangs.
    token_counters: tuple[str, ...] = ()


class CatalogueTable(Table):
    """A whole file."""

    engine: EngineTable | None = None
    factor: tuple[FactorTable, ...] = ()
    fact: tuple[FactTable, ...] = ()
    conflict: tuple[ConflictTable, ...] = ()

    @model_validator(mode="after")
    def _names_once(self) -> "CatalogueTable":
        seen: set[str] = set()
        for name in [name for factor in self.factor for name in (factor.name, *factor.aliases)]:
            if name in seen:
                raise ValueError(f"factor name {name!r} is given twice")
            seen.add(name)
        return self
