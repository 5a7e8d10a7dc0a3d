"""Text from logs, launches and engines made fit to be shown: printable first, then redacted.

That order matters: an escape sequence in the middle of a key would hide it from redaction.
"""

from culpa.model.redact import printable, redact


def line(text: str, limit: int | None = None) -> str:
    """The text as one printable line, white space collapsed; a longer one is cut and says so."""
    cleaned = " ".join(redact(printable(text)).split())
    if limit is None or len(cleaned) <= limit:
        return cleaned
    return f"{cleaned[:limit].rstrip()}… ({len(cleaned) - limit:,} more characters)"


def block(text: str) -> str:
    """The text with its line ends kept."""
    return redact(printable(text))


def value(name: str, text: str) -> str:
    """The value of a named thing: a variable's name may be all that tells a secret."""
    prefix = f"{name}="
    shown = printable(text)
    together = redact(prefix + shown)
    return together[len(prefix) :] if together.startswith(prefix) else redact(shown)
