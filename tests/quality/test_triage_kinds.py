"""How well kinds of failure beyond the recorded cases are read: logs made by hand, their truth by the same conventions.

What is named wrongly is counted apart from what is missing.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from culpa.model import Incident
from culpa.triage import LogDocument

TRIAGE = Path(__file__).parent.parent / "triage"
KINDS = sorted((TRIAGE / "kinds").glob("*.log"))
FIELDS = ("root", "symptom", "rank", "gpu", "xid", "consequences", "async")
Truth = dict[str, Any]


def truth_of(path: Path) -> Truth:
    return dict(json.loads((path.parent / f"{path.stem}.expected.json").read_text("utf-8")))


def judged(path: Path) -> Incident:
    document = LogDocument()
    document.feed(path.read_bytes())
    document.end()
    incident = document.incident()
    assert incident is not None
    return incident


def named(incident: Incident) -> dict[str, Any]:
    """What the incident names: None where it says that it does not know."""
    diagnosis = incident.diagnosis
    return {
        "rank": dict(incident.first_failed_rank) if incident.first_failed_rank else None,
        "gpu": diagnosis.gpu.pci_bus if diagnosis is not None and diagnosis.gpu is not None else None,
        "xid": sorted({xid.code for xid in diagnosis.own_xids}) if diagnosis is not None else [],
    }


def scored(incident: Incident, truth: Truth) -> dict[str, bool]:
    """Which fields are right."""
    harmless = {*truth["red_herring_lines"], *truth["stale_lines"]}
    marked = {*incident.cascade_lines, *incident.root_alternates}
    root = incident.root.line if incident.root is not None else None
    found = named(incident)
    return {
        "root": root in {truth["root_event_line"], *truth["root_alternate_lines"]},
        "symptom": incident.symptom == truth["symptom_class"],
        "rank": found["rank"] == truth["first_failed_rank"],
        "gpu": found["gpu"] == truth["gpu_pci_bus"],
        "xid": found["xid"] == sorted(set(truth["xid"])),
        "consequences": set(truth["is_consequence_lines"]) <= set(incident.cascade_lines)
        and not marked & harmless,
        "async": incident.async_stack == truth["async_stack"],
    }


def counts(pairs: Iterator[tuple[object, object]]) -> Counter[str]:
    """How often a thing was named rightly, wrongly, or not at all though the log supports it."""
    counted: Counter[str] = Counter()
    for found, true in pairs:
        if found is not None:
            counted["right" if found == true else "wrong"] += 1
        elif true is not None:
            counted["missing"] += 1
    return counted


def ratio(part: int, whole: int) -> str:
    return f"{part / whole:.2f}" if whole else "-"


def test_every_scored_field_is_right_and_nothing_is_named_wrongly() -> None:
    read = {path.stem: (judged(path), truth_of(path)) for path in KINDS}
    assert len(read) >= 18
    scores = {name: scored(incident, truth) for name, (incident, truth) in read.items()}
    print()
    print(f"{'case':46s}" + "".join(f"{field:>14s}" for field in FIELDS))
    for name, score in scores.items():
        print(f"{name:46s}" + "".join(f"{'right' if score[field] else 'WRONG':>14s}" for field in FIELDS))
    print(
        f"{'':46s}"
        + "".join(f"{sum(one[f] for one in scores.values()):>11d}/{len(scores):<2d}" for f in FIELDS)
    )
    wrong = 0
    for field, key in (("rank", "first_failed_rank"), ("gpu", "gpu_pci_bus")):
        counted = counts((named(incident)[field], truth[key]) for incident, truth in read.values())
        wrong += counted["wrong"]
        print(
            f"{field}: {counted['right']} named rightly, {counted['wrong']} wrongly, {counted['missing']} missing;"
            f" precision {ratio(counted['right'], counted['right'] + counted['wrong'])},"
            f" recall {ratio(counted['right'], counted['right'] + counted['missing'])}"
        )
    assert wrong == 0
    assert {
        name: [f for f, right in score.items() if not right]
        for name, score in scores.items()
        if not all(score.values())
    } == {}
