"""Text made fit to be published: secrets, people, hosts and prompts taken out, hidden characters shown. Pure."""

from culpa.redaction.redactor import REDACTED, Redacted, Redactor
from culpa.redaction.visible import visible

__all__ = ["REDACTED", "Redacted", "Redactor", "visible"]
