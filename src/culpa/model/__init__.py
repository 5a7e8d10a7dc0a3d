"""The nouns of culpa as frozen data classes. Pure: no I/O, no clock, no randomness."""

from culpa.model.experiment import Commands, Experiment, OtherFailure, RootEvidence
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
from culpa.model.observer import Belief, Observer, TrialProgress, TrialStarted
from culpa.model.outcome import Exposure, Incident, Outcome, RootEvent, Signature
from culpa.model.plan import Plan, PlannedArm
from culpa.model.trial import Observation, RequestResult, Trial

__all__ = [
    "Arm",
    "Belief",
    "Commands",
    "Conclusion",
    "Configuration",
    "Count",
    "Experiment",
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
    "Observer",
    "OtherFailure",
    "Outcome",
    "Plan",
    "PlannedArm",
    "RequestResult",
    "RootEvent",
    "RootEvidence",
    "Scope",
    "Signature",
    "Status",
    "Trial",
    "TrialProgress",
    "TrialStarted",
    "all_safe",
    "all_suspect",
]
