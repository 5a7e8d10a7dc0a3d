"""Any engine by a factors file: its port, its host, and which adapter a launch gets."""

import sys
from pathlib import Path

import pytest
from tests.engines.adapters import NO_GPU, adapter, launch

from culpa.engines import BadLaunch, find_adapter
from culpa.model import Launch

FACTOR = '[[factor]]\nname = "mode"\nflag = "--mode"\nsafe = ["a"]\n'


def test_the_placeholder_is_replaced_everywhere() -> None:
    engine = adapter(FACTOR)
    given = launch("python s.py --bind 0.0.0.0:{port}", LISTEN="x:{port}", GONE=None)
    prepared = engine.prepare(given, 9, Path())
    assert prepared.launch == launch("python s.py --bind 0.0.0.0:9", LISTEN="x:9", GONE=None)
    assert (prepared.base_url, prepared.health_path) == ("http://127.0.0.1:9", "/health")
    assert engine.wanted_port(given) is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("python s.py --port 80 -x", "python s.py --port 9 -x"),
        ("python s.py --port=80", "python s.py --port=9"),
        ("python s.py --port 80 --port 81", "python s.py --port 9 --port 9"),
    ],
)
def test_a_port_flag_is_used_where_it_stands(line: str, expected: str) -> None:
    engine = adapter(FACTOR)
    assert engine.prepare(launch(line), 9, Path()).launch == launch(expected)


def test_a_fixed_port_is_wanted() -> None:
    engine = adapter(FACTOR)
    assert engine.wanted_port(launch("python s.py --port 80")) == 80
    assert engine.wanted_port(launch("python s.py --port auto")) is None


def test_the_file_says_where_port_host_and_instruments_go() -> None:
    engine = adapter(
        '[engine]\nname = "e"\nhealth = "/ready"\nport = { env = "PORT" }\nhost = { flag = "--host" }\n'
        'instrumentation = ["--metrics"]\n' + FACTOR
    )
    prepared = engine.prepare(launch("python s.py", PORT="80"), 9, Path())
    assert prepared.launch == launch("python s.py --host 127.0.0.1 --metrics", PORT="9")
    assert prepared.health_path == "/ready"
    assert engine.prepare(prepared.launch, 9, Path()).launch == prepared.launch
    assert engine.wanted_port(launch("python s.py", PORT="80")) == 80


def test_a_command_without_a_place_for_the_port_is_refused() -> None:
    with pytest.raises(BadLaunch, match=r"put \{port\} into the command"):
        adapter(FACTOR).read(Launch(("sh", "-x")), NO_GPU)


def test_a_script_that_is_not_there_is_told() -> None:
    with pytest.raises(BadLaunch, match=r"no-such-script\.py: no such file"):
        adapter(FACTOR).read(Launch((sys.executable, "no-such-script.py", "{port}")), NO_GPU)


def test_an_unknown_engine_is_offered_the_generic_way() -> None:
    with pytest.raises(BadLaunch) as raised:
        find_adapter(launch("my-engine --x"), None, {})
    for word in ("my-engine", "vllm serve", "llama-server", "--factors FILE", "examples/factors.toml"):
        assert word in str(raised.value)


def test_a_file_with_an_engine_wins_over_a_known_name(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(f'[engine]\nname = "mine"\n{FACTOR}')
    assert find_adapter(launch("llama-server -m x"), file, {}).name == "mine"


def test_a_file_without_an_engine_adds_to_a_known_one(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(FACTOR)
    known = find_adapter(launch("llama-server -m x"), file, {})
    assert (known.name, known.canonical("mode"), known.canonical("fa")) == ("llama.cpp", "mode", "flash_attn")
    assert find_adapter(launch("my-engine --port 1"), file, {}).name == "generic"
