"""Requests, their prompts and their oracles: what is asked of an engine, and whether the answer is right."""

from culpa.probes.answer import Answer, Failure, Progress
from culpa.probes.ask import ask, measure_tokens_per_character
from culpa.probes.client import Endpoint
from culpa.probes.degeneration import degeneration
from culpa.probes.factors import request_factors
from culpa.probes.judgement import Judgement, Status
from culpa.probes.kinds import builtin_probes, long_prompt_tokens
from culpa.probes.oracles import judge
from culpa.probes.pacing import given_up, paced
from culpa.probes.prompts import (
    DEFAULT_QUESTIONS,
    BadText,
    LongPrompt,
    Question,
    Record,
    parse_question,
    parse_record,
)
from culpa.probes.reference import Comparison, Reference, compare, known_from, reference_from
from culpa.probes.request import Expectation, Limits, Probe, Request, Round, Span, answer_limit, overlap
from culpa.probes.shaping import conflict, shaped, with_new_sessions
from culpa.probes.user_requests import BadRequestFile, user_probe

__all__ = [
    "DEFAULT_QUESTIONS",
    "Answer",
    "BadRequestFile",
    "BadText",
    "Comparison",
    "Endpoint",
    "Expectation",
    "Failure",
    "Judgement",
    "Limits",
    "LongPrompt",
    "Probe",
    "Progress",
    "Question",
    "Record",
    "Reference",
    "Request",
    "Round",
    "Span",
    "Status",
    "answer_limit",
    "ask",
    "builtin_probes",
    "compare",
    "conflict",
    "degeneration",
    "given_up",
    "judge",
    "known_from",
    "long_prompt_tokens",
    "measure_tokens_per_character",
    "overlap",
    "paced",
    "parse_question",
    "parse_record",
    "reference_from",
    "request_factors",
    "shaped",
    "user_probe",
    "with_new_sessions",
]
