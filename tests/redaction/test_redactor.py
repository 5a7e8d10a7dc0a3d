"""What is taken out, what stays, and that hostile text costs no more than its length."""

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.planted import SECRETS

from culpa.redaction import Redactor
from culpa.redaction.table import load_table
from culpa.redaction.walk import learn_all, redact_all

STAYS = (
    "Qwen/Qwen3.8-27B-Instruct-AWQ",
    "deepseek-ai/DeepSeek-V3.2-Exp",
    "commit 97787c7abcde1234567890abcdef1234567890ab",
    "sha256:4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796",
    "NVRM: Xid (PCI:0000:41:00): 31, pid=20619, name=VLLM::Worker_PP, Ch 0000003b, intr 00000000. MMU Fault: ENGINE "
    "GRAPHICS GPCCLIENT_T1_3 faulted @ 0x7f3a_04030000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ",
    "GPU 00000000:41:00.0, UUID GPU-2f3c4d5e-6a7b-8c9d-0e1f-2a3b4c5d6e7f",
    "torch 2.13.0+cu130, CUDA 13.0.88, driver 580.95.05, NCCL 2.28.9+cuda13.0, cuDNN 91400",
    "tensorrt==10.3.0.26 and TensorRT 10.14.1.48",
    "Starting vLLM server on http://127.0.0.1:8000 and http://localhost:8000",
    "listening on 0.0.0.0:8000 and [::1]:8000",
    "see https://docs.vllm.ai/en/latest/usage/troubleshooting.html and https://github.com/vllm-project/vllm/issues/63505",
    "https://huggingface.co/Qwen/Qwen3-8B/resolve/main/config.json",
    "max_tokens=16, eos_token_id=151645, pad_token_id=None, num_tokens: 27525, prompt_tokens=11990",
    "--max-num-batched-tokens 8192 --tokenizer-mode auto --served-model-name qwen",
    "cache_key=3f2a9c1b7e5d4f6a8b0c2d4e6f8a0b1c, routing_key: shard-0017-alpha-22",
    "key=value, sort_keys=True, keys: 12",
    "tokens/s: 284.3, token throughput 1,024.5",
    "chatcmpl-84faf5080e416 cls424qxc6cm.py:1195",
    "Session b088c6003805. Question: What is the access code of station P6N9?",
    "(Worker_PP1 pid=20619) ERROR 12-01 15:19:42 [multiproc_executor.py:71] WorkerProc hit an exception.",
    'File "vllm/v1/worker/gpu_model_runner.py", line 3645, in _model_forward',
    "torch::cuda::synchronize() at c10/cuda/CUDAException.cpp:43",
    "at::native::_GLOBAL__N__abc123::fd_forward<float>",
    "2026-12-01T15:19:42+0000 localhost kernel: usb 1-1",
    "world_size=3 rank=1 local_rank=1 distributed_init_method=tcp://127.0.0.1:41523 backend=nccl",
    "password is required, authentication token missing, bearer tokens are supported",
    "--api-key is not set; no Authorization header",
    "compilation_config={'mode': 3, 'backend': 'inductor', 'custom_ops': ['none'], 'cudagraph_capture_sizes': [1, 2]}",
    "image vllm/vllm-openai:v0.32.0@sha256:4f5e6d7c8b9a",
    "shape torch.Size([1, 2048]), stride (2048, 1), 12:34:56.789",
    "vLLM 0.32.0.1 build 1.2.3.4, libcublas.so.13.1.0.3",
    "huggingface-cli login failed, docker login needed; self.private.method(x) torch.private.nn",
    "VLLM_USE_V2_MODEL_RUNNER=0 VLLM_PP_LAYER_PARTITION=23,23,18 CUDA_LAUNCH_BLOCKING=1 NCCL_DEBUG=INFO",
    "host memory 23.5 GiB, host buffer freed, from host to device, Host is up",
    "HF_HUB_ENABLE_HF_TRANSFER=1 TOKENIZERS_PARALLELISM=false HF_HOME=/models",
    "secret: None, api_key=None, token='', password=null",
    "A secret is found in pieces; the password was wrong; the api key is required",
    "the hidden token is 42; the next token is ' Paris'",
    "content-type: application/json, x-request-id: 9f3c",
    "执行模式 graphs，PP=3，token 数 27,525",
)
GONE = (
    ("vllm serve m --api-key abc", "abc"),
    ("vllm serve m --api-key=S3cret-key --port 1", "S3cret-key"),
    ("vllm serve m --api-key first-key-11 second-key-22 --port 1", "second-key-22"),
    ("non-default args: {'api_key': ['S3cret-key-1', 'S3cret-key-2']}", "S3cret-key-2"),
    ("['vllm', 'serve', '--api-key', 'S3cret-key']", "S3cret-key"),
    ("(('HF_TOKEN', 'plainvalue1'),)", "plainvalue1"),
    ('{\\"api_key\\": \\"S3cret-key\\"}', "S3cret-key"),
    ("export MYSQL_PASS=hunter2hunter2", "hunter2hunter2"),
    ("REDIS_URL=redis://:p4ss@10.0.0.1:6379", "p4ss@"),
    ("postgresql+asyncpg://svc:Geheim99@db.internal/x", "Geheim99"),
    ("x-api-key: plain-value-77", "plain-value-77"),
    ("'X-Goog-Api-Key': 'plain-value-77'", "plain-value-77"),
    ("Authorization: Token 9944b09199c62bcf9418", "9944b09199c6"),
    ("authorization=Digest username=maria response=6629fae4", "6629fae4"),
    ("client_secret=abc123def456ghi789", "abc123def456"),
    ("apiKey: 'camelCase-1234'", "camelCase-1234"),
    ("clientSecret=camelCase-1234", "camelCase-1234"),
    ("private_key: 'MC4CAQAwBQYDK2Vw'", "MC4CAQAwBQ"),
    ("SECRET_KEY=django-insecure-8x&y", "django-insecure"),
    ("curl -u admin:Geheim99 http://127.0.0.1", "Geheim99"),
    ("ssh frank@node-17 uptime", "frank"),
    ("(RayWorkerWrapper pid=880, ip=10.0.0.12) ERROR", "10.0.0.12"),
    ("tcp://192.168.7.11:29500", "192.168.7.11"),
    ("http://[fd00:1234::5]:8000", "fd00:1234::5"),
    ("--master-addr node-17 --nnodes 2", "node-17"),
    ("MASTER_ADDR=train17.example-corp.io", "train17"),
    ('INFO: 85.214.132.117:51234 - "POST /v1/chat/completions', "85.214.132.117"),
    ("vllm.default.svc.cluster.local:8000", "vllm.default"),
    ("Received request chatcmpl-1: prompt: 'tell nobody', params: SamplingParams(", "tell nobody"),
    ("'messages': [{'role': 'user', 'content': 'tell [nobody]'}], 'n': 1", "nobody"),
    ('{"role": "user", "content": "tell \\"nobody\\" this"}', "nobody"),
    ("PGPASSWORD=hunter2hunter2 psql", "hunter2hunter2"),
    ("wandb login 7f3a9c2e5b8d1f4a6c9e2b5d8f1a4c7e0b3d6f9a", "7f3a9c2e5b"),
    ("wandb login --relogin 7f3a9c2e5b8d1f4a6c9e2b5d8f1a4c7e0b3d6f9a", "7f3a9c2e5b"),
    ("docker login ghcr.io -u maria -p Geheim99x", "Geheim99x"),
    ("sshpass -pGeheim99x ssh node", "Geheim99x"),
    ("machine huggingface.co login maria password Geheim99x", "Geheim99x"),
    ("kubectl create secret generic s --from-literal=token=Geheim99x", "Geheim99x"),
    ("ALIBABA: LTAI5tQ7X3M5P9R2T8V4W6Z1", "LTAI5tQ7X3"),
    ('"private_key_id": "7f3a9c2e5b8d1f4a6c9e2b5d8f1a4c7e0b3d6f9a"', "7f3a9c2e5b"),
    (
        "https://s3.amazonaws.com/m?X-Amz-Credential=AKIAQ7X3M5P9R2T8V4W6%2F2026&X-Amz-Signature=7f3a9c2e5b8d",
        "7f3a9c2e",
    ),
    ("https://db01.prod.example.com:5432", "db01"),
    ("connect to gpu01.corp.example.com failed", "gpu01"),
    ("ls ~maria/models", "maria"),
    ("the password is 'Geheim-99x'", "Geheim-99x"),
    ("Generated response cmpl-1: output: 'tell nobody', output_token_ids: [1]", "tell nobody"),
    ("node-b:904:1311 [2] NCCL INFO transport/shm.cc:114 -> 2", "node-b"),
    ("prompt_token_ids: [101, 2023, 2003], lora", "2023"),
)


