"""The whole configuration that an engine printed at its start, by the names that it uses itself."""

from collections.abc import Iterable

from culpa.triage.pairs import pairs

# What comes in front of a dump of settings in force; what the user asked for is no part of it.
_MARKERS = ("with config: ", "server_args=ServerArgs(", "LLM Args: ", "Args { ")
_LONGEST = 200_000
_DEEPEST = 3


def printed_settings(lines: Iterable[str]) -> dict[str, str]:
    """Name to value as printed, nested ones with dots (`compilation_config.mode`); the last dump of a name holds."""
    found: dict[str, str] = {}
    for line in lines:
        for marker in _MARKERS:
            start = line.find(marker)
            if start >= 0:
                _take("", line[start + len(marker) : start + _LONGEST], found, 0)
                break
    return found


def _take(prefix: str, text: str, found: dict[str, str], depth: int) -> None:
    for key, value in pairs(text):
        name = f"{prefix}{key}"
        inner = _inside(value)
        if inner is not None and depth < _DEEPEST:
            _take(f"{name}.", inner, found, depth + 1)
        else:
            found[name] = value


def _inside(value: str) -> str | None:
    """The text within `{...}` or `Name(...)`, None for a plain value."""
    if value.startswith("{") and value.endswith("}"):
        return value[1:-1]
    head, bracket, rest = value.partition("(")
    return rest[:-1] if bracket and rest.endswith(")") and head.isidentifier() and "=" in rest else None
