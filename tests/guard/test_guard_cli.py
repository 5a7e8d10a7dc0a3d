"""`culpa guard` as a user runs it, on the reference engine with a small random model."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.lab.engine.engines import checkpoint
from tests.loop.runs import FACTORS, FAKE_ENGINE, LAUNCH

from culpa.cli.app import _run
from culpa.host import free_port

GUARD = (sys.executable, "-m", "culpa", "guard")


def launch(*words: str) -> tuple[str, ...]:
    size = ("--max-model-len", "256", "--block-size", "16", "--max-num-batched-tokens", "32")
    return ("--", sys.executable, "-m", "culpa_lab", "serve", str(checkpoint()), *size, *words)


def run(*words: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [*GUARD, "--json", *words], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


@pytest.mark.slow
def test_a_right_engine_is_clean_and_says_what_was_checked(tmp_path: Path) -> None:
    code, found = run("--suite", "quick", "--out", str(tmp_path / "run"), *launch("-pp", "2"))
    assert found["schema"] == "culpa.guard/1"
    assert found["record"]["total"] == 0
    assert [one["stage"] for one in found["record"]["processes"]] == ["PP0", "PP1"]
    assert all(one["steps"] for one in found["record"]["processes"])
    assert found["clean"] or found["untestable"] or found["failure"]
    assert code == (0 if found["clean"] else 1)
    assert list((tmp_path / "run" / "guard").glob("guard-*.jsonl"))


@pytest.mark.slow
def test_a_violation_is_explained_and_ends_with_exit_code_1() -> None:
    code, found = run("--suite", "quick", *launch("-pp", "2", "--fault", "incident"))
    assert code == 1
    assert found["verdict"].startswith("VIOLATED")
    (first,) = found["first"]
    assert (first["kind"], first["stage"]) == ("captured_pointer_stale", "PP1")
    assert found["explanations"][0]["supports"][0]["id"] == "H4"


@pytest.mark.slow
def test_planted_faults_are_caught_and_told_as_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from culpa.guard import proving

    few = [
        run for run in proving.plant_runs("culpa-lab") if run.plants in (("handover",), ("shared_buffer",))
    ]
    monkeypatch.setattr("culpa.guarded.plant_runs", lambda _engine: tuple(few))
    code = _run(["guard", "--self-test", "--probe-tokens", "40", *launch("-pp", "2")])
    printed = capsys.readouterr().out
    assert "2 of 2 planted faults caught" in printed
    assert "handover_mismatch" in printed
    assert "metadata_shared_across_groups" in printed
    assert code in (0, 1)  # a random model may answer nothing that can be judged


@pytest.mark.slow
def test_serving_lasts_until_it_is_interrupted_and_tells_what_the_traffic_did(tmp_path: Path) -> None:
    port = free_port()
    command = [*GUARD, "--serve", "--json", *launch("--port", str(port), "--fault", "nan")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as guard:
        assert guard.stderr is not None
        assert any(f"serving at http://127.0.0.1:{port}" in line for line in guard.stderr)
        body = {"prompt": [1, 2, 3], "max_tokens": 4, "temperature": 0}
        httpx2.post(f"http://127.0.0.1:{port}/v1/completions", json=body, timeout=60)
        until = time.monotonic() + 60
        for line in guard.stderr:
            if "state_not_finite" in line or time.monotonic() > until:
                break
        guard.send_signal(signal.SIGINT)
        out, _ = guard.communicate(timeout=60)
    assert guard.returncode == 1
    assert json.loads(out)["record"]["kinds"][0][0] == "state_not_finite"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "guarded"),
    [((), 1), (("--guard",), 2), (("--no-guard",), 0)],
    ids=["by itself", "all", "none"],
)
def test_an_isolated_failure_is_located_unless_the_guard_is_left_out(
    option: tuple[str, ...], guarded: int, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    words = ("--only", "execution", "--probe", "cold", "--probe-tokens", "150", "--no-thresholds", *option)
    command = [sys.executable, "-m", "culpa", "isolate", "-q", *words, "--out", str(folder)]
    done = subprocess.run(
        [*command, *launch("-pp", "2", "--fault", "incident")],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
    (finding,) = found["findings"]
    with_guard = [trial for trial in found["trials"] if (folder / trial["folder"] / "guard").exists()]
    assert finding["level"] == ("located" if guarded else "isolated")
    assert (len(with_guard) >= guarded) if guarded else not with_guard
    assert [trial["purpose"] for trial in found["trials"]].count("guard") == (0 if option else 1)
    if guarded:
        place = finding["located"]["violation"]
        assert (place["kind"], place["stage"]) == ("captured_pointer_stale", "PP1")
        assert place["layer"] == "model.layers.4.linear_attn"
        assert "Seen from inside the engine" in (folder / "report.md").read_text(encoding="utf-8")


def error(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert _run(["guard", *words]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    return told


def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    llama = tmp_path / "llama-server"
    llama.write_text("#!/bin/sh\n")
    llama.chmod(0o755)
    assert "llama.cpp has no guard" in error(capsys, "--", str(llama), "-m", "x.gguf")
    assert "give, after --, the command" in error(capsys)
    assert "there are log, raise, or sample:N" in error(capsys, "--mode", "loud", *launch())
    assert "exclude each other" in error(capsys, "--serve", "--self-test")
    assert "there are quick, standard" in error(capsys, "--suite", "all", *launch())


def test_a_folder_that_holds_a_run_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "guard-1.jsonl").touch()
    assert "already holds what a guard wrote" in error(capsys, "--out", str(tmp_path), *launch())


def test_isolate_with_the_guard_refuses_an_engine_that_has_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--factors", str(FACTORS), "--", sys.executable, str(FAKE_ENGINE), *LAUNCH.split())
    assert _run(["isolate", "--guard", "--out", str(tmp_path / "run"), *words]) == 2
    assert "--guard: fake has no guard" in capsys.readouterr().err
