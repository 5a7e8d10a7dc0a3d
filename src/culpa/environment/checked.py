"""An environment against what public sources say of its releases and settings."""

from culpa.model.environment import Check, Environment
from culpa.triage.known_ranges import check


def check_environment(environment: Environment) -> tuple[Check, ...]:
    """What is known of it, the worst first; nothing is said of what could not be read."""
    return check(environment.values(), dict(environment.settings))