def redacted(text: str) -> str:
    redactor = Redactor()
    redactor.learn(text)
    return redactor.text(text)


@pytest.mark.parametrize("text", STAYS)
def test_what_is_public_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(("text", "private"), GONE)
def test_what_is_private_goes(text: str, private: str) -> None:
    assert private not in redacted(text)


def test_the_words_around_a_secret_stay() -> None:
    shown = redacted(
        "HF_TOKEN=hf_aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567 vllm serve m --api-key 'a b c' --port 80"
    )
    assert shown == "HF_TOKEN=[redacted] vllm serve m --api-key [redacted] --port 80"


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_SHAPES: tuple[Callable[[random.Random], str], ...] = (
    lambda chance: "hf_" + _word(chance, 34),
    lambda chance: "sk-proj-" + _word(chance, 40),
    lambda chance: "ghp_" + _word(chance, 36),
    lambda chance: (
        "xoxb-" + "".join(chance.choice("0123456789") for _ in range(11)) + "-" + _word(chance, 24)
    ),
    lambda chance: "nvapi-" + _word(chance, 40),
    lambda chance: "glpat-" + _word(chance, 20),
    lambda chance: f"eyJ{_word(chance, 20)}.eyJ{_word(chance, 30)}.{_word(chance, 40)}",
)
GLUE = ("", "\x1b[31m", "\x1b[0m", "\u200b", "\u2060", "\u202e", "\n", "\n  ", "\\\n", "\r\n", "\x00")
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_LINES = (
    "{}",
    "token {} accepted",
    "HF_TOKEN={} VLLM_X=1",
    "'api_key': '{}', 'port': 8000",
    "(Worker_PP1 pid=9) ERROR 12-01 15:19:42 [x.py:1] --api-key {} --port 80",
    "Authorization: Bearer {}",
    "https://user:{}@huggingface.co/x",
    '{{"headers": {{"x-api-key": "{}"}}}}',
)


