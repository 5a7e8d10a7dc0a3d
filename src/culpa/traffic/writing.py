"""Writes requests as a recording of their own, such as the part of one that is left after a reduction."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from culpa.traffic.frames import HEADER, SCHEMA, SEALED, frame, segment_name
from culpa.traffic.reading import Recording
from culpa.traffic.recorded import BadRecording, Recorded


def write_folder(folder: Path, requests: Sequence[Recorded], origin: Recording) -> None:
    """Write the requests into a new folder, with their times and what came of them. Raises BadRecording."""
    try:
        folder.mkdir(parents=True, mode=0o700)
        with (folder / segment_name(0)).open("xb") as file:
            (folder / segment_name(0)).chmod(0o600)
            for one in requests:
                file.write(frame("request", _sent(one), one.content.read()))
                if one.ended is not None or one.outcome != "unanswered":
                    response = one.response.read() if one.response is not None else b""
                    file.write(frame("end", _end(one), response))
        header = {
            "schema": SCHEMA,
            "from": origin.source,
            "mode": "shapes" if origin.shapes else "bodies",
            "requests": len(requests),
        }
        (folder / HEADER).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")
        seal = {"reason": origin.sealed or "written", "requests": len(requests)}
        (folder / SEALED).write_text(json.dumps(seal, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadRecording(f"{folder}: can't be written: {error.strerror or error}") from None


def _sent(one: Recorded) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": one.index,
        "t": round(one.at, 6),
        "method": one.method,
        "path": one.path,
        "type": one.content_type,
    }
    return {**fields, "packed": one.packed} if one.packed else fields


def _end(one: Recorded) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": one.index,
        "t": None if one.ended is None else round(one.ended, 6),
        "outcome": one.outcome,
        "status": one.status,
        "type": one.response_type,
        "encoding": one.encoding,
        "pieces": one.pieces,
        "prompt_tokens": one.prompt_tokens,
        "completion_tokens": one.completion_tokens,
        "said": one.said,
        "whole": one.whole,
    }
    return {name: value for name, value in fields.items() if value not in (None, "")}
