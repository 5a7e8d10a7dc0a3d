"""A request inside the engine core: its tokens, how far it is, and the blocks that it holds."""

import hashlib
from array import array
from dataclasses import dataclass, field

from culpa_lab.engine.steps import Sampling


@dataclass(frozen=True, slots=True)
class NewRequest:
    """A request as it enters the engine core. `stop_tokens` end the answer unless `ignore_eos`."""

    id: str
    prompt: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    stop_tokens: frozenset[int] = frozenset()
    ignore_eos: bool = False
    min_tokens: int = 0


@dataclass(slots=True)
class Request:
    """Progress of a request.

    `computed` counts tokens that steps were scheduled for; `placeholders` are tokens that steps in flight will
    sample. `generation` rises with each preemption, so that results of earlier steps are told apart.
    """

    new: NewRequest
    tokens: list[int]
    slot: int = -1
    computed: int = 0
    placeholders: int = 0
    generation: int = 0
    sampled_by: int = -1  # the last step that samples a token for this request
    cached: int = 0  # prompt tokens that the prefix cache had
    preemptions: int = 0
    confirmed: int = 0  # tokens whose steps have ended
    kv: list[list[int]] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    saves: list[tuple[int, list[int]]] = field(default_factory=list)  # (boundary, blocks), not confirmed yet
    registered: int = 0  # full blocks that the prefix cache knows
    _hashes: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, new: NewRequest) -> "Request":
        """A request that nothing was done for yet."""
        return cls(new, list(new.prompt))

    @property
    def id(self) -> str:
        """The request's name."""
        return self.new.id

    @property
    def outputs(self) -> int:
        """Tokens of the answer so far."""
        return len(self.tokens) - len(self.new.prompt)

    @property
    def remaining(self) -> int:
        """Tokens, known or being sampled, that no step was scheduled for."""
        return len(self.tokens) + self.placeholders - self.computed

    def block_hash(self, index: int, block_size: int) -> bytes:
        """A hash of all tokens up to the end of full block `index`."""
        while len(self._hashes) <= index:
            first = len(self._hashes) * block_size
            digest = hashlib.blake2b(self._hashes[-1] if self._hashes else b"", digest_size=16)
            digest.update(array("q", self.tokens[first : first + block_size]).tobytes())
            self._hashes.append(digest.digest())
        return self._hashes[index]
