"""The table of faults: what each one is, when it fires, and what an isolation should find."""

from culpa_lab.faults.registry import FAULTS


def show() -> str:
    """The faults as text, one a line."""
    return "".join(f"{name}\n" for name in FAULTS)
