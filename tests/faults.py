"""Faults as boolean expressions over factor levels, for simulated and fake engines.

`eager && pp>1 || !prefix_caching`: `&&`, `||`, `!`, parentheses, comparisons (`<`, `<=`, `>`, `>=`, `==`,
`!=`) of a factor with a level or with another factor. A name alone is true where the factor is at its suspect
level (if no suspect levels are given: where its level is none of "", "0", "off", "false", "no", "none").
Comparisons are numeric where both sides read as numbers, else textual; order comparisons need numbers.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

Levels = Mapping[str, str]
Truth = Callable[[Levels], bool]

_TOKEN = re.compile(r"\s*(?:(?P<op>&&|\|\||<=|>=|==|!=|[!()<>])|(?P<word>[\w.,:/+-]+))")
_NOTHING = frozenset({"", "0", "off", "false", "no", "none"})


class BadExpression(ValueError):
    """The text is no expression of this little language."""


@dataclass(frozen=True)
class Fault:
    """A parsed expression; `fault(levels)` tells whether these levels fail."""

    text: str
    _truth: Truth

    def __call__(self, levels: Levels) -> bool:
        return self._truth(levels)


def parse_fault(text: str, suspects: Levels | None = None) -> Fault:
    """Parse an expression. `suspects` gives the suspect level of each factor, so that a name alone can mean
    "at its suspect level". Raises BadExpression."""
    parser = _Parser(_tokens(text), dict(suspects or {}))
    truth = parser.disjunction()
    parser.end()
    return Fault(text, truth)


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    stripped = text.rstrip()
    while place < len(stripped):
        match = _TOKEN.match(stripped, place)
        if match is None:
            raise BadExpression(f"can't read {stripped[place:]!r}")
        tokens.append(match["op"] or match["word"])
        place = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[str], suspects: Levels) -> None:
        self._tokens = tokens
        self._place = 0
        self._suspects = suspects

    def disjunction(self) -> Truth:
        terms = [self._conjunction()]
        while self._take("||"):
            terms.append(self._conjunction())
        return lambda levels: any(term(levels) for term in terms)

    def end(self) -> None:
        if self._place < len(self._tokens):
            raise BadExpression(f"unexpected {self._tokens[self._place]!r}")

    def _conjunction(self) -> Truth:
        terms = [self._negation()]
        while self._take("&&"):
            terms.append(self._negation())
        return lambda levels: all(term(levels) for term in terms)

    def _negation(self) -> Truth:
        if self._take("!"):
            inner = self._negation()
            return lambda levels: not inner(levels)
        if self._take("("):
            inner = self.disjunction()
            if not self._take(")"):
                raise BadExpression("a parenthesis is not closed")
            return inner
        return self._comparison()

    def _comparison(self) -> Truth:
        left = self._word()
        for operator in ("<=", ">=", "==", "!=", "<", ">"):
            if self._take(operator):
                right = self._word()
                return lambda levels: _compare(operator, levels.get(left, left), levels.get(right, right))
        suspect = self._suspects.get(left)
        if suspect is None:
            return lambda levels: levels.get(left, "").lower() not in _NOTHING
        return lambda levels: levels.get(left, suspect) == suspect

    def _word(self) -> str:
        if self._place >= len(self._tokens) or not re.match(r"[\w.,:/+-]", self._tokens[self._place]):
            raise BadExpression("a factor or a level is missing")
        self._place += 1
        return self._tokens[self._place - 1]

    def _take(self, token: str) -> bool:
        if self._place < len(self._tokens) and self._tokens[self._place] == token:
            self._place += 1
            return True
        return False


def _compare(operator: str, left: str, right: str) -> bool:
    if re.fullmatch(r"-?\d+(\.\d+)?", left) and re.fullmatch(r"-?\d+(\.\d+)?", right):
        number, other = Decimal(left), Decimal(right)
        if operator in ("==", "!="):
            return (number == other) is (operator == "==")
        return {
            "<": number < other,
            "<=": number <= other,
            ">": number > other,
            ">=": number >= other,
        }[operator]
    if operator not in ("==", "!="):
        raise BadExpression(f"{left!r} {operator} {right!r} needs numbers")
    return (left == right) is (operator == "==")
