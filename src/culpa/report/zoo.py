"""The reference engine's faults in the terminal: the list, the verdict on one, the table of all."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from culpa.model.zoo import KnownFault, ZooResult
from culpa.report import clean
from culpa.report.console import plain_console, print_trimmed
from culpa.report.words import listing, plural

_WIDTHS = (26, 44, 44, 5, 26, 5, 7, 6, 5, 7)
_HEADINGS = (
    "fault",
    "expected",
    "found",
    "exact",
    "symptom",
    "rank",
    "located",
    "trials",
    "bound",
    "seconds",
)
# Whether the place is the one that the table names.
_WHERE = {True: ": that is where it begins", False: ": that is not where it begins", None: ""}


def print_faults(faults: Sequence[KnownFault], *, as_json: bool = False) -> None:
    """What `culpa demo --list` shows."""
    if as_json:
        sys.stdout.write(json.dumps([asdict(fault) for fault in faults], indent=2) + "\n")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("fault", "what goes wrong", "symptom", "when"):
        table.add_column(heading, overflow="fold")
    for fault in faults:
        table.add_row(fault.name, fault.title, fault.symptom, fault.condition)
    print_trimmed(plain_console(sys.stdout), table)


def print_verdict(fault: KnownFault, result: ZooResult) -> None:
    """Whether the finding is the fault that was switched on, and what that was."""
    console = plain_console(sys.stdout)
    right = (
        "That is the fault that was switched on"
        if result.exact
        else "That is not the fault that was switched on"
    )
    console.print()
    console.print(Text(right, style="bold green" if result.exact else "bold red"), soft_wrap=True)
    rows = (
        ("fault", f"{fault.name}: {fault.title}"),
        ("it fires when", fault.condition),
        ("expected", sets(result.expected)),
        *(("begins", f"{one}{_WHERE[result.located_right]}") for one in result.located),
        ("mechanism", fault.mechanism),
        ("like", " ".join(fault.reports)),
        ("cost", f"{plural(result.trials, 'trial')} in {result.seconds:.0f} s{_bound(result)}"),
    )
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(clean.line(value)))
    print_trimmed(console, table)


def _bound(result: ZooResult) -> str:
    return f", where {result.bound:.1f} bits had to be learnt" if result.bound is not None else ""


def sets(found: Sequence[Sequence[str]]) -> str:
    """`execution + prefix_caching`, several sets joined; a dash for none."""
    return listing(" + ".join(one) for one in found) if found else "-"


class RowPrinter:
    """The table of `culpa bench zoo`, a line as each fault is done; as JSON the whole at the end."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._results: list[ZooResult] = []
        if not as_json:
            self._line(_HEADINGS)

    @property
    def all_exact(self) -> bool:
        """Whether every fault so far was found as it is."""
        return all(result.exact for result in self._results)

    def show(self, result: ZooResult) -> None:
        """One more fault."""
        self._results.append(result)
        if not self._as_json:
            self._line(_cells(result))

    def close(self) -> None:
        """The sum, or the JSON."""
        results = self._results
        if self._as_json:
            sys.stdout.write(json.dumps([asdict(result) for result in results], indent=2) + "\n")
            return
        exact = sum(result.exact for result in results)
        seconds = sum(result.seconds for result in results)
        sys.stdout.write(f"{exact} of {len(results)} exact, {seconds:.0f} s\n")

    def _line(self, cells: Sequence[str]) -> None:
        padded = (clean.line(cell).ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True))
        sys.stdout.write("  ".join(padded).rstrip() + "\n")
        sys.stdout.flush()


def _cells(result: ZooResult) -> tuple[str, ...]:
    rank = "" if result.rank_right is None else "right" if result.rank_right else result.rank or "none"
    return (
        result.fault,
        sets(result.expected),
        sets(result.found),
        "yes" if result.exact else "NO",
        result.symptom + ("" if result.symptom_right else " (!)"),
        rank,
        {None: "", True: "right", False: "WRONG" if result.located else "NO"}[result.located_right],
        str(result.trials),
        "" if result.bound is None else f"{result.bound:.1f}",
        f"{result.seconds:.0f}",
    )
