"""Where a failure begins, as a check inside the engine saw it, for a bug report."""

from collections.abc import Callable

from culpa.model import Finding
from culpa.report import guard_words
from culpa.report.markup import Markdown, code, link


def located_lines(finding: Finding, sentence: Callable[[str], Markdown]) -> list[str]:
    """The place, what it means, and the candidates that it speaks for or against; nothing where nobody saw it."""
    if finding.located is None:
        return []
    violation, meaning = finding.located.violation, finding.located.explanation
    seen = f"{guard_words.where(violation)}: {guard_words.what(violation)}"
    return [
        f"A check inside the engine saw in trial {finding.located.trial}: {code(violation.kind)} at "
        f"{sentence(seen)}. {sentence(meaning.meaning)} {guard_words.FIRST_MATTERS}",
        "",
        *(
            f"- {heading}: {link(one.source)} {sentence(one.text)}"
            for heading, found in guard_words.hypotheses(meaning)
            for one in found
        ),
        "",
    ]
