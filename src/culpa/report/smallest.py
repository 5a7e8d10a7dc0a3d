"""The smallest case that still fails, out of the document that `culpa minimize` left with a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from culpa.report.markup import fence, text


@dataclass(frozen=True, slots=True)
class Smallest:
    """What is left: command, requests in words, sentences about it, and the files by name."""

    command: str
    request: str
    facts: tuple[str, ...]
    files: tuple[tuple[str, str], ...]


def reproduced(document: Any) -> Smallest | None:
    """The case of a document of the schema culpa.minimization/1; None where there is none, or none of that kind."""
    if not isinstance(document, Mapping) or document.get("schema") != "culpa.minimization/1":
        return None
    try:
        reruns = [
            f"{'its control' if one['control'] else 'it'} printed {one['said']}" for one in document["reruns"]
        ]
        facts = [document["rate_sentence"], *document["thresholds"]]
        facts += [f"passes with {document['control']}"] if document["control"] else []
        facts += [f"run by itself in an empty environment, {' and '.join(reruns)}"] if reruns else []
        files = tuple((str(name), str(text)) for name, text in document["files"])
        return Smallest(
            str(document["command"]),
            str(document["request"]),
            tuple(str(fact) for fact in facts if fact),
            files,
        )
    except (KeyError, TypeError, ValueError):
        return None  # of another version: the run's own commands are shown


def smallest_lines(smallest: Smallest, room: int, most: int) -> tuple[list[str], bool]:
    """The case as Markdown, the command cut to `most` characters, and whether its files had the room to be shown."""
    lines = ["#### Minimal command", "", fence(smallest.command[:most], "sh"), ""]
    lines += [f"What is asked: {text(smallest.request)}", "", *(f"- {text(fact)}" for fact in smallest.facts)]
    if sum(len(content) for _, content in smallest.files) > room:
        return lines, False
    for name, content in smallest.files:
        shown = fence(content.rstrip(), "sh" if name.endswith(".sh") else "python")
        lines += ["", "<details>", f"<summary>{text(name)}</summary>", "", shown, "", "</details>"]
    return lines, True
