"""`python -m culpa_llamacpp`."""

import sys

from culpa_llamacpp.launcher import main

sys.exit(main())
