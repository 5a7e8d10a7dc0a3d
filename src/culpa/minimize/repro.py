"""The reproduction as two files that need only the engine and Python's standard library: repro.sh and repro.py."""

import base64
import re
import shlex
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from culpa.evidence import WRONG_OUTPUT
from culpa.minimize.case import Case
from culpa.model import Launch, Signature
from culpa.model.redact import printable
from culpa.probes import Probe, Reference, Request
from culpa.probes.client import logprob_fields

SCRIPT, PROGRAM = "repro.sh", "repro.py"
PORT = "$PORT"
_REFUSED = frozenset({"http_error", "request_rejected", "malformed_answer"})
_HANGS = frozenset({"hang", "hang_timeout", "request_hang", "nccl_timeout"})
_DEATHS = frozenset({"silent_death", "connection_lost"})
_LONG = 2_000  # characters of a text beyond which it is packed
_PLACEHOLDER = re.compile(r"<(?:n|id|address|url|path|host|size)>")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What goes into the files. `events` are templates of the failure's first event, in all its faces that were seen;
    `control` is the change that makes it pass, in words; launches are for `$PORT`."""

    headline: str
    signature: Signature
    events: tuple[str, ...]
    case: Case
    launch: Launch
    control: str
    control_case: Case | None
    control_launch: Launch | None
    health: str
    ready_seconds: float
    answer_seconds: float
    watch_seconds: float
    reference: Reference | None = None
    model: str = ""


def files_of(reproduction: Reproduction) -> dict[str, str]:
    """Name to text of the two files."""
    import jinja2

    one = reproduction
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    other = one.control_case.probe if one.control_case is not None else None
    same = other is None or one.case.probe is None or one.control_case is None or other == one.case.probe
    rounds = _rounds(one.case.probe, one)
    program = _template(environment, "repro.py.jinja").render(
        headline=_comment(one.headline),
        hunted=literal(kind_of(one.signature)),
        events=_listed([literal(expression_of(event)) for event in one.events]),
        health=literal(one.health),
        ready_seconds=round(one.ready_seconds),
        answer_seconds=round(one.answer_seconds),
        watch_seconds=round(one.watch_seconds, 1),
        rounds=rounds,
        control=_comment(one.control),
        control_rounds="None" if same or other is None else _rounds(other, one),
    )
    script = _template(environment, "repro.sh.jinja").render(
        headline=_comment(one.headline),
        control=_comment(one.control),
        command=shell(one.launch),
        control_command=shell(one.control_launch or one.launch),
    )
    return {SCRIPT: script, PROGRAM: program}


def kind_of(signature: Signature) -> str:
    """By what the reproduction tells that it failed."""
    symptom = signature.symptom
    if symptom in WRONG_OUTPUT:
        return "answer"
    if symptom in _REFUSED:
        return "refusal"
    if symptom in _HANGS:
        return "hang"
    return "death" if symptom in _DEATHS or signature.event is None else "event"


def expression_of(event: str) -> str:
    """The template of an event as a regular expression: what was replaced may be anything short."""
    pieces = _PLACEHOLDER.split(event)
    return r".{1,80}?".join(re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(piece)) for piece in pieces)


def shell(launch: Launch) -> str:
    """The launch for a shell, in a session of its own; `$PORT` is left for the shell to replace."""
    absent = [name for name, value in launch.env if value is None]
    words = ["env", *(word for name in absent for word in ("-u", name))] if absent else []
    words += [f"{name}={_quoted(value)}" for name, value in launch.env if value is not None]
    return " ".join([*words, "setsid", *(_quoted(word) for word in launch.argv)])


def _quoted(word: str) -> str:
    if PORT not in word:
        return shlex.quote(word)
    return (
        '"$PORT"'
        if word == PORT
        else '"$PORT"'.join(shlex.quote(part) if part else "" for part in word.split(PORT))
    )


def literal(value: Any) -> str:
    """Python source of a value of JSON. A text that repeats itself is a product, a long one is packed."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    return repr(value)


def _text(text: str) -> str:
    unit = re.match(r"(.{1,40}?)\1{7,}", text, re.DOTALL)
    if unit is not None:
        times, rest = divmod(len(text), len(unit[1]))
        if text == unit[1] * times + unit[1][:rest]:
            return f"{unit[1]!r} * {times}" + (f" + {unit[1][:rest]!r}" if rest else "")
    if len(text) <= _LONG:
        return repr(text)
    packed = base64.b85encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 9)).decode()
    lines = [packed[at : at + 100] for at in range(0, len(packed), 100)]
    return "unpacked(\n    " + "\n    ".join(repr(line) for line in lines) + "\n)"


def _rounds(probe: Probe | None, one: Reproduction) -> str:
    if probe is None:
        return "[]"
    return _listed(
        [_listed([_request(request, one) for request in requests], "        ") for requests in probe.asked()]
    )


def _request(request: Request, one: Reproduction) -> str:
    body: dict[str, Any] = {"model": one.model} if one.model else {}
    body |= request.body
    if request.measured:
        body |= logprob_fields(request)
    return f"({literal(request.endpoint)}, {literal(body)}, {literal(_expected(request, one))})"


def _expected(request: Request, one: Reproduction) -> dict[str, Any]:
    """What a right answer holds: as known, else what the reference answered each time."""
    if kind_of(one.signature) != "answer":
        return {}
    expect = request.expect
    if expect is not None and (expect.contains or expect.regex):
        fields = {"contains": expect.contains, "regex": expect.regex, "first_line": expect.first_line}
        return {name: value for name, value in fields.items() if value}
    texts = {answer.text for answer in one.reference.to(request)} if one.reference is not None else set()
    return {"text": texts.pop()} if len(texts) == 1 and request.deterministic else {}


def _listed(items: Sequence[str], indent: str = "    ") -> str:
    if not items:
        return "[]"
    return "[\n" + "".join(f"{indent}{item},\n" for item in items) + indent[4:] + "]"


def _comment(text: str) -> str:
    """One printable line without what would end a comment or a docstring."""
    return " ".join(printable(text).replace("\\", "/").replace('"""', "'''").split())


def _template(environment: Any, name: str) -> Any:
    text = resources.files("culpa.minimize").joinpath("data", name).read_text(encoding="utf-8")
    return environment.from_string(text)
