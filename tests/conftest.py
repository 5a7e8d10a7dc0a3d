"""What holds for all tests: properties are judged by what they find, never by how long a machine takes."""

import os

from hypothesis import HealthCheck, settings

# Before anything loads NumPy: the small products of tests gain nothing from threads that wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("culpa", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("culpa")
