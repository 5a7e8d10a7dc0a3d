"""Recorded requests become a workload that keeps when each was under way."""

import json
from typing import Any

import pytest

from culpa.probes import Answer, judge, overlap, request_factors
from culpa.traffic import Inline, Recorded, probe_from, spans_of


def recorded(index: int, at: float, ended: float | None = None, **fields: Any) -> Recorded:
    body = fields.pop("body", {"prompt": f"number {index}", "max_tokens": 4})
    content = Inline(body if isinstance(body, bytes) else json.dumps(body).encode())
    fields.setdefault("outcome", "answered" if ended is not None else "unanswered")
    return Recorded(index, at, "/v1/completions", content, ended=ended, **fields)


def test_times_are_kept_and_pauses_are_cut() -> None:
    spans = spans_of([recorded(0, 10.0, 12.0), recorded(1, 11.0, 13.0), recorded(2, 100.0, 101.0)], 5.0)
    assert [(span.start, span.end) for span in spans] == [(0.0, 2.0), (1.0, 3.0), (8.0, 9.0)]


def test_a_long_request_is_no_pause() -> None:
    spans = spans_of([recorded(0, 0.0, 90.0), recorded(1, 80.0, 85.0)], 5.0)
    assert [(span.start, span.end) for span in spans] == [(0.0, 90.0), (80.0, 85.0)]


def test_nobody_waits_for_what_was_lost_with_the_engine() -> None:
    (span,) = spans_of([recorded(0, 0.0, 3.0, outcome="lost")])
    assert span.end is None


def test_a_cancellation_is_kept_with_what_its_client_had() -> None:
    probe = probe_from([recorded(0, 0.0, 1.5, outcome="cancelled", pieces=3)])
    (request,) = probe.requests()
    assert request.span is not None
    assert request.span.given_up
    assert request.span.pieces == 3


def test_texts_are_judged_only_where_the_engine_lived_through_it() -> None:
    assert probe_from([recorded(0, 0.0, 1.0)]).contents
    assert not probe_from([recorded(0, 0.0, 1.0), recorded(1, 1.0)]).contents


def test_what_is_no_json_object_is_left_out() -> None:
    probe = probe_from([recorded(0, 0.0, 1.0, body=b"\x00\xff"), recorded(1, 1.0, 2.0)])
    assert len(probe.requests()) == 1
    with pytest.raises(ValueError, match="none of the recorded requests"):
        probe_from([recorded(0, 0.0, 1.0, body=b"[1]")])


def test_concurrency_is_what_overlapped_not_what_was_recorded() -> None:
    probe = probe_from([recorded(n, float(n), n + 1.5) for n in range(20)])
    assert overlap(probe.rounds[0]) == 2
    levels = {factor.name: factor.suspect for factor in request_factors(probe)}
    assert levels["concurrency"] == "2"


def test_what_was_refused_when_it_was_recorded_may_be_refused_again() -> None:
    probe = probe_from([recorded(0, 0.0, 1.0, status=400), recorded(1, 1.0, 2.0, status=200)])
    refused = Answer(status=400, failure="http_error", error="too long")
    fine = Answer(status=200, text="well", finish_reason="stop")
    assert judge(probe, (refused, fine)).status == "right"
    assert judge(probe, (refused, refused)).symptom == "request_rejected"


def test_an_engine_that_dies_fails_whatever_is_judged() -> None:
    probe = probe_from([recorded(0, 0.0, 1.0), recorded(1, 1.0)])
    lost = Answer(failure="connection_lost", error="reset")
    fine = Answer(status=200, text="!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!", finish_reason="length")
    assert judge(probe, (fine, fine)).status == "right"
    assert judge(probe, (fine, lost)).symptom == "connection_lost"


def test_what_was_given_up_owes_no_answer() -> None:
    probe = probe_from([recorded(0, 0.0, 1.0, outcome="cancelled"), recorded(1, 1.0, 2.0)])
    assert judge(probe, (Answer(given_up=True), Answer(status=200, text="well"))).status == "right"
