"""The time to look at, in the words that journalctl takes, from a time as a log prints it."""

import re
from datetime import datetime, timedelta

_AROUND = timedelta(minutes=5)
_ISO = re.compile(r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?\s?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_VLLM = re.compile(r"^(\d\d)-(\d\d) (\d\d:\d\d:\d\d)$", re.ASCII)
_GLOG = re.compile(r"^[A-Z]?(\d\d)(\d\d) (\d\d:\d\d:\d\d)(?:\.\d{1,9})?$", re.ASCII)
_AMERICAN = re.compile(r"^(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)$", re.ASCII)
_SYSLOG = re.compile(
    r"^(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?: (\d{4}))?$", re.ASCII
)
_MONTHS = {
    name: index
    for index, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)  # noqa: SIM905
}
# A year for arithmetic where the log has none; a leap year, so that every day of a log exists in it.
_SOME_YEAR = 2024
#: The shell fills in what the log leaves out.
_THIS_YEAR = "$(date +%Y)"


def window(time: str | None) -> tuple[str, str] | None:
    """Five minutes before and after, as arguments of --since and --until; None if the text is no wall-clock time.

    >>> window("07-15 21:01:02")
    ('$(date +%Y)-07-15 20:56:02', '$(date +%Y)-07-15 21:06:02')
    >>> window("2026-07-15T15:33:47.500000001Z")
    ('2026-07-15 15:28:47 UTC', '2026-07-15 15:38:47 UTC')
    >>> window("1103 23:14:03.342459398")
    ('$(date +%Y)-11-03 23:09:03', '$(date +%Y)-11-03 23:19:03')
    """
    moment, year_known, zone = _moment(time or "")
    if moment is None:
        return None
    try:
        return _worded(moment - _AROUND, year_known, zone), _worded(moment + _AROUND, year_known, zone)
    except OverflowError:  # a year at the end of the calendar
        return None


def _moment(text: str) -> tuple[datetime | None, bool, str]:
    try:
        if match := _ISO.match(text):
            moment = datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3] or ''}")
            offset = moment.utcoffset()
            if offset is None:
                return moment, True, ""
            return moment.replace(tzinfo=None) - offset, True, " UTC"
        if match := _VLLM.match(text) or _GLOG.match(text):
            return datetime.fromisoformat(f"{_SOME_YEAR}-{match[1]}-{match[2]}T{match[3]}"), False, ""
        if match := _AMERICAN.match(text):
            return datetime.fromisoformat(f"{match[3]}-{match[1]}-{match[2]}T{match[4]}"), True, ""
        if (match := _SYSLOG.match(text)) and match[1] in _MONTHS:
            year = match[4] or str(_SOME_YEAR)
            iso = f"{year}-{_MONTHS[match[1]]:02d}-{int(match[2]):02d}T{match[3]}"
            return datetime.fromisoformat(iso), match[4] is not None, ""
    except (ValueError, OverflowError):
        return None, False, ""
    return None, False, ""


def _worded(moment: datetime, year_known: bool, zone: str) -> str:
    year = f"{moment.year:04d}" if year_known else _THIS_YEAR
    return f"{year}-{moment:%m-%d %H:%M:%S}{zone}"


def kernel_log(time: str | None) -> str:
    """The command that shows the kernel log of the time in question."""
    found = window(time)
    if found is None:
        return "journalctl -k -o short-iso"
    return f'journalctl -k -o short-iso --since "{found[0]}" --until "{found[1]}"'
