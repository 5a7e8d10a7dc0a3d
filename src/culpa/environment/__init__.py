"""The surroundings of an engine: read here, from a log or from a run; stored, checked and compared."""

from culpa.environment.from_log import read_from_logs
from culpa.environment.kept import complete_environment, keep_environment
from culpa.environment.read import read_environment
from culpa.environment.stored import BadEnvironment, environment_document, read_stored, write_environment

__all__ = [
    "BadEnvironment",
    "complete_environment",
    "environment_document",
    "keep_environment",
    "read_environment",
    "read_from_logs",
    "read_stored",
    "write_environment",
]
