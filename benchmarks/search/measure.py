"""All methods on the same faults in the same run, one record a fault, written as they come.

A record is one JSON line: the row that the fault belongs to, its seed, and what each method came to. A run that was
interrupted goes on where it stopped, since records whose digest is the present one are read instead of run again. The
digest is that of the sources that decide the figures: culpa's search and model, and the benchmark itself.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from benchmarks.peers import PEERS, Suspects
from benchmarks.peers.repeats import ERRORS, ONCE, Repeats, repeats_for
from benchmarks.search.others import run_peer
from benchmarks.search.own import Search, run_culpa
from benchmarks.search.simulate import Case, Kind, make_case
from benchmarks.search.zoo import zoo_cases

OWN = "culpa"
FLAT_TWIN = "culpa, flat priors"  # the same fault with equal priors: what priors save, and what they cost
_ROOT = Path(__file__).parent.parent.parent
_SOURCES = ("src/culpa/search", "src/culpa/model", "benchmarks/peers", "benchmarks/search")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: a kind of fault, its size, its rates."""

    kind: Kind
    n: int
    k: int
    rate: float = 1.0
    false_rate: float = 0.0

    @property
    def deterministic(self) -> bool:
        return self.rate == 1.0 and self.false_rate == 0.0

    @property
    def budget(self) -> int:
        """Trials after which a peer gives up: what culpa allows itself, and ten times that where faults are rare."""
        return 400 if self.deterministic else 4000

    def case(self, seed: int) -> Case:
        if self.kind == "zoo":
            cases = zoo_cases()
            return replace(cases[seed % len(cases)], seed=seed)
        return make_case(self.kind, self.n, self.k, rate=self.rate, false_rate=self.false_rate, seed=seed)


@dataclass(frozen=True, slots=True)
class Record:
    """What the methods came to on one fault. `bound` is in trials, `methods` maps a method (and its repeats) to its
    figures."""

    row: Row
    seed: int
    bound: float
    methods: dict[str, dict[str, Any]]
    digest: str


@lru_cache
def digest() -> str:
    """A short digest of the sources that decide the figures."""
    total = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".toml"):
                total.update(path.read_bytes())
    return total.hexdigest()[:12]


def measured(
    rows: Iterable[Row],
    runs: int,
    journal: Path | None = None,
    *,
    peers: bool = True,
    confidence: float = 0.95,
) -> Iterator[Record]:
    """The records of all rows, `runs` faults each (of the zoo, each fault once); those that the journal has already
    are not run again."""
    known = {(record.row, record.seed): record for record in _read(journal)} if journal else {}
    out: TextIO | None = journal.open("a", encoding="utf-8") if journal else None
    try:
        for row in rows:
            for seed in range(len(zoo_cases()) if row.kind == "zoo" else runs):
                record = known.get((row, seed))
                if record is None:
                    record = measure(row, seed, peers=peers, confidence=confidence)
                    if out is not None:
                        out.write(json.dumps(asdict(record)) + "\n")
                        out.flush()
                yield record
    finally:
        if out is not None:
            out.close()


def measure(row: Row, seed: int, *, peers: bool = True, confidence: float = 0.95) -> Record:
    """All methods on one fault."""
    case = row.case(seed)
    methods = {OWN: _of_search(case, run_culpa(case, confidence=confidence))}
    if row.kind in ("right", "wrong"):
        flat = case.with_flat_priors()
        methods[FLAT_TWIN] = _of_search(flat, run_culpa(flat, confidence=confidence))
    for name in PEERS if peers else ():
        for label, repeats in settings(row):
            run = run_peer(case, name, repeats=repeats, budget=row.budget)
            methods[f"{name}{label}"] = {
                **judged(case, run.found),
                "own": run.own,
                "trials": run.to_verdict,
                "cost": round(run.verdict_cost, 3),
                "in_all": run.in_all,
                "spent": run.spent,
            }
    return Record(row, seed, round(case.bound(), 4), methods, digest())


def settings(row: Row) -> list[tuple[str, Repeats]]:
    """The repeats that the peers are tried with: once if the fault is deterministic, else from careless to
    careful. What is too much for the budget anyway is left out."""
    if row.deterministic:
        return [("", ONCE)]
    chosen = [(error, repeats_for(row.rate, row.false_rate, error)) for error in ERRORS]
    kept = [(error, repeats) for error, repeats in chosen if repeats.runs * row.k < row.budget]
    return [(f" @{error:g}", repeats) for error, repeats in kept]


def judged(case: Case, found: Iterable[Suspects]) -> dict[str, Any]:
    """How right a method is. `exact`: the first set that it found is a minimal failing set; `all`: it found all of
    them and nothing else; `false`: it accused a factor that belongs to none; `none`: it accused nobody."""
    sets = list(found)
    members = frozenset().union(*case.causes)
    return {
        "exact": bool(sets) and sets[0] in case.causes,
        "all": set(sets) == set(case.causes),
        "false": any(not some <= members for some in sets),
        "none": not sets,
    }


def _of_search(case: Case, search: Search) -> dict[str, Any]:
    return {
        **judged(case, (some for some, _ in search.found)),
        "own": search.settled,
        "trials": search.to_verdict,
        "cost": round(search.verdict_cost, 3),
        "in_all": search.in_all,
        "confirming": search.confirming,
        "claims": [[sorted(some), round(chance, 5), some in case.causes] for some, chance in search.found],
        "masking": case.masking <= search.masking,
    }


def _read(journal: Path) -> Iterator[Record]:
    """The records of a journal that the present sources wrote; a torn last line is passed over."""
    if not journal.exists():
        return
    for line in journal.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        if entry["digest"] == digest():
            yield Record(**{**entry, "row": Row(**entry["row"])})
