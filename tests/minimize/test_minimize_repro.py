"""The files of a reproduction: what stands in them is what was asked."""

import ast
import re
import shutil
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.minimize.case import Case
from culpa.minimize.repro import Reproduction, expression_of, files_of, kind_of, literal, shell
from culpa.model import Launch, Signature
from culpa.probes import Expectation, Probe, Request
from culpa.probes.request import COMPLETIONS
from culpa.triage import normalise

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def evaluated(source: str) -> Any:
    unpack = files_of(reproduction()).get("repro.py", "").partition("def unpacked")[2]
    namespace: dict[str, Any] = {}
    exec("import base64, zlib\ndef unpacked" + unpack.partition("\n\n\n")[0], namespace)
    return eval(source, namespace)


def reproduction(text: str = "hello", headline: str = "Reproduces a crash.", **fields: Any) -> Reproduction:
    probe = Probe("p", ((Request(COMPLETIONS, {"prompt": text}, expect=Expectation(contains="4")),),))
    launch = Launch(("engine", "--port", "$PORT"), (("A", "b c"), ("GONE", None)))
    given = {
        "headline": headline,
        "signature": Signature("cuda_illegal_access", event="RuntimeError: at <address>"),
        "events": ("RuntimeError: at <address>",),
        "case": Case(launch, probe),
        "launch": launch,
        "control": "",
        "control_case": None,
        "control_launch": None,
        "health": "/health",
        "ready_seconds": 60.0,
        "answer_seconds": 60.0,
        "watch_seconds": 1.0,
        **fields,
    }
    return Reproduction(**given)


@given(JSON)
def test_a_literal_is_the_value(value: Any) -> None:
    assert evaluated(literal(value)) == value


@pytest.mark.parametrize(
    "text", ["the " * 2061 + "the", "ab" * 9 + "a", "x", "", "no repetition here, " + "y" * 30]
)
def test_a_literal_of_a_text_is_the_text(text: str) -> None:
    assert evaluated(literal(text)) == text


def test_a_prompt_that_repeats_itself_is_a_product() -> None:
    assert literal("the " * 5000 + "the") == "'the ' * 5000 + 'the'"


def test_a_long_prompt_is_packed() -> None:
    text = " ".join(str(number * number) for number in range(3000))
    source = literal(text)
    assert len(source) < len(text)
    assert evaluated(source) == text


@given(st.text(), st.text())
def test_hostile_text_leaves_programs_that_parse(text: str, headline: str) -> None:
    files = files_of(reproduction(text, headline, control=headline))
    ast.parse(files["repro.py"])
    assert headline.count("\n") == 0 or "\n".join(headline.splitlines()) not in files["repro.sh"]


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")
def test_the_script_is_one_that_a_shell_can_read() -> None:
    text = files_of(reproduction(headline="it's $(touch /tmp/x) `y` \n # z"))["repro.sh"]
    assert subprocess.run(["sh", "-n"], input=text, text=True, check=False).returncode == 0


def test_the_port_is_left_to_the_shell() -> None:
    launch = Launch(("a b", "--port=$PORT", "$PORT"), (("X", "http://h:$PORT/"), ("GONE", None)))
    assert shell(launch) == """env -u GONE X=http://h:"$PORT"/ setsid 'a b' --port="$PORT" "$PORT\""""


@pytest.mark.parametrize(
    "line",
    [
        "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered",
        "AssertionError: needed 12.00 GiB at 0x7f00, /models/a has 3 shards",
        "ValueError: (a|b)* costs $5 on 10.0.0.1:80",
    ],
)
def test_the_expression_of_an_event_finds_its_line(line: str) -> None:
    assert re.search(expression_of(normalise(line)), f"ERROR 12-01 [x.py:1] {line} and more")


@pytest.mark.parametrize(
    ("symptom", "event", "kind"),
    [
        ("cuda_illegal_access", "RuntimeError: x", "event"),
        ("wrong_answer", None, "answer"),
        ("http_error", None, "refusal"),
        ("hang", None, "hang"),
        ("silent_death", None, "death"),
        ("startup_error", None, "death"),
    ],
)
def test_the_symptom_decides_what_counts_as_the_failure(symptom: str, event: str | None, kind: str) -> None:
    assert kind_of(Signature(symptom, event=event)) == kind


def test_what_is_expected_stands_in_the_program_only_where_answers_are_hunted() -> None:
    crash = files_of(reproduction())["repro.py"]
    wrong = files_of(reproduction(signature=Signature("wrong_answer"), events=()))["repro.py"]
    assert "'contains': '4'" not in crash
    assert "'contains': '4'" in wrong
