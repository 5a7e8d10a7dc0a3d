"""Forty planted secrets, none of them left in any format."""

from pathlib import Path

import pytest
from tests.redaction.planted import PRIVATE, SECRETS, planted_run, variants

from culpa.redaction import Redactor
from culpa.report.formats import FORMATS
from culpa.report.source import ReportSource, load

# What may be left of a secret: its issuer's prefix and a few characters, as where a log has cut it off.
_WINDOW = 10


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> ReportSource:
    return load(planted_run(tmp_path_factory.mktemp("planted") / "run"))


def pieces(secret: str) -> list[str]:
    """Every stretch of a secret that is long enough to tell something."""
    return [secret[start : start + _WINDOW] for start in range(4, max(len(secret) - _WINDOW, 4) + 1)]


def left(text: str) -> list[str]:
    """The secrets of which a piece is left in the text."""
    return [one.name for one in SECRETS if any(piece in text for piece in pieces(one.secret))]


def test_there_are_forty() -> None:
    assert len(SECRETS) == 40
    assert len({one.secret for one in SECRETS}) == 40


@pytest.mark.parametrize(
    ("form", "language"),
    [(name, language) for name, one in FORMATS.items() for language in one.languages],
)
def test_no_secret_is_left_in_any_format(form: str, language: str, source: ReportSource) -> None:
    text = FORMATS[form].render(source, "zh" if language == "zh" else "en", "")
    assert left(text) == []
    assert [name for name, (private, _) in PRIVATE.items() if private in text] == []


def test_no_secret_is_left_in_what_formats_are_made_of(source: ReportSource) -> None:
    assert left(repr(source)) == []


@pytest.mark.parametrize("planted", SECRETS, ids=lambda one: str(one.name))
def test_each_secret_is_found_on_its_own(planted: "object") -> None:
    one = next(secret for secret in SECRETS if secret is planted)
    for name, line in variants(one).items():
        redactor = Redactor()
        redactor.learn(line)
        shown = redactor.text(line)
        assert not any(piece in shown for piece in pieces(one.secret)), (name, shown)
        assert redactor.report()[0].kind == "secret"


def test_what_was_taken_out_is_told_with_its_counts(source: ReportSource) -> None:
    told = {one.kind: one for one in source.redactions}
    assert told["secret"].count >= 40
    assert {"user", "host", "address", "mail", "mac", "prompt"} <= told.keys()
    assert "keys, tokens and passwords" in FORMATS["md"].render(source, "en", "")


def test_prompts_that_are_kept_bring_no_secret_back(tmp_path: Path) -> None:
    kept = load(planted_run(tmp_path / "run"), include_prompts=True)
    assert left(repr(kept)) == []
    assert PRIVATE["prompt"][0] in repr(kept)


def test_a_host_is_the_same_by_its_short_and_its_full_name() -> None:
    redactor = Redactor()
    text = "http://train17.acme-labs.io:8000 said: train17: gone; http://train18.acme-labs.io too"
    redactor.learn(text)
    assert redactor.text(text) == "http://host-1:8000 said: host-1: gone; http://host-2 too"


def test_one_host_stays_one_host_and_two_stay_two() -> None:
    redactor = Redactor()
    first = redactor.text(
        "http://gpu-node-7:8000 refused; http://gpu-node-8:8000 too; http://gpu-node-7:9000"
    )
    assert first == "http://host-1:8000 refused; http://host-2:8000 too; http://host-1:9000"
