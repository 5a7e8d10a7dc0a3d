"""culpa's reference engine: a small serving engine for hybrid models, with known faults to switch on."""

__version__ = "0.64.0"
