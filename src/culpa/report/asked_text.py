"""What a trial was asked, in words."""

from culpa.model import Trial
from culpa.report import words


def asked_in(trial: Trial) -> str:
    """What a trial was asked and what came of it, empty if nothing.

    Such as `6 short questions (6 right) and 1 long prompt of about 12,000 tokens (1 failed)`.
    """
    kinds = {"question": "short question", "long_prompt": "long prompt", "other": "other request"}
    parts = []
    for kind, noun in kinds.items():
        some = [one for one in trial.requests if one.kind == kind]
        if not some:
            continue
        ends = [one.status for one in some]
        counted = ", ".join(
            f"{ends.count(end)} {end}" for end in ("right", "missed", "answered", "failed") if end in ends
        )
        size = max((one.prompt_tokens or one.size for one in some), default=0) if kind == "long_prompt" else 0
        of = f" of about {size:,} tokens" if size else ""
        parts.append(f"{words.plural(len(some), noun)}{of} ({counted})")
    return words.listing(parts) if parts else ""
