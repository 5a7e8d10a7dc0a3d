"""What is asked of a launch to see its failure: the probes from cheap to dear, and when to give up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from culpa.evidence import Asked
from culpa.model import Outcome, Trial
from culpa.model.options import IsolateOptions
from culpa.probes import (
    DEFAULT_QUESTIONS,
    Limits,
    Probe,
    Reference,
    Round,
    builtin_probes,
    parse_question,
    parse_record,
)
from culpa.traffic import request_probe
from culpa.trial import ProbeSource

# The first long prompt is of this size, whatever the engine: it measures how fast prompts are read.
MEDIUM_TOKENS = 256
# A single long prompt may take this long on the engine at hand.
AFFORDABLE_SECONDS = 20.0
THINKING_TOKENS = 512
# A relaunch costs this many requests, where the measured ratio lies below the limit.
COST_STEPS = ((20.0, 2.0), (float("inf"), 50.0))
# A probe of fewer tokens costs little beside the start of an engine.
CHEAP_TOKENS = 1000


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the first answers of an engine tell about how to probe it; fixed for the rest of the run.

    `chat` is False if it refuses chat requests; `affordable_tokens` bounds long prompts, by the measured
    speed of reading them; `tokens_per_character` is measured on the filler text. `refused` names the probes
    that it does not support, `thinking_tokens` is the room that a reasoning model needs before its answer.
    """

    chat: bool = True
    affordable_tokens: int | None = None
    tokens_per_character: float | None = None
    refused: tuple[str, ...] = ()
    thinking_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Suite:
    """The probes of a run: a function of the options, of the engine's limits, and of its sizes.

    With the user's own request only that and the short questions are asked.
    """

    options: IsolateOptions

    def probes(self, limits: Limits, sizes: Sizes) -> tuple[Probe, ...]:
        """All probes in the order in which they are asked: those chosen, and `short` and `medium`, which size them."""
        short, *others = self._builtin(limits, sizes, self.options.probe_tokens)
        if self.options.request_file is not None:
            return (short, request_probe(Path(self.options.request_file)))
        chosen = self.options.probes
        kept = [probe for probe in others if not chosen or probe.name in chosen]
        return (short, self._medium(limits, sizes), *kept)

    def names(self) -> tuple[str, ...]:
        """The kinds of probes in their usual order, before anything is known of the engine."""
        return tuple(probe.name for probe in self.probes(Limits(""), Sizes()))

    def failing(self, limits: Limits, sizes: Sizes, name: str, failed_request: int | None = None) -> Probe:
        """The probe of this name as it was asked: after those that come before it, without the refused ones.

        With `failed_request` it ends with the request at which the failure showed: that is the one to keep when
        the workload is made plainer.
        """
        probes = [probe for probe in self.probes(limits, sizes) if probe.name not in sizes.refused]
        place = [probe.name for probe in probes].index(name)
        probe = probes[place] if failed_request is None else probes[place].until(failed_request)
        return probe.after(probes[:place])

    def source(self, sizes: "SizesSoFar") -> ProbeSource:
        """Hands out the probes one by one, and learns the sizes on the way if they are not known yet."""

        def next_probe(limits: Limits, asked: Sequence[Asked]) -> Probe | None:
            sizes.limits = limits
            sizes.learn(asked)
            probes = self.probes(limits, sizes.now)
            done = len(asked) - sizes.superseded
            return probes[done] if done < len(probes) else None

        return next_probe

    def _builtin(self, limits: Limits, sizes: Sizes, tokens: int | None) -> tuple[Probe, ...]:
        own = [parse_question(text) for text in self.options.questions]
        records = [parse_record(text) for text in self.options.records]
        return builtin_probes(
            limits,
            self.options.seed,
            tokens,
            [*own, *DEFAULT_QUESTIONS] if own else (),
            records[0] if records else None,
            affordable_tokens=sizes.affordable_tokens,
            tokens_per_character=sizes.tokens_per_character,
            chat=sizes.chat,
            thinking_tokens=sizes.thinking_tokens,
        )

    def _medium(self, limits: Limits, sizes: Sizes) -> Probe:
        context = limits.context_tokens
        tokens = min(MEDIUM_TOKENS, context // 2) if context else MEDIUM_TOKENS
        unmeasured = Sizes(chat=sizes.chat, thinking_tokens=sizes.thinking_tokens)
        cold = next(probe for probe in self._builtin(limits, unmeasured, tokens) if probe.name == "cold")
        return replace(cold, name="medium")


class SizesSoFar:
    """The sizes, and the engine's limits, as they become known during the first launch.

    `superseded` counts the probes whose answers only told how to ask: they are asked again in another form.
    """

    def __init__(self, known: Sizes | None) -> None:
        self.now = known or Sizes()
        self.limits: Limits | None = None
        self.superseded = 0
        self._fixed = known is not None

    def learn(self, asked: Sequence[Asked]) -> None:
        """Take in the last answers: `short` tells of chat and of thinking, `medium` of speed, each of its kind."""
        if self._fixed or not asked:
            return
        name, judgement = asked[-1].probe.name, asked[-1].judgement
        if name == "short" and judgement.status == "unsupported" and self.now.chat:
            self.now = replace(self.now, chat=False)
            self.superseded += 1
        elif name == "short" and _cut_while_thinking(asked[-1]) and not self.now.thinking_tokens:
            self.now = replace(self.now, thinking_tokens=THINKING_TOKENS)
            self.superseded += 1
        elif judgement.status == "unsupported" and name not in self.now.refused:
            self.now = replace(self.now, refused=(*self.now.refused, name))
        elif name == "medium":
            self.now = _measured(self.now, asked)


def _cut_while_thinking(asked: Asked) -> bool:
    return any(answer.thinking and answer.finish_reason == "length" for answer in asked.answers)


def _measured(sizes: Sizes, asked: Sequence[Asked]) -> Sizes:
    """The speed of reading a prompt, from the difference between a medium prompt and a short one."""
    short = next((one.answers for one in asked if one.probe.name == "short" and one.answers), ())
    medium = asked[-1]
    long = medium.answers[0] if medium.answers else None
    if long is None or long.failed or not long.prompt_tokens or not short:
        return sizes
    quick = min(short, key=lambda answer: answer.seconds)
    text = medium.probe.requests()[0].question
    tokens = long.prompt_tokens - (quick.prompt_tokens or 0)
    seconds = max(long.seconds - quick.seconds, 1e-3)
    return replace(
        sizes,
        affordable_tokens=max(MEDIUM_TOKENS, int(tokens / seconds * AFFORDABLE_SECONDS)),
        tokens_per_character=long.prompt_tokens / max(1, len(text)),
    )


def unmeasured(probe: Probe) -> Probe:
    """The same probe without the log-probabilities that only a comparison with a reference needs."""

    def plain(rounds: tuple[Round, ...]) -> tuple[Round, ...]:
        return tuple(tuple(replace(request, measured=False) for request in one) for one in rounds)

    return replace(probe, rounds=plain(probe.rounds), preceding=plain(probe.preceding))


def relative_costs(baselines: Sequence[Trial]) -> tuple[float, float]:
    """Relative costs of a relaunch and of a request, from the first baseline that got ready.

    In steps, so that the search does not go another way because a start took a little longer today.
    """
    for trial in baselines:
        if trial.start_seconds is not None:
            ratio = trial.seconds / max(trial.seconds - trial.start_seconds, 1e-3)
            return next(step for limit, step in COST_STEPS if ratio < limit), 1.0
    return 50.0, 1.0


def patience_is_out(baselines: Sequence[Trial], options: IsolateOptions) -> bool:
    """Whether a launch that has not failed so far has been tried often enough.

    At least `repeat` launches; beyond these, as long as `patience` seconds are not used up, `max_baselines`.
    """
    passed = [trial for trial in baselines if trial.outcome is Outcome.PASS]
    if len(passed) < max(1, options.repeat):
        return False
    spent = sum(trial.seconds for trial in passed)
    return spent >= options.patience or len(passed) >= max(options.max_baselines, options.repeat)


def in_order(probes: Sequence[Probe]) -> ProbeSource:
    """A source that hands out these probes, whatever the answers."""
    return lambda _limits, asked: probes[len(asked)] if len(asked) < len(probes) else None


def need_a_reference(asked: Sequence[Asked]) -> tuple[Probe, ...]:
    """The probes whose answers only a reference can judge; none if just free texts without a known answer are open."""
    unknown = [one for one in asked if one.judgement.status == "unknown"]
    if not any(request.expect is not None for one in unknown for request in one.probe.requests()):
        return ()
    return tuple(one.probe for one in unknown)


def reference_text(reference: Reference) -> str:
    """The sentence that qualifies a run whose answers were compared with a reference."""
    if not reference.pairs:
        return (
            "The model's answers tell nothing by themselves, and the engine gave no log-probabilities: answers were "
            "laid beside those of the all-safe launch as texts only."
        )
    return (
        "The model's answers tell nothing by themselves, so they were compared with those of the all-safe launch: "
        f"token by token, with a tolerance of {reference.tolerance:.2f} nats, more for long prompts "
        f"(noise of the reference itself: {reference.noise:.3f} over {reference.pairs} pairs)"
    )
