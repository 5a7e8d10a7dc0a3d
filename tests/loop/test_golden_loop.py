"""Golden transcripts of the whole loop on the fake engine: what was tried, how it ended, what was concluded.

`CULPA_UPDATE_GOLDEN=1` rewrites the bodies. The header of each file gives the fault as a boolean expression.
"""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.loop.runs import HERE, isolate

GOLDEN = sorted((HERE / "golden").glob("*.txt"))


def header_of(text: str) -> dict[str, str]:
    head = text.partition("\n---\n")[0]
    return dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)


def transcript(code: int, result: dict[str, Any]) -> str:
    lines = [f"exit code {code}, {result['outcome']}"]
    signature = result["signature"]
    lines.append(f"signature: {signature['symptom']}: {signature['event']}" if signature else "no signature")
    for trial in result["trials"]:
        words = [f"{trial['id']:2d}", trial["purpose"], f"[{trial['arm']}]", trial["outcome"]]
        if trial["outcome"] in ("other", "untestable"):
            what = trial["signature"]["symptom"] if trial["signature"] else trial["reason"]
            words.append(f"({what})")
        lines.append(" ".join(words))
    for finding in result["findings"]:
        members = " + ".join(f"{m['name']}={m['suspect']} (safe {m['safe']})" for m in finding["factors"])
        lines.append(f"found: {members}, {finding['level']}")
        sufficient = finding["sufficient"]
        lines.append(f"  sufficient: {sufficient['failed']} of {sufficient['trials']}")
        lines += [f"  without {n}: {c['failed']} of {c['trials']}" for n, c in finding["necessary"].items()]
        lines += [f"  {condition}" for condition in finding["conditions"]]
    lines += [f"{factor['name']}: {factor['status']}" for factor in result["factors"]]
    lines += [
        f"other failure: {other['signature']['symptom']} at {other['levels']}"
        for other in result["other_failures"]
    ]
    return re.sub(r"\b\d+(?:\.\d+)? s\b", "N s", "\n".join(lines)) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_loop_follows_its_transcript(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    header = header_of(text)
    fake = {
        f"FAKE_{name.upper()}": value
        for name, value in header.items()
        if name in ("fault", "symptom", "fault2", "symptom2", "rate", "ignores")
    }
    luck = {"FAKE_LUCK": str(tmp_path / "luck")} if "rate" in header else {}
    run = isolate(tmp_path / "run", *header.get("options", "").split(), **fake, **luck)
    assert run.result is not None, run.err
    body = transcript(run.code, run.result)
    if os.environ.get("CULPA_UPDATE_GOLDEN"):
        path.write_text(text.partition("\n---\n")[0] + "\n---\n" + body, encoding="utf-8")
    else:
        assert body == text.partition("\n---\n")[2]
