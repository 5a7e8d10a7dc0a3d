"""Reads a factor's level out of a launch and writes a level into it, for each way in which a factor shows.

Invariants, which the property tests hold: reading after writing gives the level back; writing the level that
the launch has already changes nothing; words and variables that the factor does not own stay as they are.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from culpa.engines.arguments import Grammar, Mention, appended, mentions, replaced, with_value, without
from culpa.engines.errors import BadLaunch
from culpa.engines.spelling import as_json, compact, from_json, normalised, written
from culpa.engines.tables import FactorTable, JsonPlace, Way
from culpa.model import Launch

CUSTOM = "custom"  # flags of a factor with named levels, in a combination that has no name


@dataclass(frozen=True, slots=True)
class Context:
    """What reading and writing need beside the launch.

    `start` is the index of the engine's first argument, `surrounding` the environment in which the launch
    will run: a variable that the launch does not mention is inherited from there.
    """

    start: int
    grammar: Grammar
    surrounding: Mapping[str, str]

    def variable(self, launch: Launch, name: str) -> str | None:
        """The value that the engine will see."""
        own = dict(launch.env)
        return own[name] if name in own else self.surrounding.get(name)

    def unset(self, launch: Launch, name: str) -> Launch:
        """The launch with the variable gone for the engine."""
        if name in self.surrounding:
            return launch.with_variable(name, None)
        return launch.without_variable(name)


def read_level(factor: FactorTable, launch: Launch, context: Context) -> str:
    """The level that the launch gives to the factor. Raises BadLaunch for JSON that is none."""
    if factor.levels:
        return _read_named(factor, launch, context)
    if factor.json_place is not None:
        return _read_json(factor, factor.json_place, launch, context)
    found = _flag_mentions(factor, launch, context)
    if found:
        return _level_of_mention(factor, found[-1], context.grammar)
    if factor.env is not None:
        value = context.variable(launch, factor.env)
        if value is not None:
            return normalised(factor, value)
    return factor.unmentioned


def write_level(factor: FactorTable, launch: Launch, level: str, context: Context) -> Launch:
    """The launch with the factor at that level, edited where the factor already stands, else appended."""
    if read_level(factor, launch, context) == level:
        return launch
    if factor.levels:
        return _write_named(factor, launch, level, context)
    if factor.json_place is not None:
        return _write_json(factor, factor.json_place, launch, level, context)
    found = _flag_mentions(factor, launch, context)
    if level == factor.taken_away:
        bare = launch.with_argv(without(launch.argv, found))
        return context.unset(bare, factor.env) if factor.env is not None else bare
    if factor.env is not None and not found:
        in_place = context.variable(launch, factor.env) is not None
        if in_place or (factor.flag is None and not (factor.on or factor.off)):
            return launch.with_variable(factor.env, written(factor, level, variable=True))
    if factor.flag is not None:
        text = written(factor, level)
        if found:
            return launch.with_argv(with_value(launch.argv, found[-1], text))
        return launch.with_argv(appended(launch.argv, context.start, (factor.flag, text)))
    return _write_switch(factor, launch, level, found, context)


def _flag_mentions(factor: FactorTable, launch: Launch, context: Context) -> list[Mention]:
    valued = (factor.flag, *factor.flag_aliases) if factor.flag is not None else ()
    return mentions(
        launch.argv,
        context.start,
        context.grammar,
        valued=valued,
        switches=(*factor.on, *factor.off),
        optional=factor.bare is not None,
    )


def _level_of_mention(factor: FactorTable, mention: Mention, grammar: Grammar) -> str:
    if factor.flag is not None:
        if mention.value is None:
            return factor.bare if factor.bare is not None else factor.unmentioned
        return normalised(factor, mention.value)
    return "on" if grammar.spelled(mention.flag) in {grammar.spelled(flag) for flag in factor.on} else "off"


def _write_switch(
    factor: FactorTable, launch: Launch, level: str, found: list[Mention], context: Context
) -> Launch:
    words = factor.on if level == "on" else factor.off
    if not words:
        # There is no word for this level: it holds when the other one's words are gone.
        launch = launch.with_argv(without(launch.argv, found))
        if factor.env is not None and context.variable(launch, factor.env) is not None:
            launch = context.unset(launch, factor.env)
        if read_level(factor, launch, context) != level and factor.env is not None:
            launch = launch.with_variable(factor.env, written(factor, level, variable=True))
        return launch
    if found:
        return launch.with_argv(replaced(launch.argv, found[-1], (words[0],)))
    return launch.with_argv(appended(launch.argv, context.start, (words[0],)))


# --- a key inside a JSON flag -------------------------------------------------------------------------------


def _json_mentions(place: JsonPlace, launch: Launch, context: Context) -> tuple[list[Mention], list[Mention]]:
    """Mentions of the whole object, and of this key by its dotted flag."""
    flags = (place.flag, *place.flag_aliases)
    whole = mentions(launch.argv, context.start, context.grammar, valued=flags)
    dotted = mentions(
        launch.argv, context.start, context.grammar, valued=[f"{flag}.{place.key}" for flag in flags]
    )
    return whole, dotted


def _object(place: JsonPlace, mention: Mention) -> dict[str, Any]:
    try:
        value = json.loads(mention.value or "")
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits
        raise BadLaunch(f"{mention.flag}: its value is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadLaunch(f"{mention.flag}: its value must be a JSON object, not {mention.value}")
    return value


def _read_json(factor: FactorTable, place: JsonPlace, launch: Launch, context: Context) -> str:
    whole, dotted = _json_mentions(place, launch, context)
    if dotted:
        return normalised(factor, dotted[-1].value or "")
    if not whole:
        return factor.unmentioned
    value: Any = _object(place, whole[-1])
    for part in place.key.split("."):
        if not isinstance(value, dict) or part not in value:
            return factor.unmentioned
        value = value[part]
    return factor.unmentioned if value is None else from_json(factor, value)


def _write_json(
    factor: FactorTable, place: JsonPlace, launch: Launch, level: str, context: Context
) -> Launch:
    whole, dotted = _json_mentions(place, launch, context)
    gone = level == factor.taken_away
    if dotted:
        if not gone:
            return launch.with_argv(with_value(launch.argv, dotted[-1], written(factor, level)))
        launch = launch.with_argv(without(launch.argv, dotted))
        whole, _ = _json_mentions(place, launch, context)
    if not whole:
        if gone:
            return launch
        text = compact(_changed({}, place.key.split("."), as_json(factor, level)))
        return launch.with_argv(appended(launch.argv, context.start, (place.flag, text)))
    value = _object(place, whole[-1])
    changed = _changed(value, place.key.split("."), None if gone else as_json(factor, level))
    if changed == value:
        return launch
    if not changed:
        return launch.with_argv(without(launch.argv, whole))
    return launch.with_argv(with_value(launch.argv, whole[-1], compact(changed)))


def _changed(value: dict[str, Any], path: list[str], new: Any) -> dict[str, Any]:
    """A copy of a JSON object with one key set, or taken away (new is None) with what it leaves empty."""
    copy = dict(value)
    if len(path) == 1:
        if new is None:
            copy.pop(path[0], None)
        else:
            copy[path[0]] = new
        return copy
    below = copy.get(path[0])
    inner = _changed(below if isinstance(below, dict) else {}, path[1:], new)
    if inner:
        copy[path[0]] = inner
    else:
        copy.pop(path[0], None)
    return copy


# --- named levels -------------------------------------------------------------------------------------------


def _groups(way: Way, grammar: Grammar) -> list[tuple[str, str | None]]:
    """A way's words as flags with their values."""
    groups: list[tuple[str, str | None]] = []
    for word in way.argv:
        if word.startswith("-"):
            groups.append(grammar.split(word))
        elif groups and groups[-1][1] is None:
            groups[-1] = (groups[-1][0], word)
        else:
            groups.append((word, None))
    return groups


