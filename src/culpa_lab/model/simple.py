"""The model without an engine: one request, plain arrays. For tests, the checkpoint's builder, and to read."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from culpa_lab.model.arrays import Array
from culpa_lab.model.config import ModelConfig
from culpa_lab.model.launch import Workspace
from culpa_lab.model.layer import GdnState, decode_layer, embed, logits, prefill_layer
from culpa_lab.model.rotary import Rotary
from culpa_lab.model.weights import load_embedding, load_head, load_layers


class PlainCache:
    """Keys and values [tokens, kv heads, head dim] that grow; `k` and `v` are views of what is there."""

    def __init__(self, kv_shape: tuple[int, int]) -> None:
        self._keys = np.zeros((256, *kv_shape), np.float32)
        self._values = np.zeros_like(self._keys)
        self.length = 0

    def write(self, k: Array, v: Array, /) -> None:
        """Append."""
        end = self.length + len(k)
        if end > len(self._keys):
            room = np.zeros((max(end, 2 * len(self._keys)), *k.shape[1:]), np.float32)
            self._keys, self._values = (
                np.concatenate([old[: self.length], room[self.length :]])
                for old in (self._keys, self._values)
            )
        self._keys[self.length : end] = k
        self._values[self.length : end] = v
        self.length = end

    def read(self) -> Iterator[tuple[Array, Array]]:
        """All in one page."""
        yield self.k, self.v

    @property
    def k(self) -> Array:
        """Keys, a view: writing to it changes the cache."""
        return self._keys[: self.length]

    @property
    def v(self) -> Array:
        """Values, a view: writing to it changes the cache."""
        return self._values[: self.length]


class Runner:
    """A whole model and the state of one request.

    Attributes:
        config: the model's shape.
        caches: one entry a layer: `GdnState` (conv [channels, kernel - 1], recurrent [value heads, key dim, value
            dim]) or `PlainCache` (k and v [tokens, kv heads, head dim]). Writing to their arrays changes what the
            model remembers.
        position: tokens seen so far.
    """

    def __init__(self, folder: Path, dtype: str = "float32") -> None:
        """Load all layers.

        Raises:
            BadCheckpoint: if the folder can't be used.
        """
        self.config = ModelConfig.load(folder)
        self.layers = load_layers(folder, self.config, 0, self.config.num_hidden_layers, dtype)
        self.embedding = load_embedding(folder, self.config, dtype)
        self.head = load_head(folder, self.config, dtype)
        self._rotary = Rotary(self.config)
        self._workspace = Workspace()
        self.reset()

    def reset(self) -> None:
        """Forget the request."""
        self.position = 0
        self.caches: list[GdnState | PlainCache] = [
            GdnState(
                np.zeros(self.config.conv_state_shape, np.float32),
                np.zeros(self.config.recurrent_state_shape, np.float32),
            )
            if self.config.is_linear(layer)
            else PlainCache(self.config.kv_shape_per_token)
            for layer in range(self.config.num_hidden_layers)
        ]

    def prefill(self, tokens: Sequence[int], chunk: int = 2048, every: bool = False) -> Array:
        """Read tokens, `chunk` at a time, after what was read before.

        Returns:
            The logits [vocabulary] after the last token, or [tokens, vocabulary] with `every`.

        Raises:
            ValueError: if there are no tokens.
        """
        if not len(tokens):
            raise ValueError("a prompt needs at least one token")
        found = []
        for first in range(0, len(tokens), chunk):
            x = self._embedded(tokens[first : first + chunk])
            rope = self._rotary.tables(np.arange(self.position, self.position + len(x)))
            for weights, cache in zip(self.layers, self.caches, strict=True):
                prefill_layer(x, weights, cache, rope, self._workspace)
            self.position += len(x)
            if every:
                found.append(self._logits(x))
        last: Array = np.concatenate(found) if every else self._logits(x[-1:])[0]
        return last

    def decode(self, token: int) -> Array:
        """Read one token, step by step through every layer. Returns the logits [vocabulary] after it."""
        x = self._embedded([token])
        rope = self._rotary.tables([self.position])
        for weights, cache in zip(self.layers, self.caches, strict=True):
            if isinstance(cache, GdnState):
                batch = GdnState(cache.conv[None], cache.recurrent[None])
                decode_layer(x, weights, batch, rope, self._workspace)
            else:
                decode_layer(x, weights, [cache], rope, self._workspace)
        self.position += 1
        row: Array = self._logits(x)[0]
        return row

    def generate(self, tokens: Sequence[int], limit: int, chunk: int = 2048) -> list[int]:
        """Continue a prompt with the likeliest token each time, until an end token (not included) or `limit`."""
        made: list[int] = []
        scores = self.prefill(tokens, chunk)
        while len(made) < limit:
            token = int(scores.argmax())
            if token in self.config.eos_token_ids:
                break
            made.append(token)
            if len(made) < limit:
                scores = self.decode(token)
        return made

    def _embedded(self, tokens: Sequence[int]) -> Array:
        x = np.empty((len(tokens), self.config.hidden_size), np.float32)
        embed(np.asarray(tokens, np.int64), self.embedding, x)
        return x

    def _logits(self, x: Array) -> Array:
        out = np.empty((len(x), self.config.vocab_size), np.float32)
        logits(x, self.head, out, self._workspace)
        return out
