"""One redactor for all texts of a publication: what it has taken out once it knows wherever it stands."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from culpa.model.redact import REDACTED
from culpa.model.redact import redact as redact_by_rules
from culpa.redaction.broken import broken_places
from culpa.redaction.literals import forms, occurrences, squeezed, unquoted
from culpa.redaction.names import is_specific, named_values
from culpa.redaction.places import ALIAS, is_private, may_stand_alone
from culpa.redaction.prompts import prompts_in
from culpa.redaction.table import Kind, Rule, load_table
from culpa.redaction.visible import bare, one_kind_of_line_end, visible

PROMPT = "[prompt]"
_ALIAS_NAMES: dict[Kind, str] = {
    "user": "user",
    "host": "host",
    "address": "address",
    "mail": "email",
    "mac": "mac",
    "login": "login",
}
_SHOWN_AS: dict[Kind, str] = {
    "secret": "keys, tokens and passwords",
    "user": "names of users",
    "host": "names of hosts",
    "address": "network addresses",
    "mail": "mail addresses",
    "mac": "hardware addresses of network cards",
    "login": "logins",
    "prompt": "prompts and answers",
}
_ORDER: tuple[Kind, ...] = ("secret", "prompt", "mail", "login", "user", "address", "mac", "host")
_LONGEST_KNOWN = 400  # short texts come again and again: their results are kept
_MOST_PASSES = 5
_LEAST_PROMPT = 12
_MOST_PROMPT_LINES = 400
_QUOTED = 40  # of a long question evidence quotes the two ends
_TAIL = re.compile(r"[ \t\r\\'\"]*\n[ \t>|]*([A-Za-z0-9_.~+/=-]{1,512})(?=([\s'\",;\\)\]}]|$))", re.ASCII)
_SHORT = 12
_PLAIN = re.compile(r"[a-z_ ]*|[0-9,.]{1,6}", re.ASCII)
_PLAIN_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[\d.,:-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Redacted:
    """How much of a kind was taken out: `kind`, the same in words, how often, and how many different ones."""

    kind: Kind
    words: str
    count: int
    different: int


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    kind: Kind


class Redactor:
    """Takes private things out of texts; the same thing is always replaced by the same alias.

    First `learn` from everything that will be published, then ask for the texts: a secret that is named in one place
    is found in another where nothing tells of it. `keep_prompts` leaves in what users asked.
    """

    def __init__(self, *, keep_prompts: bool = False) -> None:
        self._keep_prompts = keep_prompts
        self._table = load_table()
        self._secrets: dict[str, None] = {}
        self._prompts: dict[str, None] = {}
        self._hosts: dict[str, None] = {}
        self._users: dict[str, None] = {}
        self._aliases: dict[tuple[Kind, str], str] = {}
        self._counts: Counter[Kind] = Counter()
        self._seen: dict[Kind, set[str]] = {}
        self._known: dict[str, tuple[str, Counter[Kind]]] = {}
        self._learned: set[str] = set()

    @property
    def keeps_prompts(self) -> bool:
        """Whether what users asked is left in."""
        return self._keep_prompts

    def learn(self, text: str) -> None:
        """Remember the secrets, hosts and users that the text names."""
        if text in self._learned or (len(text) <= _SHORT and _PLAIN.fullmatch(text)):
            return
        if len(text) <= _LONGEST_KNOWN:
            self._learned.add(text)
        self._known.clear()
        plain, _ = bare(one_kind_of_line_end(text))
        raw = plain.encode("latin-1", "replace")
        for start, end in self._secret_places(plain, raw):
            self._remember_secret(plain[start:end])
        for rule, start, end in self._private_places(plain, raw):
            found = plain[start:end]
            if rule.kind == "host":
                label = found.partition(".")[0]  # the same host, as its own logs call it
                for name in dict.fromkeys((found, label)):
                    if may_stand_alone("host", name):
                        self._hosts.setdefault(name)
            elif rule.kind == "user" and len(found) >= 3:
                self._users.setdefault(found)

    def learn_secret(self, secret: str) -> None:
        """Remember a secret that is known to be one."""
        self._remember_secret(secret)

    def learn_prompt(self, prompt: str) -> None:
        """Remember what a user asked or was answered: the whole, its lines, its two ends as evidence quotes them."""
        if self._keep_prompts:
            return
        plain = prompt.strip()
        lines = [line.strip() for line in plain.splitlines()[:_MOST_PROMPT_LINES]]
        ends = [plain[:_QUOTED], plain[-_QUOTED:]] if len(plain) > _QUOTED else []
        for part in (plain, *lines, *ends):
            if len(part) >= _LEAST_PROMPT or (part == plain and len(part) >= 4):
                self._prompts.setdefault(part)
                self._prompts.setdefault(repr(part)[1:-1])

    def text(self, text: str) -> str:
        """The text with private things replaced and hidden characters shown. It keeps its number of lines."""
        if len(text) <= _SHORT and _PLAIN.fullmatch(text):
            return text  # a level, a number, a name of a factor: most texts of a run
        if len(text) > _LONGEST_KNOWN:
            return self._text(text)
        if text not in self._known:
            before = self._counts.copy()
            result = self._text(text)
            self._known[text] = (result, self._counts - before)
            return result
        result, counts = self._known[text]
        self._counts.update(counts)
        return result

    def _text(self, text: str) -> str:
        text = one_kind_of_line_end(text)
        for _ in range(_MOST_PASSES):
            # What has gone may uncover something: a word that ran into another one, an escape that hid a name.
            once = self._by_rules(visible(self._pass(text)))
            if once == text:
                break
            text = once
        return text

    def named(self, name: str, text: str) -> str:
        """The value of a named thing: a variable's name may be all that tells of a secret."""
        prefix = f"{name}="
        together = self.text(prefix + text)
        return together[len(prefix) :] if together.startswith(prefix) else self.text(text)

    def report(self) -> tuple[Redacted, ...]:
        """What was taken out so far."""
        return tuple(
            Redacted(kind, _SHOWN_AS[kind], self._counts[kind], len(self._seen.get(kind, ())) or 1)
            for kind in _ORDER
            if self._counts[kind]
        )

    def note_earlier(self, text: str) -> None:
        """Count what was replaced before this redactor saw the text."""
        self._counts["secret"] += text.count(REDACTED)

    def _by_rules(self, text: str) -> str:
        """What the rules of the terminal know is taken out here as well: no report shows more than a screen does."""
        once = redact_by_rules(text)
        more = once.count(REDACTED) - text.count(REDACTED)
        if more > 0:
            self._counts["secret"] += more
        return once

    def _pass(self, text: str) -> str:
        plain, places = bare(text)
        spans = _apart(self._spans(plain))
        if not spans:
            return text
        parts: list[str] = []
        position = 0
        for span in spans:
            start = span.start if places is None else places[span.start]
            end = span.end if places is None else places[span.end - 1] + 1
            start = max(start, position)
            # Line ends within stay: what numbers lines relies on them.
            lines = "\n" * text.count("\n", start, end)
            parts += [
                text[position:start],
                self._replacement(span.kind, plain[span.start : span.end]) + lines,
            ]
            position = max(end, position)
        return "".join([*parts, text[position:]])

    def _replacement(self, kind: Kind, found: str) -> str:
        self._counts[kind] += 1
        self._seen.setdefault(kind, set()).add(found.lower() if kind == "host" else found)
        if kind == "secret":
            return REDACTED
        if kind == "prompt":
            return PROMPT
        key = (kind, self._whole_host(found.lower()) if kind == "host" else found)
        if key not in self._aliases:
            number = 1 + sum(one == kind for one, _ in self._aliases)
            self._aliases[key] = f"{_ALIAS_NAMES[kind]}-{number}"
        return self._aliases[key]

    def _whole_host(self, name: str) -> str:
        """The full name of a host that is called by its first part, where only one full name begins so."""
        if "." in name:
            return name
        full = [known.lower() for known in self._hosts if known.lower().startswith(f"{name}.")]
        return full[0] if len(full) == 1 else name

    def _spans(self, plain: str) -> Iterator[_Span]:
        raw = plain.encode("latin-1", "replace")
        for start, end in self._secret_places(plain, raw):
            yield _Span(start, end, "secret")
            yield from self._tail(plain, end)
        if self._secrets or self._prompts:
            squeeze = squeezed(plain)
            for start, end in occurrences(self._secrets, plain, squeeze):
                yield _Span(start, end, "secret")
            for start, end in occurrences(self._prompts, plain, squeeze):
                yield _Span(start, end, "prompt")
        if not self._keep_prompts:
            for start, end in prompts_in(plain, raw):
                yield _Span(start, end, "prompt")
        for rule, start, end in self._private_places(plain, raw):
            yield _Span(start, end, rule.kind)
        yield from self._known_names(plain)

    def _tail(self, plain: str, end: int) -> Iterator[_Span]:
        """The rest of a secret that a line end has cut in two, where it looks like one."""
        match = _TAIL.match(plain, end)
        if match is None:
            return
        rest = match.group(1)
        if _PLAIN_WORD.fullmatch(rest) and not (len(rest) >= 8 and match.group(2) in ("", "\n", '"', "'")):
            return
        yield _Span(match.start(1), match.end(1), "secret")

    def _secret_places(self, plain: str, raw: bytes) -> Iterator[tuple[int, int]]:
        for rule in self._table.shapes:
            for match in rule.pattern.finditer(raw):
                start, end = match.span(1)
                found = plain[start:end]
                if found.startswith(REDACTED[:-1]) or found.lower() in rule.not_words:
                    continue
                if rule.mixed and not _is_mixed(found):
                    continue
                yield start, end
        yield from named_values(plain, raw)
        yield from broken_places(plain, self._table.shapes)

    def _private_places(self, plain: str, raw: bytes) -> Iterator[tuple[Rule, int, int]]:
        for rule in self._table.places:
            for match in rule.pattern.finditer(raw):
                start, end = match.span(1)
                if is_private(rule.id, rule.kind, plain, start, end):
                    yield rule, start, end

    def _known_names(self, plain: str) -> Iterator[_Span]:
        names: list[tuple[str, Kind]] = [(name, "host") for name in self._hosts]
        names += [(name, "user") for name in self._users]
        for known, kind in names:
            at = plain.find(known)
            while at >= 0:
                before, after = plain[at - 1 : at], plain[at + len(known) : at + len(known) + 1]
                if kind == "host":
                    alone = not (before.isalnum() or before in ("_", "-")) and not (
                        after.isalnum() or after in ("_", "-")
                    )
                else:  # a user's name counts as a part of a path, or in front of a host
                    alone = before in ("/", "\\", "~") and after in ("/", "\\", "", "\n", "'", '"', " ", ":")
                    alone = alone or (after == "@" and not before.isalnum())
                if alone:
                    yield _Span(at, at + len(known), kind)
                at = plain.find(known, at + len(known))

    def _remember_secret(self, found: str) -> None:
        for part in _parts(found):
            if is_specific(part):
                for form in forms(part):
                    if len(form) >= 6:
                        self._secrets.setdefault(form)


