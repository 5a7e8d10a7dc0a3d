"""The table of faults: what each one is, when it fires, and what an isolation should find."""

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of `table.toml`; the head of that file explains the fields."""

    name: str
    title: str
    mechanism: str
    condition: str
    expected: list[list[str]]
    symptom: str
    reports: list[str]
    rank: str | None = None
    located: list[dict[str, str]] = field(default_factory=list)
    argv: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    rate: float = 1.0
    arms: list[str] = field(default_factory=list)
    skip: list[str] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    probe_tokens: int | None = None
    requests: str | None = None

    @property
    def command(self) -> str:
        """The launch that shows it, as one would type it."""
        words = [*(f"{name}={value}" for name, value in self.env.items()), "culpa-lab serve", *self.argv]
        return " ".join([*words, "--fault", self.name])


@cache
def faults() -> tuple[Fault, ...]:
    """All faults, in the order of the table."""
    text = (files("culpa_lab.faults") / "table.toml").read_text(encoding="utf-8")
    return tuple(Fault(**row) for row in tomllib.loads(text)["fault"])


def show() -> str:
    """The faults as text: name, title, and when each fires."""
    width = max(len(fault.name) for fault in faults())
    return "".join(
        f"{fault.name:<{width}}  {fault.title}\n{'':<{width}}  when {fault.condition}\n" for fault in faults()
    )


def document() -> str:
    """`docs/faults.md`, which is made from the table."""
    lines = [_HEAD]
    for fault in faults():
        expected = " and ".join(f"{{{', '.join(one)}}}" for one in fault.expected)
        rank = f", first on {fault.rank}" if fault.rank else ""
        lines += [
            f"## `{fault.name}`: {fault.title}\n",
            f"{fault.mechanism}\n",
            f"- Fires when: `{fault.condition}`",
            f"- Should be found: {expected}",
            f"- Symptom: `{fault.symptom}`{rank}",
            *(f"- Begins: {_place(one)}" for one in fault.located),
            f"- Shown by: `{fault.command}`"
            + (f" and the requests of `{fault.requests}`" if fault.requests else ""),
            f"- Like: {', '.join(f'<{url}>' for url in fault.reports)}\n",
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _place(place: dict[str, str]) -> str:
    return f"`{place['kind']}` on {place['stage']}, {place['layer']} layer, at the {place['step']}"


_HEAD = """# Faults of the reference engine

`culpa-lab serve --fault NAME` switches a fault on, `--fault NAME:RATE` only in that share of launches: whether a launch
has it is drawn once when it starts, from `--seed` if that is given. Several `--fault` may be given. `culpa-lab faults`
lists them.

Each is a defect of one mechanism in one place: the runtime asks a `Hooks` object (`culpa_lab/engine/hooks.py`) how
something is done, the right way is the default, and a module of `culpa_lab/faults` exchanges it. Nothing prints an
error because a number is large: wrong bindings read and write real memory, and wrong answers come out of the model.

The conditions are the ground truth for what `culpa isolate` should find. Names are those of culpa's factors. This page
is made from `culpa_lab/faults/table.toml`: run `python -m culpa_lab.faults.table > docs/faults.md` after a change.
"""

if __name__ == "__main__":
    print(document(), end="")
