"""Make a tiny random Qwen3-Next checkpoint: Gated-DeltaNet layers, every fourth with full attention.

    /path/to/engine/python tests/real/make_checkpoint.py FOLDER [--layers 16]

Run it with the Python of the engine's environment: it needs torch and transformers, culpa doesn't. The same
seed gives the same weights, so runs can be compared. The model knows nothing; it is there to be served.
"""

import argparse
import sys
from pathlib import Path

SEED = 20260916
CHAT_TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


def save_tokenizer(folder: Path) -> None:
    """A byte-level BPE without merges: 256 bytes, one end mark, one padding mark."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    marks = ["<|end|>", "<|pad|>"]
    vocabulary = {token: number for number, token in enumerate([*alphabet, *marks])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=marks[0], pad_token=marks[1])
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)


def save_model(folder: Path, layers: int) -> int:
    """Random bfloat16 weights from a fixed seed. Returns the number of parameters."""
    import torch
    from transformers import Qwen3NextConfig, Qwen3NextForCausalLM

    torch.manual_seed(SEED)
    config = Qwen3NextConfig(
        vocab_size=512,
        hidden_size=128,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=64,
        shared_expert_intermediate_size=64,
        max_position_embeddings=32768,
        eos_token_id=256,
        pad_token_id=257,
        bos_token_id=None,
        torch_dtype="bfloat16",
    )
    model = Qwen3NextForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(folder, safe_serialization=True)
    return sum(parameter.numel() for parameter in model.parameters())


def main() -> int:
    """Read the arguments, write the checkpoint, say what it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=16)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    save_tokenizer(arguments.folder)
    parameters = save_model(arguments.folder, arguments.layers)
    print(f"{arguments.folder}: {arguments.layers} layers, {parameters} parameters, seed {SEED}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
