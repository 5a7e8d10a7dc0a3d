"""The requests by which configurations are compared: the same for all, and such that the failing launch survives."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from culpa.hunt import MEDIUM_TOKENS, Sizes
from culpa.model import Configuration, Outcome, Trial
from culpa.probes import Limits, LongPrompt, Request
from culpa.probes.kinds import prompt_body
from culpa.probes.prompts import random_record
from culpa.probes.request import CHAT, COMPLETIONS

#: How many tokens each answer has, and how many requests are asked alone and at once.
ANSWER_TOKENS = 64
ALONE = 3
AT_ONCE = 4
#: A launch is asked for about this share of what it reads in AFFORDABLE_SECONDS (20 s): some ten seconds of reading.
_SHARE = 0.5
_MARGIN = 0.9
#: Seeds beyond those of all probes: no cache has seen these prompts.
_SEED = 700_000


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests one after the other, and others all at once; `tokens` is the length of each prompt."""

    tokens: int
    alone: tuple[Request, ...]
    at_once: tuple[Request, ...]

    def describe(self) -> str:
        """What is asked, in a sentence's part."""
        return (
            f"{len(self.alone)} prompts of about {self.tokens:,} tokens one after the other, then "
            f"{len(self.at_once)} at once, each new to the cache and answered with {ANSWER_TOKENS} tokens"
        )

    def without(self, field: str) -> "Workload":
        """The same without a field of the bodies that the engine refuses."""

        def plain(requests: Iterable[Request]) -> tuple[Request, ...]:
            return tuple(
                replace(one, body={name: value for name, value in one.body.items() if name != field})
                for one in requests
            )

        return Workload(self.tokens, plain(self.alone), plain(self.at_once))


def workloads(limits: Limits, sizes: Sizes, survived: Sequence[int], seed: int) -> Iterator[Workload]:
    """Workloads from the longest prompts to the shortest; `survived` are lengths that passed in the failing launch."""
    most = limits.context_tokens - 2 * ANSWER_TOKENS if limits.context_tokens else None
    affordable = sizes.affordable_tokens
    bounds = [most] if most is not None else []
    bounds += [int(affordable * _SHARE / (ALONE + AT_ONCE))] if affordable is not None else []
    # What matters may be how many tokens come at once: then all prompts together are as long as one that passed.
    between = [length // AT_ONCE for length in survived if length > AT_ONCE * MEDIUM_TOKENS]
    lengths = [min([length, *bounds]) for length in (*survived, *between, MEDIUM_TOKENS, 0)]
    for tokens in sorted({max(0, length) for length in lengths}, reverse=True):
        yield _workload(tokens, limits, sizes, seed)


def survived_lengths(trials: Sequence[Trial], members: Configuration) -> tuple[int, ...]:
    """Prompt lengths that were answered where all members of the failing set that belong to the launch were suspect."""
    lengths: list[int] = []
    for trial in trials:
        levels = trial.configuration.as_dict()
        if trial.outcome is not Outcome.PASS and trial.purpose != "baseline":
            continue
        if all(levels.get(name, level) == level for name, level in members.levels):
            lengths += [
                one.prompt_tokens
                for one in trial.requests
                if one.prompt_tokens is not None and one.status != "failed"
            ]
    # A little less: a prompt turns out longer or shorter by how the tokenizer cuts it, and a threshold may lie close.
    return (int(max(lengths) * _MARGIN),) if lengths else ()


def _workload(tokens: int, limits: Limits, sizes: Sizes, seed: int) -> Workload:
    requests = [_request(tokens, limits, sizes, seed + number) for number in range(ALONE + AT_ONCE)]
    count = min(AT_ONCE, limits.parallel) if limits.parallel else AT_ONCE
    return Workload(tokens, tuple(requests[:ALONE]), tuple(requests[ALONE : ALONE + max(count, 1)]))


def _request(tokens: int, limits: Limits, sizes: Sizes, seed: int) -> Request:
    per_character = sizes.tokens_per_character
    text = LongPrompt(random_record(_SEED + seed), tokens, _SEED + seed)
    if per_character:
        text = replace(text, tokens_per_character=per_character)
    body = {
        **prompt_body(text, sizes.chat),
        "temperature": 0,
        "max_tokens": ANSWER_TOKENS,
        # An answer of the same length from every configuration, whatever the model wants to say.
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    named = {"model": limits.model, **body} if limits.model else body
    return Request(CHAT if sizes.chat else COMPLETIONS, named)
