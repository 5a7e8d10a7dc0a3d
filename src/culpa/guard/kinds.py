"""What each kind of violation means, read once from `kinds.toml`."""

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

from culpa.model.guard import Explanation, Hypothesis

UNKNOWN = "The guard reports a kind of violation that this culpa does not know."


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Hypothesis(_Row):
    id: str = Field(pattern=r"^H[1-9][0-9]?$")
    text: str = Field(min_length=10)
    source: str = Field(pattern=r"^https://")


class _Kind(_Row):
    name: str = Field(pattern=r"^[a-z_]+$")
    meaning: str = Field(min_length=10)
    source: str = Field(pattern=r"^https://")
    supports: list[str]
    rules_out: list[str]


class _Table(_Row):
    hypothesis: list[_Hypothesis]
    kind: list[_Kind]


@cache
def explanations() -> dict[str, Explanation]:
    """Kind to explanation, in the order of the table."""
    return parse((files("culpa.guard") / "kinds.toml").read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, Explanation]:
    """The explanations of a table. Raises ValueError for an unknown hypothesis, one on both sides, or a kind twice."""
    table = _Table.model_validate(tomllib.loads(text))
    known = {one.id: Hypothesis(one.id, one.text, one.source) for one in table.hypothesis}
    found: dict[str, Explanation] = {}
    for row in table.kind:
        if unknown := {*row.supports, *row.rules_out} - known.keys():
            raise ValueError(f"kind {row.name}: unknown hypothesis {min(unknown)}")
        if both := set(row.supports) & set(row.rules_out):
            raise ValueError(f"kind {row.name}: {min(both)} is supported and ruled out")
        if row.name in found:
            raise ValueError(f"kind {row.name} is given twice")
        found[row.name] = Explanation(
            row.name,
            row.meaning,
            tuple(known[name] for name in row.supports),
            tuple(known[name] for name in row.rules_out),
            row.source,
        )
    return found


def explain(kind: str) -> Explanation:
    """The explanation of a kind; for one that is not in the table, that it is not."""
    return explanations().get(kind, Explanation(kind, UNKNOWN))
