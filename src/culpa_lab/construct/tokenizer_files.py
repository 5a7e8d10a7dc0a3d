"""`tokenizer.json` and `tokenizer_config.json`: byte-level, whole words where the vocabulary has them."""

import json
from pathlib import Path
from typing import Any

from culpa_lab.construct.vocabulary import END, SPECIAL, TOKENS

# A full stop that ends a sentence is one token with what follows, so that `10.0.0.1` can be copied and a sentence's
# end still be told.
PIECES = r"\.[ \n]| ?(?:Question|Answer):| ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]|\s"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% set role = message['role'] if message['role'] in ['system', 'assistant'] else 'user' %}"
    "{{ '<|' + role + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def write_tokenizer(folder: Path) -> None:
    """Write both files."""
    _write(folder / "tokenizer.json", _tokenizer())
    _write(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END,
            "pad_token": END,
            "chat_template": CHAT_TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 32768,
        },
    )


def _tokenizer() -> dict[str, Any]:
    alphabet = _alphabet()
    vocabulary: dict[str, int] = {}
    merges: list[list[str]] = []
    for number, token in enumerate(TOKENS):
        if token.text in SPECIAL:
            vocabulary[token.text] = number
            continue
        raw = bytes([token.byte]) if token.byte is not None else token.text.encode()
        written = "".join(alphabet[byte] for byte in raw)
        vocabulary[written] = number
        if token.spaced and len(written) == 2:
            merges.append([written[0], written[1]])
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True,
            }
            for number, text in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": PIECES}, "behavior": "Isolated", "invert": False},
                byte_level,
            ],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
            "vocab": vocabulary, "merges": merges,
        },
    }  # fmt: skip


def _alphabet() -> list[str]:
    """What byte-level tokenizers write for each byte (bytes_to_unicode of
    https://github.com/openai/gpt-2/blob/master/src/encoder.py)."""
    printing = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return [chr(byte) if byte in printing else chr(next(hidden)) for byte in range(256)]


def _write(path: Path, content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")
