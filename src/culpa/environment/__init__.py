"""The surroundings of an engine: read here, from a log or from a run; stored, checked and compared."""

from culpa.environment.checked import check_environment
from culpa.environment.compare import compare
from culpa.environment.from_log import NOT_IN_LOG, read_from_logs
from culpa.environment.interpreter import interpreter_in
from culpa.environment.kept import complete_environment, keep_environment, with_said
from culpa.environment.load import load_environment
from culpa.environment.read import read_environment
from culpa.environment.stored import BadEnvironment, environment_document, read_stored, write_environment

__all__ = [
    "NOT_IN_LOG",
    "BadEnvironment",
    "check_environment",
    "compare",
    "complete_environment",
    "environment_document",
    "interpreter_in",
    "keep_environment",
    "load_environment",
    "read_environment",
    "read_from_logs",
    "read_stored",
    "with_said",
    "write_environment",
]
