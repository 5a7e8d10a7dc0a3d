"""A launch in parts that can be left out: options with their values, keys of JSON values, variables."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from culpa.engines.arguments import Grammar, looks_like_number
from culpa.model import Launch

# What names the model is no setting: without it another model would be served, if any.
_MODEL = frozenset(
    {"--model", "-m", "--served-model-name", "--model-path", "--tokenizer", "-hf", "--hf-repo"}
)


@dataclass(frozen=True, slots=True)
class Part:
    """Something of a launch that may be left out: words of argv, one key of a JSON value, or a variable."""

    words: tuple[int, ...] = ()
    key: str = ""
    variable: str = ""
    text: str = ""


def options_of(launch: Launch, start: int, grammar: Grammar) -> tuple[Part, ...]:
    """The options and variables of a launch, each with its values. Positional words, and what names the model, stay."""
    parts = [
        Part(words=tuple(span), text=" ".join(launch.argv[index] for index in span))
        for span in _spans(launch.argv, start, grammar)
        if grammar.split(launch.argv[span[0]])[0] not in _MODEL
    ]
    shown = (
        (name, f"{name}={value}" if value is not None else f"{name} unset") for name, value in launch.env
    )
    return (*parts, *(Part(variable=name, text=text) for name, text in shown))


def keys_of(launch: Launch, start: int, grammar: Grammar) -> tuple[Part, ...]:
    """The keys of options whose value is a JSON object of several keys."""
    return tuple(
        Part(words=(span[-1],), key=key, text=f"{key} of {grammar.split(launch.argv[span[0]])[0]}")
        for span in _spans(launch.argv, start, grammar)
        if (value := _object(_value(launch.argv[span[-1]]))) is not None and len(value) > 1
        for key in value
    )


def without(launch: Launch, gone: Sequence[Part]) -> Launch:
    """The launch with these parts left out."""
    argv = list(launch.argv)
    keys: dict[int, set[str]] = {}
    for part in gone:
        if part.key:
            keys.setdefault(part.words[0], set()).add(part.key)
    for index, names in keys.items():
        word = argv[index]
        text = _value(word)
        value = {key: kept for key, kept in (_object(text) or {}).items() if key not in names}
        argv[index] = word[: len(word) - len(text)] + json.dumps(value)
    dropped = {index for part in gone if not part.key for index in part.words}
    variables = {part.variable for part in gone if part.variable}
    return replace(
        launch,
        argv=tuple(word for index, word in enumerate(argv) if index not in dropped),
        env=tuple((name, value) for name, value in launch.env if name not in variables),
    )


def free_to_go(
    launch: Launch,
    parts: Sequence[Part],
    levels_of: Callable[[Launch], Mapping[str, str]],
    kept: Sequence[str],
) -> tuple[Part, ...]:
    """The parts that carry none of the factors to keep: without them these have the same levels."""
    now = levels_of(launch)

    def same(part: Part) -> bool:
        try:
            then = levels_of(without(launch, [part]))
        except ValueError:  # the engine's reader does not understand what is left
            return False
        return all(then.get(name) == now.get(name) for name in kept)

    return tuple(part for part in parts if same(part))


def _spans(argv: Sequence[str], start: int, grammar: Grammar) -> Iterator[list[int]]:
    """Indices of an option with the words that are its values."""
    index = start
    while index < len(argv) and argv[index] != "--":
        if not argv[index].startswith("-") or looks_like_number(argv[index]):
            index += 1
            continue
        flag, glued = grammar.split(argv[index])
        span = [index]
        index += 1
        if glued is None:
            if flag in {grammar.spelled(one) for one in grammar.valued} and index < len(argv):
                span.append(index)
                index += 1
            while (
                index < len(argv)
                and argv[index] != "--"
                and (not argv[index].startswith("-") or looks_like_number(argv[index]))
            ):
                span.append(index)
                index += 1
        yield span


def _value(word: str) -> str:
    """The value that is glued to a flag, or the word itself."""
    return word.split("=", 1)[1] if word.startswith("-") and "=" in word else word


def _object(text: str) -> dict[str, object] | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
