"""The nouns of culpa as frozen data classes. Pure: no I/O, no clock, no randomness."""

from culpa.model.diagnosis import Diagnosis, Gpu, KnownIssue, Verdict, XidSeen
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
from culpa.model.reading import LogFile, Reading
from culpa.model.trial import Observation, RequestResult, Trial

__all__ = [
    "Arm",
    "Belief",
    "Commands",
    "Conclusion",
    "Configuration",
    "Count",
    "Diagnosis",
    "Experiment",
    "ExperimentOutcome",
    "Exposure",
    "Factor",
    "FactorStatus",
    "Finding",
    "Gpu",
    "Incident",
    "KnownIssue",
    "Launch",
    "LeftOut",
    "Level",
    "LogFile",
    "Member",
    "Observation",
    "Observer",
    "OtherFailure",
    "Outcome",
    "Plan",
    "PlannedArm",
    "Reading",
    "RequestResult",
    "RootEvent",
    "RootEvidence",
    "Scope",
    "Signature",
    "Status",
    "Trial",
    "TrialProgress",
    "TrialStarted",
    "Verdict",
    "XidSeen",
    "all_safe",
    "all_suspect",
]
