"""What is asked of a launch to see its failure: the probes from cheap to dear, and when to give up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from culpa.model import Outcome, Trial
from culpa.model.options import IsolateOptions
from culpa.probes import Limits, Probe, builtin_probes, parse_question, parse_record, user_probe
from culpa.trial import Asked, ProbeSource

# The first long prompt is of this size, whatever the engine: it measures how fast prompts are read.
MEDIUM_TOKENS = 256
# A single long prompt may take this long on the engine at hand.
AFFORDABLE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the first answers of an engine tell about how to probe it; fixed for the rest of the run.

    `chat` is False if it refuses chat requests; `affordable_tokens` bounds long prompts, by the measured
    speed of reading them; `tokens_per_character` is measured on the filler text.
    """

    chat: bool = True
    affordable_tokens: int | None = None
    tokens_per_character: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """The probes of a run: a function of the options, of the engine's limits, and of its sizes.

    With the user's own request only that and the short questions are asked.
    """

    options: IsolateOptions

    def probes(self, limits: Limits, sizes: Sizes) -> tuple[Probe, ...]:
        """All probes in the order in which they are asked."""
        short, *others = self._builtin(limits, sizes, self.options.probe_tokens)
        if self.options.request_file is not None:
            return (short, user_probe(Path(self.options.request_file)))
        return (short, self._medium(limits, sizes), *others)

    def failing(self, limits: Limits, sizes: Sizes, name: str) -> Probe:
        """The probe of this name as it was asked: after those that come before it."""
        probes = self.probes(limits, sizes)
        place = [probe.name for probe in probes].index(name)
        return probes[place].after(probes[:place])

    def source(self, sizes: "SizesSoFar") -> ProbeSource:
        """Hands out the probes one by one, and learns the sizes on the way if they are not known yet."""

        def next_probe(limits: Limits, asked: Sequence[Asked]) -> Probe | None:
            sizes.learn(asked)
            probes = self.probes(limits, sizes.now)
            names = [one.probe.name for one in asked]
            # A chat question that was refused is asked again without chat.
            done = len(dict.fromkeys(names)) - (1 if sizes.ask_again(asked) else 0)
            return probes[done] if done < len(probes) else None

        return next_probe

    def _builtin(self, limits: Limits, sizes: Sizes, tokens: int | None) -> tuple[Probe, ...]:
        records = [parse_record(text) for text in self.options.records]
        return builtin_probes(
            limits,
            self.options.seed,
            tokens,
            [parse_question(text) for text in self.options.questions],
            records[0] if records else None,
            affordable_tokens=sizes.affordable_tokens,
            tokens_per_character=sizes.tokens_per_character,
            chat=sizes.chat,
        )

    def _medium(self, limits: Limits, sizes: Sizes) -> Probe:
        context = limits.context_tokens
        tokens = min(MEDIUM_TOKENS, context // 2) if context else MEDIUM_TOKENS
        unmeasured = Sizes(chat=sizes.chat)
        cold = next(probe for probe in self._builtin(limits, unmeasured, tokens) if probe.name == "cold")
        return replace(cold, name="medium")


class SizesSoFar:
    """The sizes as they become known during the first launch."""

    def __init__(self, known: Sizes | None) -> None:
        self.now = known or Sizes()
        self._fixed = known is not None

    def learn(self, asked: Sequence[Asked]) -> None:
        """Take in the answers of `short` and `medium`; later ones change nothing."""
        if self._fixed or not asked:
            return
        last = asked[-1]
        if last.probe.name == "short" and last.judgement.status == "unsupported":
            self.now = replace(self.now, chat=False)
        elif last.probe.name == "medium":
            self.now = _measured(self.now, asked)
            self._fixed = True

    def ask_again(self, asked: Sequence[Asked]) -> bool:
        """Whether the last probe was refused for its being a chat, and nothing but that is known so far."""
        shorts = [one for one in asked if one.probe.name == "short"]
        return len(asked) == 1 and len(shorts) == 1 and shorts[0].judgement.status == "unsupported"


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


def patience_is_out(baselines: Sequence[Trial], options: IsolateOptions) -> bool:
    """Whether a launch that has not failed so far has been tried often enough.

    At least `repeat` launches; beyond these, as long as `patience` seconds are not used up, `max_baselines`.
    """
    passed = [trial for trial in baselines if trial.outcome is Outcome.PASS]
    if len(passed) < max(1, options.repeat):
        return False
    spent = sum(trial.seconds for trial in passed)
    return spent >= options.patience or len(passed) >= max(options.max_baselines, options.repeat)
