"""Bad input of `culpa bisect` is one line and exit code 2, told before anything is launched."""

import sys
from pathlib import Path

import pytest
from tests.bisect.runs import factors
from tests.versions.wheels import make_wheel

from culpa.cli.app import _run

LAUNCH = ("--", sys.executable, "-m", "tinyengine")
LAB = ("--", sys.executable, "-m", "culpa_lab", "serve")
ENDS = ("--good", "1.1", "--bad", "1.2")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--good", "1.1", "--bad", "1.7", *LAUNCH], "--bad 1.7: no such version in --wheels"),
        (["--good", "1.1", *LAUNCH], "--bad is missing"),
        (["--good", "1.1", "--bad", "1.1", *LAUNCH], "nothing between them"),
        ([*ENDS, "--overlay", "--environment", "own", *LAUNCH], "exclude each other"),
        ([*ENDS, "--environment", "none", *LAUNCH], "there are auto, overlay, own"),
        ([*ENDS, "--cache-limit", "many", *LAUNCH], "--cache-limit many"),
        ([*ENDS, "--notes", "nowhere.md", *LAUNCH], "--notes nowhere.md: no such file"),
        ([*ENDS, "--checkout", "nowhere", *LAUNCH], "is no git repository"),
        ([*ENDS, "--only", "nonsense", "--overlay", *LAUNCH], "--only nonsense"),
        ([*ENDS], "no command given"),
    ],
)
def test_bad_input_is_told(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CULPA_CACHE", str(tmp_path / "cache"))
    for version in ("1.1", "1.2"):
        make_wheel(tmp_path / "wheels", version)
    common = ["--wheels", "wheels", "--factors", factors(tmp_path), "--quiet"]
    assert _run(["bisect", *common, *words]) == 2
    said = capfd.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not (tmp_path / "culpa-runs").exists()


def test_folder_of_another_run_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "journal.jsonl").write_text('{"kind":"run","schema":"culpa.journal/1"}\n')
    assert _run(["bisect", "--resume", str(tmp_path)]) == 2
    assert "holds no bisection" in capfd.readouterr().err


def test_bisection_is_no_run_of_isolate(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    header = '{"kind":"run","schema":"culpa.journal/1","verb":"bisect"}'
    (tmp_path / "journal.jsonl").write_text(f"{header}\n")
    assert _run(["isolate", "--resume", str(tmp_path)]) == 2
    assert "go on with it by culpa bisect --resume" in capfd.readouterr().err


def test_options_of_a_run_stay_when_it_is_resumed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(["bisect", "--resume", str(tmp_path), "--good", "1"]) == 2
    assert "leave out --good" in capfd.readouterr().err


def test_container_launches_are_planned_and_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tags = tmp_path / "tags"
    tags.write_text("v1\nv2\nv3\n")
    words = ["bisect", "--good", "v1", "--bad", "v3", "--tags", str(tags)]
    launch = ["--", "docker", "run", "image:v3", "--model", "m"]
    assert _run([*words, "--dry-run", *launch]) == 0
    assert capfd.readouterr().out.splitlines()[1] == "v2: docker run image:v2 --model m"
    monkeypatch.setenv("PATH", "/nowhere")
    assert _run([*words, *launch]) == 2
    assert "there is no docker on this machine" in capfd.readouterr().err


def test_plan_says_which_versions_are_looked_at(capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        "bisect",
        "--good",
        "1",
        "--bad",
        "64",
        "--versions",
        "1..64",
        "--dry-run",
        *LAB,
        "--build",
        "{version}",
    ]
    assert _run(words) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert "64 versions of --versions, 1 to 64: the first that fails is looked for" in said


def test_version_options_of_isolate_need_the_factor(capfd: pytest.CaptureFixture[str]) -> None:
    assert _run(["isolate", "--package", "vllm", *LAB]) == 2
    assert "goes with --factor" in capfd.readouterr().err
    assert _run(["isolate", "--factor", "eager=on,off", *LAB]) == 2
    assert "only engine_version is given so" in capfd.readouterr().err
