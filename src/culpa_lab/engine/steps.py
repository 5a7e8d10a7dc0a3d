"""What goes between the scheduler and the stages: a step's work, and what came of it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a request's next token is chosen. `logprobs` is None or the number of alternatives to report."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class StateRow:
    """Blocks of one GDN group in a step: where the state lives, where it comes from, where a copy goes.

    `source` 0: the request begins here and its state is zero. `source == run`: the state is in its place.
    `save` 0: no copy is kept.
    """

    run: int
    source: int
    save: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """One request's share of a step: `count` tokens that begin at position `start`.

    `tokens` are their ids; empty where the one token was sampled by step `feedback` and is not known to the
    scheduler yet. `kv` are block tables, one a full-attention group; `states` one row a GDN group. `cut` is how
    many of the tokens come before the state is copied to `save`. `sample` asks for the next token, number
    `output` of the request's answer.
    """

    request: str
    slot: int
    tokens: tuple[int, ...]
    start: int
    count: int
    kv: tuple[tuple[int, ...], ...]
    states: tuple[StateRow, ...]
    decode: bool
    sample: bool
    cut: int = 0
    output: int = 0
    generation: int = 0
    feedback: int = -1
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the engine: segments (decodes first) and what happens to cache blocks before them."""

    number: int
    segments: tuple[Segment, ...]
    map: tuple[int, ...] = ()
    unmap: tuple[int, ...] = ()
    zero: tuple[int, ...] = ()
    finished: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Tokens that the step works on."""
        return sum(segment.count for segment in self.segments)

    @property
    def decodes(self) -> int:
        """How many segments are decodes; they come first."""
        return sum(segment.decode for segment in self.segments)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """The log-probability of a sampled token and of the likeliest ones, likeliest first."""

    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled token."""

    request: str
    generation: int
    token: int
    logprobs: TokenLogprobs | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """What the last stage made of a step."""

    number: int
    sampled: tuple[Sampled, ...]
