"""What a bisection's reports say, and that nothing hostile gets through them."""

import json
import re
from dataclasses import replace
from io import StringIO

import pytest

from culpa.model import Configuration, Count, Launch, Outcome, Signature, Trial
from culpa.model.bisection import Bisection, ChangedSetting, VersionRow, WhatChanged
from culpa.report.bisection import bisection_json, bisection_markdown, print_summary
from culpa.report.bisection_words import details, headline
from culpa.report.console import plain_console

RESULT = Bisection(
    culpa_version="0.1.0",
    run_id="run",
    started="2026-01-01T00:00:00+00:00",
    elapsed_seconds=61.0,
    engine="vllm",
    launch=Launch(("vllm", "serve", "m")),
    source="the package index (vllm)",
    packages=("vllm",),
    outcome="found",
    versions=(
        VersionRow("0.27.0", passed=2, said="0.27.0", chance=0.0),
        VersionRow("0.28.0", failed=2, said="0.28.0", chance=0.99),
    ),
    edge=("0.27.0", "0.28.0"),
    interval=("0.28.0",),
    probability=0.99,
    bad=Count(2, 2),
    good=Count(0, 2),
    hunted=Signature("exception", "worker", None, "dtype mismatch"),
    trials=(Trial(1, Configuration.of({"engine_version": "0.28.0"}), Outcome.FAIL, "baseline", "0.28.0"),),
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "It fails since vllm 0.28.0; 0.27.0 is the last good version"),
        ({"turned": True}, "It fails up to vllm 0.28.0 and no more from 0.27.0 on"),
        ({"outcome": "interval"}, "It came in between vllm 0.27.0 and 0.28.0"),
        ({"outcome": "good_fails", "edge": (None, None)}, "0.27.0, the good end, fails as well"),
        (
            {"outcome": "inconclusive", "edge": (None, None)},
            "The change is not known yet: it is one of 0.28.0",
        ),
        (
            {"outcome": "no_failure", "edge": (None, None), "probability": None},
            "0.28.0, the bad end, did not fail",
        ),
    ],
)
def test_headline_says_what_was_found(changes: dict[str, object], said: str) -> None:
    assert headline(replace(RESULT, **changes)).startswith(said)  # type: ignore[arg-type]


def test_settings_are_told_beside_the_version() -> None:
    alone = replace(RESULT, settings="version_alone", settings_text="with all safe it fails")
    assert "The version is enough: with all safe it fails." in details(alone)
    both = replace(RESULT, settings="settings_too", isolated=("engine_version=0.28.0", "kv=fp8"))
    assert "The failure needs engine_version=0.28.0 and kv=fp8 together." in details(both)


def test_nothing_hostile_gets_through() -> None:
    evil = "\x1b[31m<script>x</script> [a](http://b) @all"
    changed = WhatChanged((evil,), evil, (ChangedSetting(evil, evil, None),))
    rows = (VersionRow(evil, failed=1, said=evil, note=evil), *RESULT.versions)
    hostile = replace(RESULT, changed=changed, versions=rows, notes=(evil,), interval=(evil,), source=evil)
    out = StringIO()
    print_summary(hostile, plain_console(out))
    assert "\x1b[31m" not in out.getvalue()
    report = bisection_markdown(hostile)
    assert "\x1b" not in report
    assert "<script>" not in re.sub(r"`[^`]*`", "", report)
    document = json.loads(bisection_json(hostile))
    assert document["schema"] == "culpa.bisection/1"
    assert document["first_bad"] == "0.28.0"
    assert "\x1b" not in json.dumps(document)
