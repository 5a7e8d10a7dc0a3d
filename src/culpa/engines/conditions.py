"""The small language of `requires` and `[[conflict]]`: `name op value`, as in `pipeline_parallel_size > 1`.

The right side is a level, or the name of another factor. Two sides that both read as integers are compared
as integers; otherwise only `==` and `!=` hold, and an ordering of words is false.
"""

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": lambda a, b: isinstance(a, int) and isinstance(b, int) and a <= b,
    ">=": lambda a, b: isinstance(a, int) and isinstance(b, int) and a >= b,
    "<": lambda a, b: isinstance(a, int) and isinstance(b, int) and a < b,
    ">": lambda a, b: isinstance(a, int) and isinstance(b, int) and a > b,
}
_SHAPE = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?P<op>==|!=|<=|>=|<|>)\s*(?P<value>\S(?:.*\S)?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison between a factor's level and a value (or another factor's level)."""

    name: str
    op: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Raises ValueError when the text is not `name op value`."""
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not of the form 'factor > 1' (operators: == != < <= > >=)")
        return cls(match["name"], match["op"], match["value"])

    def holds(self, levels: Mapping[str, str]) -> bool:
        """Whether it holds for these levels; false when the factor on the left has no level there."""
        if self.name not in levels:
            return False
        left, right = levels[self.name], levels.get(self.value, self.value)
        if _is_integer(left) and _is_integer(right):
            return _OPERATORS[self.op](int(left), int(right))
        return _OPERATORS[self.op](left, right)

    def __str__(self) -> str:
        return f"{self.name} {self.op} {self.value}"


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None
