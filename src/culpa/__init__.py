"""culpa finds what is at fault when an LLM serving engine crashes, hangs or talks nonsense."""

__version__ = "0.1.0"
