"""What goes wrong before an engine is ever started; every message is one line that a user can act on."""


class BadLaunch(Exception):
    """The launch can't be understood or can't start: no command, no such model file, no such engine."""


class BadFactors(Exception):
    """A table of factors is not valid. The message names the file and the key."""
