"""What holds for all tests: properties are judged by what they find, never by how long a machine takes."""

import os

from hypothesis import HealthCheck, settings

# Before anything loads NumPy: the small products of tests gain nothing from threads that wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples in every run, so that a change is judged by itself; `make explore` looks for new ones.
settings.register_profile(
    "culpa", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("CULPA_HYPOTHESIS_PROFILE", "culpa"))
