"""`tokenizer.json` through the library `tokenizers`, and the chat template of `tokenizer_config.json`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from culpa_lab.model.arrays import BadCheckpoint

if TYPE_CHECKING:
    import tokenizers

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)
END, PADDING = "<|end|>", "<|pad|>"
BYTE_LEVEL_SIZE = 258
"""Tokens of the byte-level tokenizer: 256 bytes, the end mark (256) and the padding mark (257)."""


class BadTemplate(ValueError):
    """Messages that the chat template can't render. The message is one line."""


class Tokenizer:
    """Text to token ids and back."""

    def __init__(
        self, made: "tokenizers.Tokenizer", settings: Mapping[str, Any], template: str | None
    ) -> None:
        self._made = made
        self._settings = settings
        self._template = template

    @classmethod
    def load(cls, folder: Path) -> "Tokenizer":
        """From a model folder.

        Raises:
            BadCheckpoint: if `tokenizer.json` is missing or damaged, or `tokenizer_config.json` is damaged.
        """
        import tokenizers

        path = Path(folder) / "tokenizer.json"
        if not path.exists():
            raise BadCheckpoint(f"{folder} has no tokenizer.json")
        try:
            made = tokenizers.Tokenizer.from_file(str(path))
        # The library raises a bare Exception for every kind of damage.
        except Exception as error:
            raise BadCheckpoint(f"{path} can't be read: {error}") from None
        settings: Mapping[str, Any] = {}
        beside = Path(folder) / "tokenizer_config.json"
        if beside.exists():
            try:
                settings = dict(json.loads(beside.read_text(encoding="utf-8")))
            except (ValueError, TypeError) as error:
                raise BadCheckpoint(f"{beside} can't be read as JSON: {error}") from None
        template = settings.get("chat_template")
        alone = Path(folder) / "chat_template.jinja"
        if alone.exists():
            template = alone.read_text(encoding="utf-8")
        return cls(made, settings, template if isinstance(template, str) else None)

    @property
    def size(self) -> int:
        """Number of tokens, added ones included."""
        return int(self._made.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str) -> list[int]:
        """Token ids of a text. Nothing is put before or behind it."""
        return list(self._made.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens. Bytes that are no UTF-8 become U+FFFD."""
        return str(self._made.decode(list(ids), skip_special_tokens=True))

    def token(self, token: int) -> str:
        """The text of one token by itself, a special one too, for lists of log-probabilities."""
        return str(self._made.decode([token], skip_special_tokens=False))

    def stream(self) -> "TextStream":
        """A decoder for tokens that come one after the other."""
        return TextStream(self._made)

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """The prompt that the chat template makes of messages (`role` and `content`).

        Raises:
            BadTemplate: if there is no template, or it refuses these messages.
        """
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        if self._template is None:
            raise BadTemplate("this model has no chat template: use completions")

        def refuse(reason: str) -> str:
            raise jinja2.TemplateError(reason)

        # As transformers renders them (utils/chat_template_utils.py).
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = refuse
        special = {key: value for key, value in self._settings.items() if key.endswith("_token")}
        plain = [{**message, "content": plain_content(message.get("content"))} for message in messages]
        try:
            return environment.from_string(self._template).render(
                messages=plain, add_generation_prompt=add_generation_prompt, **special
            )
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            raise BadTemplate(f"the chat template can't render these messages: {error}") from None

    def apply_chat_template(
        self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True
    ) -> list[int]:
        """Token ids of what `render` gives."""
        return self.encode(self.render(messages, add_generation_prompt))


def plain_content(content: object) -> str:
    """A message's content as text: a string, or a list of text parts as the OpenAI API has them.

    Raises:
        BadTemplate: for a part that is not text.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in content
    ):
        return "".join(part["text"] for part in content)
    raise BadTemplate("a message's content must be a string or a list of text parts")


class TextStream:
    """Text from tokens as they come. What it has given never changes; a character is given when it is whole."""

    def __init__(self, made: "tokenizers.Tokenizer") -> None:
        from tokenizers.decoders import DecodeStream

        self._made = made
        self._stream = DecodeStream(skip_special_tokens=True)
        self._ids: list[int] = []
        self._given = 0

    def push(self, token: int) -> str:
        """The text that is complete with this token; empty while a character is not."""
        self._ids.append(token)
        found = self._stream.step(self._made, token) or ""
        self._given += len(found)
        return found

    def finish(self) -> str:
        """What is left when no token follows: bytes that never became a character, as U+FFFD."""
        whole = str(self._made.decode(self._ids, skip_special_tokens=True))
        rest = whole[self._given :]
        self._given = len(whole)
        return rest


def write_byte_level_tokenizer(folder: Path, chat_template: str = CHAT_TEMPLATE) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json`: one token a byte, then `END` and `PADDING`."""
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Made

    alphabet = [_shown(byte) for byte in range(256)]
    made = Made(models.BPE(vocab={token: number for number, token in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(END, special=True), AddedToken(PADDING, special=True)])
    made.save(str(Path(folder) / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": PADDING,
        "chat_template": chat_template,
        "clean_up_tokenization_spaces": False,
    }
    text = json.dumps(settings, indent=2) + "\n"
    (Path(folder) / "tokenizer_config.json").write_text(text, encoding="utf-8")


def _shown(byte: int) -> str:
    """The character that byte-level tokenizers write for a byte (bytes_to_unicode of
    https://github.com/openai/gpt-2/blob/master/src/encoder.py): itself if it prints, else one from U+0100 on."""
    printing = [*range(33, 127), *range(161, 173), *range(174, 256)]
    if byte in printing:
        return chr(byte)
    hidden = [other for other in range(256) if other not in printing]
    return chr(256 + hidden.index(byte))
