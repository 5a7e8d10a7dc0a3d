"""A bisection in sentences, for every report alike."""

from culpa.model import Count
from culpa.model.bisection import Bisection, VersionRow
from culpa.report.words import duration, listing, percent, plural, probability
from culpa.search.exposure import excluded_rate, rate_interval


def subject(result: Bisection) -> str:
    """What has the versions: the engine, or packages of it."""
    return listing(result.packages) if result.packages else result.engine


def headline(result: Bisection) -> str:
    """The result in one sentence."""
    chance = f", probability {probability(result.probability)}" if result.probability is not None else ""
    good, bad = result.edge
    if result.outcome == "no_failure":
        return f"{result.versions[-1].label}, the bad end, did not fail: there is nothing to bisect."
    if result.outcome == "good_fails":
        return f"{result.versions[0].label}, the good end, fails as well{chance}: the change is not between the two."
    if result.outcome == "found" and result.turned:
        return f"It fails up to {subject(result)} {bad} and no more from {good} on{chance}."
    if result.outcome == "found":
        return f"It fails since {subject(result)} {bad}; {good} is the last good version{chance}."
    if result.outcome == "interval":
        edge = "went away" if result.turned else "came in"
        return f"It {edge} between {subject(result)} {good} and {bad}{chance}: what lies between could not be tried."
    likely = f"{result.interval[0]} to {result.interval[-1]}" if result.interval else "unknown"
    return f"The change is not known yet: it is one of {likely}{chance}."


def details(result: Bisection) -> list[str]:
    """What the trials show, and what qualifies it."""
    rows = result.versions
    tried = [row for row in rows if row.tried]
    sentences = [
        f"{plural(len(result.trials), 'trial')} of {len(tried)} out of {plural(len(rows), 'version')} "
        f"({result.source}), {duration(result.elapsed_seconds)}."
    ]
    if result.outcome == "no_failure":
        passed = rows[-1].passed
        if passed:
            sentences.append(
                f"It passed {passed} of {passed} times, which excludes failure rates above "
                f"{percent(excluded_rate(passed))} at 95%."
            )
        return [*sentences, *result.notes]
    if result.edge[0] is not None:
        sentences.append(f"From the change on it failed {_counted(result.bad)}.")
        before = result.good
        sentences.append(
            f"Before the change it failed {before.failed} of {plural(before.trials, 'time')}."
            if before.trials
            else "No version before the change was tried: the good end is taken as good."
        )
    sentences += _settings(result)
    spoilt = [row for row in rows if row.other + row.untestable and not row.failed + row.passed]
    if spoilt:
        named = listing([row.label for row in spoilt[:6]])
        more = f" and {len(spoilt) - 6} more" if len(spoilt) > 6 else ""
        sentences.append(f"Could not be judged: {named}{more} ({spoilt[0].note or 'another failure'}).")
    sentences += [f"A limit ended the search: {limit}." for limit in result.limits_reached]
    if result.interrupted:
        sentences.append("The run was interrupted; culpa bisect --resume goes on from here.")
    return [*sentences, *result.notes]


def _settings(result: Bisection) -> list[str]:
    if result.isolated:
        needs = listing(result.isolated)
        chance = (
            f" (probability {probability(result.isolated_probability)})"
            if result.isolated_probability
            else ""
        )
        together = " together" if len(result.isolated) > 1 else ""
        return [
            *([f"{_begin(result.settings_text)}."] if result.settings_text else []),
            f"The failure needs {needs}{together}{chance}.",
        ]
    words = {
        "version_alone": "The version is enough",
        "settings_too": "It needs settings of the launch beside the version",
        "unknown": "Whether it needs settings beside the version is not known",
    }
    if result.settings not in words:
        return []
    return [f"{words[result.settings]}: {result.settings_text}."]


def _begin(text: str) -> str:
    return text[:1].upper() + text[1:]


def _counted(count: Count) -> str:
    shown = f"{count.failed} of {plural(count.trials, 'time')}"
    if count.failed == count.trials:
        return shown
    low, high = rate_interval(count)
    return f"{shown}, a rate of {percent(low)} to {percent(high)}"


def row_cells(row: VersionRow) -> tuple[str, str, str, str]:
    """A version's outcomes, the chance that the change came in with it, what it said of itself, and a remark."""
    parts = [
        f"{number} {word}"
        for number, word in (
            (row.failed, "fail"), (row.passed, "pass"), (row.other, "other"), (row.untestable, "untestable"),
        )
        if number
    ]  # fmt: skip
    chance = "" if row.chance is None or row.chance < 0.001 else probability(row.chance)
    return ", ".join(parts), chance, row.said, row.note


def shown_rows(result: Bisection) -> list[VersionRow]:
    """The versions that were tried, or on which the change may have come in."""
    return [row for row in result.versions if row.tried or row.label in result.interval]
