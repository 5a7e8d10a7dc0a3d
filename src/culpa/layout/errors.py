"""What the layout room raises for input that a user can mend."""


class BadLayout(ValueError):
    """A model configuration or a setting that nothing can be computed from; the text is one line for the user."""
