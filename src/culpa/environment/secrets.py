"""What must not be shown of an environment: secrets by name or shape, and whose folder something lies in."""

import re
from pathlib import Path

from culpa.model.redact import REDACTED, printable, redact

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|(?:^|_)(?:API|ACCESS|PRIVATE|AUTH)?_?KEY(?:$|_)|AUTH"
)
# Numbers and switches of variables that have such a word in their names are none.
_PLAIN = re.compile(r"(?:\d{1,9}|true|false|on|off)", re.IGNORECASE)


def shown_variable(name: str, value: str) -> str:
    """The value of a variable as it may be shown: nothing of one whose name says that it is a secret."""
    if _SECRET_NAME.search(name.upper()) and value and not _PLAIN.fullmatch(value):
        return REDACTED
    prefix = f"{name}="
    together = redact(prefix + printable(value))
    return shown(together.removeprefix(prefix))


def shown(text: str) -> str:
    """A text without secrets, escapes and the name of the user's home."""
    text = redact(printable(text))
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text
