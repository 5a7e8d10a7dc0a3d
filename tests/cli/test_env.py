"""`culpa env` on the command line."""

import json
from pathlib import Path

import pytest

from culpa.cli.app import _run

CASES = Path(__file__).parent.parent / "triage" / "cases"
LOG = str(CASES / "01-vllm-pp2-gdn-prefix-ima-interleaved.log")
BAD_LOG = str(CASES / "22-llamacpp-router-ima-crlf.log")


def test_a_log_in_a_known_bad_range_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["env", "--from-log", BAD_LOG]) == 1
    out = capsys.readouterr().out
    assert "llama.cpp 10525" in out
    assert "https://github.com/ggml-org/llama.cpp/issues/27430" in out


def test_a_log_without_anything_known_ends_well_and_says_what_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _run(["env", "--from-log", LOG]) == 0
    out = capsys.readouterr().out
    assert "not in this log" in out
    assert "mamba_cache_mode" in out


def test_json_is_compared_with_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = []
    for name, log in (("a", LOG), ("b", BAD_LOG)):
        _run(["env", "--json", "--from-log", log])
        path = tmp_path / f"{name}.json"
        path.write_text(capsys.readouterr().out)
        paths.append(str(path))
    assert _run(["env", "--compare", *paths]) == 1
    out = capsys.readouterr().out
    assert out.index("engine.name") < out.index("setting.max_model_len")
    assert _run(["env", "--compare", paths[0], paths[0]]) == 0


def test_markdown_folds_away_and_holds_hostile_text_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "engine.log"
    path.write_text("OS: Ubuntu ```</details><script>alert(1)</script>\nvLLM API server version 0.32.0\n")
    assert _run(["env", "--markdown", "--from-log", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("<details>\n<summary>vllm 0.32.0")
    fence = out.split("text\n")[0].splitlines()[-1]
    assert fence == "````"  # longer than what the text holds
    assert out.index("<script>") < out.rindex(fence)


def test_a_launch_is_read_and_checked_without_being_started(capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["env", "--json", "--", "culpa-lab", "serve", "-pp", "3", "--api-key", "sesame"]) == 0
    document = json.loads(capsys.readouterr().out)
    facts = {fact["key"]: fact["value"] for fact in document["facts"]}
    assert document["schema"] == "culpa.environment/1"
    assert facts["setting.pp"] == "3"
    assert "sesame" not in json.dumps(document)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from-log", "no.log"], "no.log"),
        (["--compare", "no.json", "no.json"], "does not exist"),
        (["--python", "/no/such/python"], "no such file"),
        (["--python", "/bin/true"], "is no Python that answers"),
        (["--json", "--markdown"], "exclude each other"),
        (["--compare", "a", "b", "--image", "x"], "nothing beside them"),
        (["--from-log", LOG, "--image", "x"], "reads the log alone"),
        (["--", "docker", "run", "x"], "docker starts the engine out of reach"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["env", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
