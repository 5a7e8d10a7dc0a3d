"""Verification: the whole suite asked of one engine, and what that excludes."""

from culpa.verify.golden import BadGolden
from culpa.verify.run import CannotVerify, Wanted, verify
from culpa.verify.verifier import SOAK_SECONDS, SUITES, VerifyOptions

__all__ = [
    "SOAK_SECONDS",
    "SUITES",
    "BadGolden",
    "CannotVerify",
    "VerifyOptions",
    "Wanted",
    "verify",
]
