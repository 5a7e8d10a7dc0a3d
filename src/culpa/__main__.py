"""`python -m culpa` is the command `culpa`."""

from culpa.cli import main

main()
