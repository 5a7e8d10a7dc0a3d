"""A log with the judgement in its margin: which line is the root event, which only follow, which say nothing."""

from culpa.model import Reading
from culpa.triage.lines import LineParser
from culpa.triage.tables import load_tables
from culpa.triage.text import segments

#: Marks of the margin, all of one width.
_MARKS = {
    "root": "ROOT   ",
    "same": "same   ",
    "cascade": "follows",
    "xid": "xid    ",
    "stale": "stale  ",
    "noise": "noise  ",
    "": "       ",
}


class Annotator:
    """Marks lines by their numbers, which count through all logs of a reading. Keeps only numbers in memory."""

    def __init__(self, reading: Reading, dialect: str = "generic") -> None:
        incident = reading.incident
        self._roles: dict[int, str] = {}
        if incident is not None:
            diagnosis = incident.diagnosis
            for xid in diagnosis.xids if diagnosis else ():
                self._roles[xid.line] = "stale" if xid.stale else "xid"
            self._roles.update(dict.fromkeys(incident.cascade_lines, "cascade"))
            self._roles.update(dict.fromkeys(incident.root_alternates, "same"))
            if incident.root is not None:
                self._roles[incident.root.line] = "root"
        tables = load_tables(dialect)
        self._parser = LineParser(tables)
        self._noise = tuple(rule for rule in tables.signatures if rule.role == "noise")
        self._width = len(str(max(reading.lines, 1)))
        self._first = {file.first_line for file in reading.files}
        self._offset = 0

    def header(self, name: str) -> str:
        """What stands above a log, where there are several."""
        return f"==> {' '.join(segments(name))} <=="

    def line(self, number: int, raw: str) -> str:
        """The line as it is to be written: mark, number within its log, text without escapes."""
        if number in self._first:
            self._offset = number - 1
        text = " ".join(part for part in segments(raw) if part)
        role = self._roles.get(number) or ("noise" if self._is_noise(number, raw) else "")
        return f"{_MARKS[role]} {number - self._offset:>{self._width}}  {text}".rstrip()

    def _is_noise(self, number: int, raw: str) -> bool:
        """Whether the line talks like an error and is none."""
        lowered = raw.lower()
        rules = [rule for rule in self._noise if any(literal in lowered for literal in rule.literals)]
        if not rules:
            return False
        return any(
            rule.regex.search(line.text) is not None
            for line in self._parser.parse(number, raw)
            for rule in rules
        )
