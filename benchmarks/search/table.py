"""The table of all methods, and the goals with what was measured, as Markdown that reads well in a terminal."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.search.figures import Figures, RowFigures, difference
from benchmarks.search.measure import FLAT_TWIN, OWN, Record, Row
from benchmarks.search.simulate import KINDS

NEAR_THE_BOUND = 1.10  # deterministic faults: trials before confirmation, as a multiple of the bound
SHARE_OF_PEERS = 0.60  # intermittent faults: culpa's trials as a share of the best peer's
WRONG_PRIORS_COST = 2.0  # trials
_KNOWS_SIZE = "hwang (k known)"

_HEAD = (
    "fault",
    "faults",
    "bound",
    "method",
    "trials",
    "95th",
    "cost",
    "before",
    "in all",
    "exact",
    "all",
    "false",
    "nobody",
)


def fault_name(row: Row) -> str:
    """A row in words: its kind, size and rates."""
    rates = [f"rate {row.rate:g}"] if row.rate < 1.0 else []
    rates += [f"false {row.false_rate:g}"] if row.false_rate else []
    size = [f"n={row.n} k={row.k}"] if row.n else []
    return ", ".join([row.kind, *size, *rates])


def table(rows: Sequence[RowFigures], *, brief: bool = False) -> str:
    """All methods on all rows; with `brief`, culpa and the best peers of each row only."""
    lines: list[tuple[str, ...]] = [_HEAD]
    for row in rows:
        peers = sorted(row.peers(), key=lambda one: one.trials)
        if brief:
            peers = _best(row)
        twins = [one for one in row.figures if one.method == FLAT_TWIN]
        shown = [row.own, *twins, *peers]
        for place, one in enumerate(shown):
            head = (fault_name(row.row), str(one.faults), f"{row.bound:.2f}") if not place else ("", "", "")
            lines.append((*head, *_cells(one)))
    return _aligned(lines)


def _best(row: RowFigures) -> list[Figures]:
    """The best peer that is not told the size, and the one that is, if it takes fewer trials still. The best is the
    cheapest one that is as accurate as culpa, or the most accurate one if none is."""

    def order(one: Figures) -> tuple[float, float]:
        return (0.0, one.trials) if one.exact >= row.own.exact else (1.0 - one.exact, one.trials)

    peers = sorted(row.peers(), key=order)
    unknown = next((place for place, one in enumerate(peers) if not knows_size(one)), len(peers))
    return peers[: unknown + 1]


def knows_size(one: Figures) -> bool:
    """Whether a method was told how many members there are."""
    return one.method.startswith(_KNOWS_SIZE)


def _cells(one: Figures) -> tuple[str, ...]:
    return (
        one.method,
        f"{one.trials:.1f}",
        f"{one.most:.0f}",
        f"{one.cost:.1f}",
        f"{one.own:.1f}",
        f"{one.in_all:.1f}",
        f"{one.exact:.1%}",
        f"{one.all_found:.1%}",
        f"{one.false:.1%}",
        f"{one.nobody:.1%}",
    )


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns; words to the left, numbers to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    words = {0, 3}

    def joined(line: Sequence[str]) -> str:
        cells = (
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        return f"| {' | '.join(cells)} |"

    rule = (
        "-" * width if column in words else "-" * (width - 1) + ":" for column, width in enumerate(widths)
    )
    return "\n".join([joined(lines[0]), f"| {' | '.join(rule)} |", *(joined(line) for line in lines[1:])])


LEGEND = """\
bound: -log2 of culpa's prior of the true set, over the bits that a trial can tell at most at these rates
trials, 95th: trials to a confirmed verdict, the first failure of the user's launch included: mean, 95th percentile
cost: the same in relaunches
before: culpa's trials until the true set is its likeliest (the user's launch not counted), a peer's without the arms
that confirm
in all: to the end of the search, further causes included
exact: the first set found is a minimal failing set
all: all of them were found and nothing else
false: a factor that has nothing to do with it was accused
nobody: no set was confirmed
@e: each configuration was repeated until both errors are at most e, with the rates known; each peer is shown with
that e of seven which takes the fewest trials while being as accurate as culpa was (if none is, the most accurate)"""


def kinds_shown(rows: Sequence[RowFigures]) -> str:
    """What the kinds of faults in the table are."""
    return "\n".join(f"{kind}: {KINDS[kind]}" for kind in dict.fromkeys(row.row.kind for row in rows))


def goals(rows: Sequence[RowFigures], records: Mapping[Row, Sequence[Record]]) -> Iterator[str]:
    """Every goal with what was measured for it; goals of which nothing was measured are left out."""
    flat = [row for row in rows if row.row.kind == "flat"]
    exact = [row for row in flat if row.row.deterministic]
    if exact:
        worst = max(exact, key=lambda row: row.own.own / row.bound)
        ratio = worst.own.own / worst.bound
        yield _line(
            ratio <= NEAR_THE_BOUND,
            f"deterministic, size unknown, flat priors: before confirmation at most {NEAR_THE_BOUND:.2f} of the bound",
            f"worst {ratio:.2f} at {fault_name(worst.row)} ({worst.own.own:.1f} trials, bound {worst.bound:.2f})",
        )
        unknown = [_lost(row, known=False) for row in exact]
        yield _line(
            not any(unknown),
            "deterministic: fewer trials to the verdict than every peer that isn't told the size",
            _listed(unknown),
        )
        known = [_lost(row, known=True) for row in exact]
        yield _line(
            not any(known), "deterministic: fewer trials than the peer that is told the size", _listed(known)
        )
    rare = [row for row in flat if not row.row.deterministic and row.equals()]
    if rare:
        ratios = [_against_best(row) for row in rare]
        misses = [said for ratio, said in ratios if ratio > SHARE_OF_PEERS]
        shares = [ratio for ratio, _ in ratios]
        yield _line(
            not misses,
            f"intermittent: at most {SHARE_OF_PEERS:.0%} of the best peer's trials at equal measured accuracy",
            f"from {min(shares):.0%} to {max(shares):.0%}; {_listed(misses)}",
        )
    yield from _priors(rows, records)


def _lost(row: RowFigures, *, known: bool) -> str:
    """The peer with the fewest trials, if culpa needs no fewer."""
    against = [one for one in row.equals() if knows_size(one) is known]
    best = min(against, key=lambda one: one.trials, default=None)
    if best is None or row.own.trials < best.trials:
        return ""
    return f"{fault_name(row.row)}: {row.own.trials:.1f}, {best.method} {best.trials:.1f}"


def _against_best(row: RowFigures) -> tuple[float, str]:
    """culpa's trials as a share of those of the best peer, in words with the share that the bound allows."""
    best = min(row.equals(), key=lambda one: one.trials)
    ratio, least = row.own.trials / best.trials, row.bound / best.trials
    return ratio, f"{fault_name(row.row)}: {ratio:.0%} of {best.method} (the bound alone is {least:.0%})"


def _priors(rows: Sequence[RowFigures], records: Mapping[Row, Sequence[Record]]) -> Iterator[str]:
    for row in rows:
        if row.row.kind not in ("right", "wrong"):
            continue
        mean, half = difference(records[row.row], OWN, FLAT_TWIN)
        measured = f"{mean:+.2f} ± {half:.2f} trials against flat priors at {fault_name(row.row)}"
        if row.row.kind == "right":
            yield _line(mean < 0.0, "right priors save trials", measured)
        else:
            yield _line(
                mean <= WRONG_PRIORS_COST, f"wrong priors cost at most {WRONG_PRIORS_COST:g} trials", measured
            )


def _listed(items: Sequence[str]) -> str:
    present = [item for item in items if item]
    return "; ".join(present) if present else "in every row"


def _line(met: bool, goal: str, measured: str) -> str:
    return f"{'met    ' if met else 'NOT MET'}  {goal}: {measured}"
