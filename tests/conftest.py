"""What holds for all tests: properties are judged by what they find, never by how long a machine takes."""

from hypothesis import HealthCheck, settings

settings.register_profile("culpa", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("culpa")