def _word(chance: random.Random, length: int) -> str:
    """Random characters with a figure among every four, as tokens have them."""
    return "".join(chance.choice("0123456789" if place % 4 == 3 else _ALPHABET) for place in range(length))


@given(
    seed=st.integers(0, 2**32),
    shape=st.sampled_from(_SHAPES),
    line=st.sampled_from(_LINES),
    where=st.floats(0.25, 0.9),
    glue=st.sampled_from(GLUE),
)
def test_no_piece_of_a_secret_survives_wherever_it_is_broken(
    seed: int, shape: Callable[[random.Random], str], line: str, where: float, glue: str
) -> None:
    secret = shape(random.Random(seed))
    at = int(len(secret) * where)
    shown = redacted(line.format(f"{secret[:at]}{glue}{secret[at:]}"))
    assert not any(secret[start : start + 8] in shown for start in range(6, len(secret) - 7))


@given(
    seed=st.integers(0, 2**32),
    lines=st.lists(st.sampled_from(STAYS), max_size=4),
    prefix=st.sampled_from(["", "(EngineCore pid=7) INFO 12-01 15:19:42 [core.py:1] ", "| ", "> "]),
    where=st.integers(4, 30),
)
def test_a_secret_of_the_launch_is_found_in_pieces_behind_prefixes_of_lines(
    seed: int, lines: list[str], prefix: str, where: int
) -> None:
    secret = _word(random.Random(seed), 36)
    redactor = Redactor()
    redactor.learn(f"vllm serve m --api-key {secret}")
    text = "\n".join(
        [*lines, f"{prefix}got {secret[:where]}", f"{prefix}{secret[where:]} from a client", *lines]
    )
    shown = redactor.text(text)
    assert not any(secret[start : start + 12] in shown for start in range(len(secret) - 11))
    assert shown.count("\n") == text.count("\n")


@given(text=st.text(max_size=200) | st.lists(st.sampled_from([one.line for one in SECRETS])).map(" ".join))
def test_twice_is_once_and_lines_stay_and_nothing_hides(text: str) -> None:
    redactor = Redactor()
    redactor.learn(text)
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert once.count("\n") == re.sub(r"\r+\n|\r", "\n", text).count("\n")
    assert not HIDDEN.search(once)


@given(
    value=st.recursive(
        st.text(max_size=20) | st.integers() | st.none() | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=10,
    )
)
def test_documents_of_any_shape_are_walked(value: object) -> None:
    redactor = Redactor()
    document = {"deep": [value, {"key": "variable.MY_TOKEN", "value": "Lantern-4711-zebra"}]}
    learn_all(redactor, document)
    assert "Lantern" not in repr(redact_all(redactor, document))


HOSTILE = (
    "a" * 100_000,
    "key" * 30_000,
    "token=" * 30_000,
    "'" * 100_000,
    "\\" * 100_000,
    "prompt: '" * 20_000,
    "messages=[" * 20_000,
    "a.b-c_" * 30_000,
    "://" * 30_000,
    "http://a" * 25_000,
    "1.2.3." * 30_000,
    "fd00::" * 30_000,
    "-----BEGIN PRIVATE KEY-----" * 7_000,
    "\x1b]" * 100_000,
    "\u202e" * 100_000,
    "x@" * 100_000,
    "/home/" * 30_000,
    "eyJaaaaaaaa." * 16_000,
    "name: TOKEN\n" * 16_000,
    "cookie: a=" * 20_000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_hostile_text_comes_to_an_end(text: str) -> None:
    """What costs as the square of a length, or worse, does not end within the time that a test has."""
    shown = redacted(text)
    assert shown.count("\n") == text.count("\n")
    assert not HIDDEN.search(shown)


def test_every_pattern_finds_its_samples_and_names_its_source() -> None:
    table = load_table()
    assert len(table.shapes) >= 15
    assert len({rule.id for rule in (*table.shapes, *table.places)}) == len(table.shapes) + len(table.places)
