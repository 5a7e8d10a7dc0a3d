"""What keeps a failure away for the time being, measured beside the failing launch on the same requests."""

from culpa.mitigation.run import MitigateOptions, NothingToMitigate, mitigate

__all__ = ["MitigateOptions", "NothingToMitigate", "mitigate"]
