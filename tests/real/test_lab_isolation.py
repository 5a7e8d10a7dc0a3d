"""The reference engine's faults, isolated by trials of the real engine: what `culpa demo` shows must be true."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.engine


def demo(folder: Path, *words: str) -> tuple[int, str, dict[str, object]]:
    """Exit code, what was printed, and the stored experiment."""
    command = [sys.executable, "-m", "culpa", "demo", *words, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    document = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    return done.returncode, done.stdout, document


def test_the_incident_comes_out_of_the_demo_by_itself(tmp_path: Path) -> None:
    code, printed, found = demo(tmp_path / "run")
    assert code == 0, printed
    members = {member["name"] for one in found["findings"] for member in one["factors"]}  # type: ignore[attr-defined]
    assert members == {"execution", "pipeline_parallel_size", "prompt_tokens"}
    assert found["signature"]["symptom"] == "cuda_illegal_access"  # type: ignore[index]
    assert found["signature"]["rank"] == "PP1"  # type: ignore[index]
    arms = {arm["name"]: arm for arm in found["arms"]}  # type: ignore[attr-defined]
    assert "gibberish" in arms["prefix off"]["long_prompts"]
    assert arms["prefix off"]["outcome"].startswith("fails otherwise")
    assert arms["eager"]["outcome"] == "pass"
    assert arms["aligned"]["outcome"] == "fail (PP1 first)"
    assert "no workaround" in printed
    finding = found["findings"][0]  # type: ignore[index]
    assert finding["level"] == "located"
    place = finding["located"]["violation"]
    assert (place["kind"], place["stage"]) == ("captured_pointer_stale", "PP1")
    assert "that is where it begins" in " ".join(printed.split())  # lines are as long as the terminal is wide
    assert "0000:41:00" in printed
    assert "asynchronous" in printed


@pytest.mark.parametrize("fault", ["nan", "shared-group-metadata", "chunk-ends-on-block"])
def test_other_faults_are_found_as_they_are(tmp_path: Path, fault: str) -> None:
    code, printed, _ = demo(tmp_path / "run", fault)
    assert code == 0, printed
    assert "that is where it begins" in " ".join(printed.split())  # lines are as long as the terminal is wide


def test_every_fault_that_is_planted_in_the_engine_is_caught(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "culpa",
        "guard",
        "--self-test",
        "--json",
        "--out",
        str(tmp_path / "run"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    found = json.loads(done.stdout)
    assert [proof["fault"] for proof in found["proofs"] if not proof["caught"]] == []
    assert found["passed"]
    assert done.returncode == 0
