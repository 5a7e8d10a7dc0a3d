"""Property tests are about results: on a machine that is busy, an example may take any time."""

from hypothesis import settings

settings.register_profile("culpa", deadline=None)
settings.load_profile("culpa")
