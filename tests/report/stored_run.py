"""Stored runs for the tests of reports: an experiment written as `culpa isolate` would have left it."""

import dataclasses
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from culpa.model import Experiment, Trial
from culpa.report.json_report import experiment_json
from culpa.store import EXPERIMENT, create_run


def store(
    folder: Path,
    experiment: Experiment,
    *,
    files: Mapping[str, str] | None = None,
    words: tuple[str, ...] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Path:
    """Write the run into the folder, with further files by their names relative to it; the folder."""
    launch = experiment.launch
    header = {
        "culpa": experiment.culpa_version,
        "started": experiment.started,
        "tag": "0" * 16,
        "engine": experiment.engine,
        "command": launch.command_line(),
        "words": list(words) if words else shlex.split(launch.command_line()),
        "cwd": "/tmp",
        "factors_file": None,
        "only": [],
        "skip": [],
        "arms": [],
        "options": dict(options or {}),
        "factors": [factor.name for factor in experiment.factors if factor.scope == "launch"],
    }
    journal = create_run(folder, header)
    adapter = TypeAdapter(Trial)
    for trial in experiment.trials:
        journal.append("trial_started", id=trial.id, elapsed=0.0, why=f"to see what {trial.arm} does")
        journal.append("trial", trial=adapter.dump_python(trial, mode="json"), elapsed=float(trial.id))
        if trial.folder:
            (folder / trial.folder).mkdir(parents=True, exist_ok=True)
    text = experiment_json(dataclasses.replace(experiment, folder=str(folder)))
    (folder / EXPERIMENT).write_text(text, encoding="utf-8")
    for name, text in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def answers(probe: str, question: str, answer: str, evidence: str = "") -> str:
    """An `answers.json` with one exchange."""
    return json.dumps(
        [
            {
                "probe": probe,
                "judgement": {
                    "status": "right",
                    "evidence": evidence,
                    "symptom": None,
                    "failed_request": None,
                },
                "requests": [
                    {
                        "endpoint": "/v1/chat/completions",
                        "body": {"model": "m", "messages": [{"role": "user", "content": question}]},
                    }
                ],
                "answers": [{"status": 200, "text": answer, "finish_reason": "stop", "seconds": 0.5}],
            }
        ]
    )