def _named_mentions(factor: FactorTable, launch: Launch, context: Context) -> list[Mention]:
    groups = [group for way in factor.levels.values() for group in _groups(way, context.grammar)]
    return mentions(
        launch.argv,
        context.start,
        context.grammar,
        valued=[flag for flag, value in groups if value is not None],
        switches=[flag for flag, value in groups if value is None],
    )


def _read_named(factor: FactorTable, launch: Launch, context: Context) -> str:
    grammar = context.grammar
    last = {
        grammar.spelled(mention.flag): mention.value for mention in _named_mentions(factor, launch, context)
    }
    best, most = None, -1
    for level, way in factor.levels.items():
        groups = _groups(way, grammar)
        there = all(flag in last and last[flag] == value for flag, value in groups)
        if there and all(context.variable(launch, name) == value for name, value in way.env.items()):
            size = len(groups) + len(way.env)
            if size > most:
                best, most = level, size
    names = {name for way in factor.levels.values() for name in way.env}
    mentioned = bool(last) or any(context.variable(launch, name) is not None for name in names)
    if best is None or (most == 0 and mentioned):
        return CUSTOM if mentioned else factor.unmentioned
    return best


def _write_named(factor: FactorTable, launch: Launch, level: str, context: Context) -> Launch:
    way = factor.levels.get(level, Way())
    found = _named_mentions(factor, launch, context)
    place = found[0].index if found else None
    argv = without(launch.argv, found)
    if way.argv:
        argv = (*argv[:place], *way.argv, *argv[place:]) if place else appended(argv, context.start, way.argv)
    launch = launch.with_argv(argv)
    for name in {name for other in factor.levels.values() for name in other.env} - set(way.env):
        if context.variable(launch, name) is not None:
            launch = context.unset(launch, name)
    for name, value in way.env.items():
        launch = launch.with_variable(name, value)
    return launch
