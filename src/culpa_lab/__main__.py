"""`python -m culpa_lab`: the same as `culpa-lab`."""

import sys

from culpa_lab.cli import main

if __name__ == "__main__":
    sys.exit(main())
