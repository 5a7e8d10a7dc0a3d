"""The shipped files: small, made by the script, and a tokenizer that loses nothing."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.lab.checkpoint.asking import FOLDER, chat, tokenizer

from culpa.probes.prompts import filler_sample
from culpa_lab.construct.__main__ import main
from culpa_lab.construct.assemble import CONFIG
from culpa_lab.construct.vocabulary import SPECIAL, TOKENS
from culpa_lab.model import ModelConfig

FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def test_the_script_makes_the_shipped_files_byte_for_byte(tmp_path: Path) -> None:
    assert main(["--out", str(tmp_path)]) == 0
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(made) == FILES
    assert [name for name in FILES if made[name] != (FOLDER / name).read_bytes()] == []


def test_the_shipped_files_take_less_than_two_megabytes() -> None:
    assert sum((FOLDER / name).stat().st_size for name in FILES) < 2_000_000


def test_the_configuration_is_the_incidents() -> None:
    config = ModelConfig.load(FOLDER)
    assert config == CONFIG
    assert config.num_hidden_layers == 64
    assert [config.is_linear(layer) for layer in range(4)] == [True, True, True, False]


def test_no_two_tokens_have_the_same_text() -> None:
    assert len({token.text for token in TOKENS}) == len(TOKENS) == tokenizer().size


@given(st.text())
def test_every_text_survives_the_tokenizer(text: str) -> None:
    if not any(special in text for special in SPECIAL):
        assert tokenizer().decode(tokenizer().encode(text)) == text


def test_filler_takes_a_realistic_number_of_tokens() -> None:
    text = filler_sample(4000)
    assert 0.15 < len(tokenizer().encode(text)) / len(text) < 0.3


def test_messages_become_turns() -> None:
    tokens = [tokenizer().token(one) for one in chat("Say hello.")]
    assert tokens == ["<|user|>", "Say", " hello", ".", "<|end|>", "<|assistant|>"]
