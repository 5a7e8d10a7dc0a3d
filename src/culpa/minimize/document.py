"""The result as JSON (schema culpa.minimization/1)."""

import json
from dataclasses import asdict

from culpa.model.minimization import Minimization

SCHEMA = "culpa.minimization/1"


def minimization_json(result: Minimization) -> str:
    """One JSON object, indented, with a line end."""
    return json.dumps({"schema": SCHEMA, **asdict(result)}, indent=2, ensure_ascii=False) + "\n"
