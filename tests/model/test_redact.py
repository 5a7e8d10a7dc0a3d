"""Secrets are taken out of text, ordinary words of logs and command lines are not, and nothing stays that a
terminal would act upon."""

import string
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from culpa.model.redact import REDACTED, printable, redact

R = REDACTED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # by shape
        ("token hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345 used", f"token {R} used"),
        ("key sk-proj-Ab12Cd34Ef56Gh78", f"key {R}"),
        ("clone with ghp_0123456789abcdefghijABCDEFGHIJ", f"clone with {R}"),
        ("nvapi-0123456789abcdefghijABCDEF", R),
        ("AWS says AKIAIOSFODNN7EXAMPLE", f"AWS says {R}"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl!", f"jwt {R}!"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----\nnext", f"{R}\nnext"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", R),
        # headers
        ("Authorization: Bearer abcdef123456", f"Authorization: Bearer {R}"),
        ("authorization: Basic dXNlcjpwYXNz", f"authorization: Basic {R}"),
        ("{'Authorization': 'Bearer s3cr3t'}", f"{{'Authorization': 'Bearer {R}'}}"),
        ("curl -H 'Authorization: Bearer s3cr3t' http://x", f"curl -H 'Authorization: Bearer {R}' http://x"),
        ("sent Bearer abcdef123456 along", f"sent Bearer {R} along"),
        ("x-api-key: abc", f"x-api-key: {R}"),
        # flags
        ("vllm serve m --api-key hush --port 1", f"vllm serve m --api-key {R} --port 1"),
        ("vllm serve m --api-key=hush --port 1", f"vllm serve m --api-key={R} --port 1"),
        ("vllm serve m --api-key 'a b' --port 1", f"vllm serve m --api-key {R} --port 1"),
        ("vllm serve m --api-key 'a'\"'\"'b' --port 1", f"vllm serve m --api-key {R} --port 1"),
        ("vllm serve m --api-key one2three4 five6seven8 --port 1", f"vllm serve m --api-key {R} --port 1"),
        ("x --hf-token hush", f"x --hf-token {R}"),
        ("x --token hush", f"x --token {R}"),
        ("x --admin-api-key hush", f"x --admin-api-key {R}"),
        ("['--api-key', 'hush', '--port', '1']", f"['--api-key', '{R}', '--port', '1']"),
        ('["--api-key", "hush"]', f'["--api-key", "{R}"]'),
        # assignments and mappings
        ("HF_TOKEN=hush vllm serve m", f"HF_TOKEN={R} vllm serve m"),
        ("export OPENAI_API_KEY='a b'; x", f"export OPENAI_API_KEY={R}; x"),
        ("AWS_SECRET_ACCESS_KEY=abc/def+ghi=", f"AWS_SECRET_ACCESS_KEY={R}"),
        ("MY_DEPLOY_TOKEN=hush", f"MY_DEPLOY_TOKEN={R}"),
        ("DB_PASSWORD=hush,next", f"DB_PASSWORD={R},next"),
        (
            "non-default args: {'api_key': ['hush'], 'port': 1}",
            f"non-default args: {{'api_key': {R}, 'port': 1}}",
        ),
        ("Namespace(api_key='hush', port=1)", f"Namespace(api_key={R}, port=1)"),
        ('{"password": "hush", "port": 1}', f'{{"password": {R}, "port": 1}}'),
        ("?api_key=hush&x=1", f"?api_key={R}&x=1"),
        ("https://s/f?X-Amz-Signature=0ab&x=1", f"https://s/f?X-Amz-Signature={R}&x=1"),
        ("token=AbCdEf0123456789", f"token={R}"),
        # URLs
        ("https://user:pass@host/path", f"https://{R}@host/path"),
        ("postgres://user:p@host", f"postgres://{R}@host"),
        ("pip install git+https://ghtoken@github.com/x/y", f"pip install git+https://{R}@github.com/x/y"),
    ],
)
def test_a_secret_is_taken_out(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--max-num-batched-tokens 2048 --num-speculative-tokens 4 --tokenizer x --tokenizer-mode auto",
        "--enable-prompt-tokens-details --skip-tokenizer-init --probe-tokens 100",
        "--eos-token '</s>' EOS_TOKEN=</s> MAX_TOKEN=100 pad_token='<pad>' bos_token: 1",
        "max_tokens=16 prompt_tokens: 5 cached_tokens=0 next token: hello token=42 token='hello'",
        "hf_hub_download hf_overrides HF_HUB_OFFLINE=1 hf_transfer",
        "Namespace(api_key=None, hf_token=None, password='')",
        "non-default args: {'api_key': [], 'model': '/models/m'}",
        "error: --api-key is required",
        "Bearer authentication is off",
        "sk-learn-based sk-learnable task-0123456789 disk-0123456789 risk-averse-decision",
        "http://127.0.0.1:8000/v1/models mail@host user@host:/path",
        "https://host/path@v1 file:///tmp/a@b",
        "AssertionError: expected 3 tokens, got 4 (key error: 'x')",
        "CUDA_VISIBLE_DEVICES=0,1 VLLM_PP_LAYER_PARTITION=8,8,0",
        "author: x authorizations: 3",
        f"--api-key {R} HF_TOKEN={R} Bearer {R} https://{R}@host",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


SECRETS = st.text(alphabet=string.ascii_letters + string.digits, min_size=13, max_size=40).map("Q7z".__add__)
PLACES = st.sampled_from(
    [
        "--api-key {}",
        "--api-key={}",
        "x --hf-token '{}' y",
        "HF_TOKEN={}",
        "OPENAI_API_KEY='{}' python x",
        '{{"api_key": "{}"}}',
        "{{'api_key': ['{}']}}",
        "api_key='{}'",
        "Authorization: Bearer {}",
        "password: {}",
        "https://user:{}@host/x",
        "https://{}@host/x",
        "hf_{}",
        "sk-{}",
        "client_secret={}&x=1",
        "['serve', '--api-key', '{}']",
    ]
)


@given(
    PLACES, SECRETS, st.text(max_size=40).map(lambda text: f"{text} "), st.text(max_size=40).map(" ".__add__)
)
def test_a_secret_never_survives_whatever_stands_around_it(
    place: str, secret: str, before: str, after: str
) -> None:
    assert secret not in redact(f"{before}{place.format(secret)}{after}")


@given(
    st.one_of(
        st.text(), st.lists(st.tuples(PLACES, SECRETS)).map(lambda x: " ".join(p.format(s) for p, s in x))
    )
)
@example(f"api_key=['{R}', 'x']")
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "a-",
        "a_",
        "--api-key ",
        "api_key=[",
        "api_key=[1,",
        "--api-key '",
        "--api-key 1 ",
        "token=a1",
        "eyJaaaaaaaa.",
        "https://a",
        "x://",
        "'",
        '"\\',
        "sk-",
        "Bearer ",
        "-----BEGIN ",
        "\x1b]",
        "1 ",
    ],
)
def test_hostile_text_takes_no_more_than_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    begun = time.perf_counter()
    redact(text)
    printable(text)
    assert time.perf_counter() - begun < 5.0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;36m(VllmWorker pid=1)\x1b[0;0m ERROR", "(VllmWorker pid=1) ERROR"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07", ""),
        ("\x1b]0;never ends", "]0;never ends"),
        ("\x9b31mred", "red"),
        ("a\x1bcb\x1b7c\x1b(Bd", "abcd"),
        ("\x1b[2J\x1b[H\x1b[?1049h", ""),
        ("50%\r100%\r\nnext\n", "50%\n100%\nnext\n"),
        ("bell\x07 nul\x00 back\x08space\x7f tab\t.", "bell nul backspace tab\t."),
        ("user\u202egnp.exe \u2066x\u2069 \ufeffz\u200bw", "usergnp.exe x zw"),
        ("lone \udc80 surrogate", "lone  surrogate"),
        ("切片 né 👩‍💻", "切片 né 👩‍💻"),
    ],
)
def test_what_a_terminal_would_act_upon_is_removed(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from("\x1b[]m;0\r\n\x07\x9b\\P"))))
def test_printable_text_is_harmless_and_final(text: str) -> None:
    shown = printable(text)
    assert all(
        character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs") for character in shown
    )
    shown.encode("utf-8")
    assert printable(shown) == shown
