"""The user's choice of factors and arms, checked against what the launch has."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from culpa.engines import Reading, closest
from culpa.model import Arm, Factor, LeftOut
from culpa.probes import request_factors
from culpa.traffic import request_probe

# What the built-in probes may turn into factors once one of them has failed.
BUILTIN_REQUEST_FACTORS = (
    "temperature", "top_k", "top_p", "seed", "structured_output", "tools", "stream", "logprobs", "ignore_eos",
    "endpoint", "prompt_tokens", "max_tokens", "concurrency", "repeats", "order", "preceding_requests",
)  # fmt: skip


# The search takes up to 32 factors; a failing request brings some of its own.
MOST_LAUNCH_FACTORS = 22
MOST_FACTORS = 32
# What tables call the launch as it is, among the arms.
BASELINE = "baseline"
_NAMED_ARM = re.compile(r"([^=,:]+):\s*(\S.*)")


class BadSelection(ValueError):
    """A factor, level or arm that does not exist here; the message is one line for the user."""


def request_names(request_file: str | None) -> tuple[str, ...]:
    """Names of the request factors that this run can have. Raises BadRequestFile."""
    if request_file is None:
        return BUILTIN_REQUEST_FACTORS
    own = (factor.name for factor in request_factors(request_probe(Path(request_file))))
    return tuple(dict.fromkeys((*own, *BUILTIN_REQUEST_FACTORS)))


def check_names(
    names: Sequence[str],
    reading: Reading,
    request_names: Sequence[str],
    canonical: Callable[[str], str | None],
    option: str,
) -> tuple[str, ...]:
    """The canonical names for `--only` and `--skip`. Raises BadSelection, with the nearest name that exists."""
    known = [*(factor.name for factor in reading.factors), *(left.name for left in reading.left_out)]
    checked = []
    for name in names:
        found = canonical(name) or (name if name in known or name in request_names else None)
        if found is None:
            raise BadSelection(f"{option} {name}: {_unknown(name, [*known, *request_names])}")
        checked.append(found)
    return tuple(checked)


def select(reading: Reading, only: Sequence[str], skip: Sequence[str]) -> Reading:
    """The reading with the factors that the user wants; the others are left out with that reason.

    Raises BadSelection if more are named than can be varied.
    """
    kept: list[Factor] = []
    left = list(reading.left_out)
    for factor in reading.factors:
        if factor.name in skip:
            left.append(LeftOut(factor.name, "left out on request (--skip)"))
        elif only and factor.name not in only:
            left.append(LeftOut(factor.name, "left out on request (not in --only)"))
        else:
            kept.append(factor)
    # The likeliest stay: room is kept for the factors of the failing request.
    likeliest = {factor.name for factor in most_of(kept, MOST_LAUNCH_FACTORS)}
    beyond = {factor.name for factor in kept} - likeliest - set(only)
    if len(kept) - len(beyond) > MOST_FACTORS:
        raise BadSelection(
            f"--only names more than {MOST_FACTORS} factors, which is the most that can be varied"
        )
    left.extend(
        LeftOut(
            name,
            f"the {MOST_LAUNCH_FACTORS} likeliest factors are varied, this is not among them: name it with --only",
        )
        for name in sorted(beyond)
    )
    if reading.factors and not kept and not set(only) & set(BUILTIN_REQUEST_FACTORS):
        reasons = [
            f"{one.name} is {one.reason}"
            for one in left
            if one.name in only and "on request" not in one.reason
        ]
        why = "; ".join(reasons) or "--only and --skip together leave none"
        raise BadSelection(f"there is no factor left to vary: {why}")
    return replace(
        reading,
        factors=tuple(factor for factor in kept if factor.name not in beyond),
        left_out=tuple(left),
    )


def most_of(factors: Sequence[Factor], count: int) -> tuple[Factor, ...]:
    """The `count` likeliest factors, in their own order."""
    chosen = sorted(factors, key=lambda factor: (-factor.prior, factor.name))[: max(0, count)]
    return tuple(factor for factor in factors if factor in chosen)


def parse_arms(
    texts: Sequence[str], reading: Reading, canonical: Callable[[str], str | None]
) -> tuple[Arm, ...]:
    """The arms, each once. Raises BadSelection where two that differ have one name, or one has that of the launch."""
    arms: dict[str, Arm] = {}
    for text in texts:
        arm = parse_arm(text, reading, canonical)
        if arm.name == BASELINE:
            raise BadSelection(f"--arm {text}: {BASELINE} is the name of the launch as it is; choose another")
        if arms.setdefault(arm.name, arm) != arm:
            raise BadSelection(f"--arm {text}: another arm has the name {arm.name} already; choose another")
    return tuple(arms.values())


def parse_arm(text: str, reading: Reading, canonical: Callable[[str], str | None]) -> Arm:
    """An arm from its text: `FACTOR` (its safe level), `FACTOR=LEVEL`, a level's name such as `eager`, or several
    of these joined by commas; `NAME: ...` gives it a name of its own. Raises BadSelection.
    """
    named = _NAMED_ARM.fullmatch(text)
    name, body = (named[1].strip(), named[2]) if named is not None else (text, text)
    levels: dict[str, str] = {}
    for part in _parts(body, reading, canonical):
        factor, level = _part(part, text, reading, canonical)
        if levels.setdefault(factor.name, level) != level:
            raise BadSelection(
                f"--arm {text}: {factor.name} can't be {levels[factor.name]} and {level} at once"
            )
    return Arm(name, tuple(sorted(levels.items())))


def _parts(body: str, reading: Reading, canonical: Callable[[str], str | None]) -> list[str]:
    """The parts between the commas that are no part of a level, such as those of `pipeline_partition=24,24,16`."""
    known = {factor.name: (factor.suspect, *factor.safe) for factor in reading.factors}
    words = [word.strip() for word in body.split(",")]
    parts: list[str] = []
    while words:
        name, equals, _ = words[0].partition("=")
        levels = known.get(canonical(name) or name, ()) if equals else ()
        ends = [end for end in range(len(words), 1, -1) if ",".join(words[:end])[len(name) + 1 :] in levels]
        end = ends[0] if ends else 1
        parts.append(",".join(words[:end]))
        words = words[end:]
    return parts


def _part(
    part: str, whole: str, reading: Reading, canonical: Callable[[str], str | None]
) -> tuple[Factor, str]:
    factors = {factor.name: factor for factor in reading.factors}
    name, equals, level = part.partition("=")
    found = canonical(name) or name
    if found in factors:
        factor = factors[found]
        if not equals:
            return factor, factor.safe[0]
        if level in (factor.suspect, *factor.safe, *factor.order) or _between(factor, level):
            return factor, level
        choice = ", ".join((*factor.safe, factor.suspect))
        raise BadSelection(f"--arm {whole}: {found} has no level {level!r} here (it has {choice})")
    for left in reading.left_out:
        if left.name == found:
            raise BadSelection(f"--arm {whole}: {found} can't be varied here: {left.reason}")
    owners = [factor for factor in reading.factors if part in factor.safe]
    if len(owners) == 1:
        return owners[0], part
    if owners:
        spelled = " or ".join(f"{owner.name}={part}" for owner in owners)
        raise BadSelection(f"--arm {whole}: {part!r} is a level of several factors; say {spelled}")
    named = [
        *factors,
        *(level for factor in reading.factors for level in factor.safe if not level.isdecimal()),
    ]
    raise BadSelection(f"--arm {whole}: {_unknown(name, named)}")


def _between(factor: Factor, level: str) -> bool:
    """Whether it is a number that the factor may take although it names no such level."""
    try:
        return factor.numeric and level.replace(".", "", 1).isdecimal() and factor.steps(level) >= 0
    except ValueError:
        return False


def _unknown(name: str, known: Sequence[str]) -> str:
    near = closest(name, known)
    if near:
        return f"no such factor in this launch; did you mean {near}?"
    return f"no such factor in this launch (there are {', '.join(dict.fromkeys(known))})"
