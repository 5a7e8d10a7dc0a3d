"""The reference engine is a program of its own: it knows nothing of culpa, and its runtime nothing of single faults."""

import ast
from pathlib import Path

import pytest

import culpa_lab

ROOT = Path(culpa_lab.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_nothing_of_culpa_and_fits_one_sitting(path: Path) -> None:
    assert not {name for name in imported(path) if name.split(".")[0] == "culpa"}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_the_model_knows_nothing_of_the_engine() -> None:
    names = {name for path in (ROOT / "model").glob("*.py") for name in imported(path)}
    assert not {name for name in names if name.startswith(("culpa_lab.engine", "culpa_lab.faults"))}


def test_the_engine_reaches_faults_through_their_registry_alone() -> None:
    names = {name for path in (ROOT / "engine").glob("*.py") for name in imported(path)}
    assert {name for name in names if name.startswith("culpa_lab.faults")} == {"culpa_lab.faults.registry"}


def test_workers_load_no_http() -> None:
    # A worker's start is what a trial waits for.
    heavy = {"starlette", "uvicorn", "pydantic", "tokenizers"}
    for name in ("stage", "multiproc_executor", "core_process", "api_server"):
        seen: set[str] = set()
        todo = [f"culpa_lab.engine.{name}"]
        while todo:
            module = todo.pop()
            path = ROOT.parent / (module.replace(".", "/") + ".py")
            if module in seen or not path.exists():
                continue
            seen.add(module)
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in tree.body:  # what is imported when the module is, not what functions import later
                if isinstance(node, ast.ImportFrom) and node.module:
                    todo.append(node.module)
                    assert node.module.split(".")[0] not in heavy, module
