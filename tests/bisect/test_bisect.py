"""`culpa bisect` from the command line to its result, on an engine whose versions are known."""

import json
from pathlib import Path

import pytest
from tests.bisect.runs import Bisected, bisect, run
from tests.versions.wheels import make_wheel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def regression(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bisected, Path]:
    """Versions 1.1 to 1.12: the fault is there since 1.8; 1.6 calls itself otherwise, 1.7 does not start."""
    folder = tmp_path_factory.mktemp("regression")
    for number in range(1, 13):
        make_wheel(
            folder / "wheels",
            f"1.{number}",
            fault="stream==off && kv==fp8" if number >= 8 else "",
            said="9.9" if number == 6 else None,
            broken=number == 7,
            rows=16 if number >= 8 else 8,
        )
    notes = folder / "notes.md"
    notes.write_text("# tinyengine 1.9\n- later\n# 1.8\n- a faster kernel\n# 1.5\n- earlier\n")
    done = bisect(folder, "--good", "1.1", "--bad", "1.12", "--notes", str(notes), flags=["--kv", "fp8"])
    return done, folder


def test_change_is_found_between_versions_that_cannot_be_tried(
    regression: tuple[Bisected, Path],
) -> None:
    done, _ = regression
    assert done.code == 1, done.err
    assert done.result["outcome"] == "interval"
    assert done.result["interval"] == ["1.6", "1.7", "1.8"]
    assert (done.result["last_good"], done.result["first_bad"]) == ("1.5", "1.8")
    assert done.result["probability"] >= 0.95


def test_version_that_is_not_what_it_is_called_is_untestable(regression: tuple[Bisected, Path]) -> None:
    rows = {row["label"]: row for row in regression[0].result["versions"]}
    assert rows["1.6"]["untestable"] >= 1
    assert "the engine says 9.9" in rows["1.6"]["note"]
    assert rows["1.7"]["other"] >= 1
    assert rows["1.6"]["passed"] == rows["1.7"]["failed"] == 0


def test_settings_of_the_launch_are_recognised_as_the_other_half(
    regression: tuple[Bisected, Path],
) -> None:
    result = regression[0].result
    assert result["settings"] == "settings_too"
    assert set(result["isolated"]) == {"engine_version=1.12", "kv=fp8"}
    assert result["isolated_probability"] >= 0.95


def test_isolation_goes_on_from_what_the_bisection_has_seen(regression: tuple[Bisected, Path]) -> None:
    _, folder = regression
    inner = json.loads((folder / "run" / "isolate" / "experiment.json").read_text())
    handed_on = [trial for trial in inner["trials"] if trial["folder"].startswith("../")]
    assert {trial["levels"]["engine_version"] for trial in handed_on} == {"1.5", "1.12"}
    assert len(inner["trials"]) - len(handed_on) <= 8


def test_report_quotes_what_came_in_and_what_is_printed_otherwise(
    regression: tuple[Bisected, Path],
) -> None:
    done, folder = regression
    assert done.result["changed"]["titles"] == ["1.8", "a faster kernel"]
    settings = {one["name"]: (one["before"], one["after"]) for one in done.result["changed"]["settings"]}
    assert settings["cache_rows"] == ("8", "16")
    report = (folder / "run" / "report.md").read_text()
    assert "a faster kernel" in report
    assert "cache_rows" in report


def test_resumed_run_that_has_ended_runs_no_further_trial(regression: tuple[Bisected, Path]) -> None:
    done, folder = regression
    again = bisect(folder, "--resume", str(folder / "run"))
    assert again.code == 1, again.err
    assert [trial["id"] for trial in again.result["trials"]] == [
        trial["id"] for trial in done.result["trials"]
    ]
    assert again.result["isolated"] == done.result["isolated"]


def test_fault_that_went_away_is_looked_for_the_other_way_round(tmp_path: Path) -> None:
    for number in range(1, 7):
        make_wheel(tmp_path / "wheels", f"1.{number}", fault="stream==off" if number < 4 else "")
    done = bisect(tmp_path, "--good", "1.6", "--bad", "1.1", "--no-isolate")
    assert done.code == 1, done.err
    assert (done.result["last_good"], done.result["first_bad"]) == ("1.4", "1.3")
    assert done.result["turned"]
    assert "no more from 1.4 on" in done.out


def test_bad_end_that_does_not_fail_is_a_clean_pass(tmp_path: Path) -> None:
    for number in range(1, 4):
        make_wheel(tmp_path / "wheels", f"1.{number}")
    done = bisect(tmp_path, "--good", "1.1", "--bad", "1.3")
    assert done.code == 0, done.err
    assert done.result["outcome"] == "no_failure"


def test_run_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    for number in range(1, 9):
        make_wheel(tmp_path / "wheels", f"1.{number}", fault="stream==off" if number >= 6 else "")
    cut = bisect(tmp_path, "--good", "1.1", "--bad", "1.8", "--no-isolate", "--max-trials", "3")
    assert cut.result["outcome"] == "inconclusive"
    assert cut.result["limits_reached"]
    done = bisect(tmp_path, "--resume", str(tmp_path / "run"), "--max-trials", "50")
    assert done.code == 1, done.err
    assert done.result["first_bad"] == "1.6"
    assert [trial["id"] for trial in done.result["trials"]][:3] == [1, 2, 3]


def test_version_is_a_factor_of_isolate(tmp_path: Path) -> None:
    for number in (1, 2):
        make_wheel(tmp_path / "wheels", f"1.{number}", fault="kv==fp8 && stream==off" if number == 2 else "")
    options = ["--factor", "engine_version=1.2,1.1", "--wheels", str(tmp_path / "wheels"), "--overlay"]
    done = run(tmp_path, "isolate", options, ["python", "-m", "tinyengine", "--kv", "fp8", "--seqs", "8"])
    assert done.code == 1, done.err
    members = {one["name"] for one in done.result["findings"][0]["factors"]}
    assert members == {"engine_version", "kv"}
