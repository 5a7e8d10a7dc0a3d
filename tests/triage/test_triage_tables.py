"""The data files: every sample is read by its own entry, and no expression is slow."""

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culpa.triage import facts, last_words, levels, lines, normal, reader, text, tracebacks, wrappers
from culpa.triage.tables import DIALECTS, PrefixRule, SignatureRule, load_tables
from culpa.triage.text import MAX_LINE

GENERIC = load_tables("generic")
ASCII = st.characters(codec="ascii")
ADVERSARIES = [
    "a" * MAX_LINE,
    "a." * (MAX_LINE // 2),
    " " * MAX_LINE,
    "(" * MAX_LINE,
    "[rank1]:" * (MAX_LINE // 8),
    "1" * MAX_LINE,
    "/a" * (MAX_LINE // 2),
    ": " * (MAX_LINE // 2),
    "_TP1" * (MAX_LINE // 4),
    "Worker failed with error '" * (MAX_LINE // 26),
    "Assertion `" * (MAX_LINE // 11),
    "KeyError: '" * (MAX_LINE // 11),
    "CUDA runtime error in " * (MAX_LINE // 22),
    "output: 'abcabcabcabcabcabc " * (MAX_LINE // 28),
    'Traceback (most recent call last): File "' * (MAX_LINE // 42),
    "shard-manager{rank=0}: " * (MAX_LINE // 23),
    "failure detected by watchdog at work sequence id: 1 " * (MAX_LINE // 52),
]


def signature_samples() -> Iterator[tuple[SignatureRule, str]]:
    for rule in GENERIC.signatures:
        for sample in rule.samples:
            yield rule, sample


@pytest.mark.parametrize(("rule", "sample"), list(signature_samples()))
def test_the_first_entry_that_reads_a_sample_says_the_same_of_it(rule: SignatureRule, sample: str) -> None:
    found = GENERIC.classify(sample)
    assert found is not None
    assert (found[0].symptom, found[0].role) == (rule.symptom, rule.role)


@pytest.mark.parametrize("rule", GENERIC.prefixes, ids=lambda rule: str(rule.name))
def test_a_prefix_takes_something_away_and_is_the_first_to_do_so(rule: PrefixRule) -> None:
    for sample in rule.samples:
        first = next(other for other in GENERIC.prefixes if other.regex.match(sample))
        assert first is rule
        match = rule.regex.match(sample)
        assert match is not None
        assert match.end() > 0


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_prefix_begins_with_the_characters_that_its_entry_names(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from(GENERIC.prefixes))
    text = data.draw(st.from_regex(rule.regex, alphabet=ASCII))  # digits of other scripts begin no line
    assert rule.starts.match(text)
    assert rule in GENERIC.prefixes_of(text)


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_every_dialect_knows_when_its_engine_serves(dialect: str) -> None:
    assert load_tables(dialect).says_ready("Application startup complete.")


def expressions() -> list[re.Pattern[str]]:
    """Every expression that a line meets on its way: those of the tables and those of the code."""
    found = [rule.regex for rule in GENERIC.prefixes] + [rule.regex for rule in GENERIC.signatures]
    found += [rule.suffix for rule in GENERIC.prefixes if rule.suffix is not None]
    found += GENERIC.ready
    for module in (facts, last_words, levels, lines, reader, text, tracebacks, wrappers):
        found += [value for value in vars(module).values() if isinstance(value, re.Pattern)]
    return found + [pattern for pattern, _ in normal._STEPS]


def hostile_lines() -> Iterator[str]:
    """Lines as long as they get, of what expressions look for, over and over."""
    yield from ADVERSARIES
    samples = [sample for prefix in GENERIC.prefixes for sample in prefix.samples]
    samples += [sample for signature in GENERIC.signatures for sample in signature.samples]
    for sample in samples[::7]:
        yield (sample * (MAX_LINE // len(sample) + 1))[:MAX_LINE]


@pytest.mark.parametrize("line", list(hostile_lines()), ids=lambda line: str(line)[:12])
def test_no_expression_is_superlinear(line: str) -> None:
    for pattern in expressions():
        start = time.process_time()
        pattern.search(line)
        assert time.process_time() - start < 0.5, pattern.pattern