def _parts(found: str) -> Iterator[str]:
    """The secrets within what was found: of user:password the password, of a list its items, of a cookie its values."""
    found = found.strip().strip("[]")
    if "PRIVATE KEY" in found:
        yield from (
            line.strip()
            for line in re.split(r"\n|\\n", found)
            if len(line.strip()) >= 32 and "-----" not in line
        )
        return
    for item in re.split(r"[,;\s]+", found):
        word = item.strip("'\"")
        yield word
        for separator in (":", "="):
            _, cut, rest = word.partition(separator)
            if cut and rest:
                yield rest
                yield unquoted(rest)


def _is_mixed(found: str) -> bool:
    return (
        any(one.isdigit() for one in found)
        and any(one.islower() for one in found)
        and any(one.isupper() for one in found)
    )


def _apart(spans: Iterable[_Span]) -> list[_Span]:
    """The spans in order and apart: where two meet, that of the weightier kind stays whole and the other gives way."""
    by_kind: dict[Kind, list[_Span]] = {}
    for span in spans:
        if span.end > span.start:
            by_kind.setdefault(span.kind, []).append(span)
    taken: list[_Span] = []
    for kind in _ORDER:
        if kind in by_kind:
            taken = sorted([*taken, *_without(_merged(by_kind[kind]), taken)], key=lambda span: span.start)
    return taken


def _merged(spans: list[_Span]) -> list[_Span]:
    merged: list[_Span] = []
    for span in sorted(spans, key=lambda one: (one.start, one.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = _Span(merged[-1].start, max(merged[-1].end, span.end), span.kind)
        else:
            merged.append(span)
    return merged


def _without(spans: list[_Span], taken: list[_Span]) -> Iterator[_Span]:
    """What is left of the spans outside of those that are taken; both in order."""
    index = 0
    for span in spans:
        start = span.start
        while index < len(taken) and taken[index].end <= start:
            index += 1
        at = index
        while at < len(taken) and taken[at].start < span.end:
            if taken[at].start > start:
                yield _Span(start, taken[at].start, span.kind)
            start = max(start, taken[at].end)
            at += 1
        if start < span.end:
            yield _Span(start, span.end, span.kind)


__all__ = ["ALIAS", "PROMPT", "REDACTED", "Redacted", "Redactor"]
