"""How good triage is on the recorded cases, field by field; wrong names are counted apart from missing ones."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from culpa.logs import read_logs
from culpa.report.incident_json import incident_document
from culpa.report.incident_schema import IncidentDocument
from culpa.triage.known_issues import Evidence, matching

CASES = Path(__file__).parent.parent / "triage" / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.log"))
FIELDS = (
    "engine", "engine_version", "symptom", "root_event", "root_alternates", "first_failed_rank", "gpu", "xids",
    "stale", "cascade_lines", "async_stack",
)  # fmt: skip


def truth_of(name: str) -> dict[str, Any]:
    return dict(json.loads((CASES / f"{name}.expected.json").read_text("utf-8")))


def document_of(name: str) -> IncidentDocument:
    return incident_document(read_logs([CASES / f"{name}.log"]))


def right_fields(found: IncidentDocument, truth: dict[str, Any]) -> dict[str, bool]:
    """Which fields of the document are right, by the conventions of the cases."""
    accepted = {truth["root_event_line"], *truth["root_alternate_lines"]}
    harmless = {*truth["red_herring_lines"], *truth["stale_lines"]}
    return {
        "engine": found.engine == truth["engine"],
        "engine_version": found.engine_version == truth["engine_version"],
        "symptom": found.symptom == truth["symptom_class"],
        "root_event": found.root_event is not None and found.root_event.line in accepted,
        "root_alternates": not set(found.root_alternates) & harmless,
        "first_failed_rank": found.first_failed_rank == truth["first_failed_rank"],
        "gpu": (found.gpu.pci_bus if found.gpu else None) == truth["gpu_pci_bus"],
        "xids": sorted({xid.code for xid in found.xids if not xid.stale}) == sorted(truth["xid"]),
        "stale": sorted({xid.code for xid in found.xids if xid.stale}) == sorted(truth.get("xid_stale", [])),
        "cascade_lines": set(truth["is_consequence_lines"]) <= set(found.cascade_lines)
        and not set(found.cascade_lines) & harmless,
        "async_stack": found.async_stack == truth["async_stack"],
    }


@dataclass
class Naming:
    """How often a name was given and right, given and wrong, and not given though the truth has one."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    wrong_names: list[str] = field(default_factory=list)

    def count(self, given: Iterable[str], true: Iterable[str]) -> None:
        given, true = set(given), set(true)
        self.right += len(given & true)
        self.wrong += len(given - true)
        self.missed += len(true - given)
        self.wrong_names += sorted(given - true)

    @property
    def precision(self) -> float:
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    def row(self, name: str) -> str:
        return f"{name:14} {self.right:5} {self.wrong:5} {self.missed:6} {self.precision:9.2f} {self.recall:6.2f}"


def test_every_scored_field_of_every_case_is_right() -> None:
    table = {name: right_fields(document_of(name), truth_of(name)) for name in NAMES}
    print()
    for index, key in enumerate(FIELDS):
        print(f"{'':44}{'| ' * index}{key}")
    for name, fields in table.items():
        print(f"{name[:42]:44}{' '.join('.' if fields[key] else 'X' for key in FIELDS)}")
    wrong = [(name, key) for name, fields in table.items() for key in FIELDS if not fields[key]]
    assert not wrong


def test_no_name_is_wrong_and_most_known_issues_are_found() -> None:
    ranks, gpus, issues = Naming(), Naming(), Naming()
    for name in NAMES:
        found, truth = document_of(name), truth_of(name)
        rank, gpu = found.first_failed_rank, found.gpu
        ranks.count(
            [str(rank)] if rank else [],
            [str(truth["first_failed_rank"])] if truth["first_failed_rank"] else [],
        )
        gpus.count([gpu.pci_bus] if gpu else [], [truth["gpu_pci_bus"]] if truth["gpu_pci_bus"] else [])
        issues.count([issue.url for issue in found.known_issues if issue.match], truth["known_issue_urls"])
    print(f"\n{'':14} right wrong missed precision recall")
    for label, naming in (("rank", ranks), ("GPU", gpus), ("known issue", issues)):
        print(naming.row(label))
    assert not [*ranks.wrong_names, *gpus.wrong_names, *issues.wrong_names]
    assert ranks.recall == gpus.recall == 1.0
    # Some reports are named for the shape of their lines only: nothing in the log says that they are reachable.
    assert issues.recall >= 0.6


@pytest.mark.parametrize("name", NAMES)
def test_a_known_issue_does_not_match_once_the_failure_is_of_another_engine(name: str) -> None:
    """The same lines under another engine's name may only match reports that are of no engine."""
    text = (CASES / f"{name}.log").read_bytes().decode("utf-8", "replace")
    truth = truth_of(name)
    evidence = Evidence(
        engine="another",
        version=None,
        symptom=truth["symptom_class"],
        lines=text.split("\n"),
        configuration={},
        xids=frozenset(truth["xid"]),
    )
    matched = [issue.id for issue in matching(evidence) if issue.match]
    assert not [one for one in matched if one.startswith(("vllm-", "sglang-", "llama.cpp-", "tensorrt-llm-"))]
