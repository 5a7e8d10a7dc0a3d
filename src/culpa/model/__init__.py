"""The nouns of culpa as frozen data classes. Pure: no I/O, no clock, no randomness."""

from culpa.model.factor import Configuration, Factor, LeftOut, Scope, all_safe, all_suspect
from culpa.model.finding import (
    Conclusion,
    Count,
    ExperimentOutcome,
    FactorStatus,
    Finding,
    Level,
    Member,
    Status,
)
from culpa.model.launch import Arm, Launch
from culpa.model.outcome import Exposure, Incident, Outcome, RootEvent, Signature
from culpa.model.trial import Observation, Trial

__all__ = [
    "Arm",
    "Conclusion",
    "Configuration",
    "Count",
    "ExperimentOutcome",
    "Exposure",
    "Factor",
    "FactorStatus",
    "Finding",
    "Incident",
    "Launch",
    "LeftOut",
    "Level",
    "Member",
    "Observation",
    "Outcome",
    "RootEvent",
    "Scope",
    "Signature",
    "Status",
    "Trial",
    "all_safe",
    "all_suspect",
]
