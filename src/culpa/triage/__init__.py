"""From the text that a failing engine leaves behind to the first thing that went wrong. Pure."""

from culpa.triage.document import LogDocument
from culpa.triage.normal import normalise, same_failure
from culpa.triage.printed import printed_settings
from culpa.triage.reader import LogReader

__all__ = ["LogDocument", "LogReader", "normalise", "printed_settings", "same_failure"]
