"""culpa-llamacpp's command line: llama-server's grammar, its messages, and the parameters that it sets."""

import sys
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from culpa_llamacpp import main
from culpa_llamacpp.launcher import embedded_model
from culpa_llamacpp.options import OPTIONS, BadArgument, parse_arguments, usage
from culpa_llamacpp.parameters import apply_settings, set_defaults

CacheType = Enum("CacheType", "GGML_TYPE_F16 GGML_TYPE_Q4_0 GGML_TYPE_IQ4_NL")
FlashAttention = Enum(
    "FlashAttention",
    "LLAMA_FLASH_ATTN_TYPE_AUTO LLAMA_FLASH_ATTN_TYPE_ENABLED LLAMA_FLASH_ATTN_TYPE_DISABLED",
)
Speculation = Enum(
    "Speculation",
    "COMMON_SPECULATIVE_TYPE_NONE COMMON_SPECULATIVE_TYPE_NGRAM_MOD COMMON_SPECULATIVE_TYPE_COUNT",
)
LIBRARY = SimpleNamespace(
    ggml_type=CacheType, llama_flash_attn_type=FlashAttention, common_speculative_type=Speculation
)


def params() -> Any:
    """A stand-in for xllamacpp.CommonParams that takes any attribute."""
    draft = SimpleNamespace(mparams=SimpleNamespace())
    return SimpleNamespace(
        model=SimpleNamespace(),
        cpuparams=SimpleNamespace(),
        cpuparams_batch=SimpleNamespace(),
        sampling=SimpleNamespace(),
        speculative=SimpleNamespace(draft=draft, ngram_mod=SimpleNamespace(), ngram_simple=SimpleNamespace()),
    )


def configured(line: str, **environment: str) -> Any:
    target = params()
    set_defaults(target, Path("/m.gguf"))
    apply_settings(target, parse_arguments(line.split(), environment), LIBRARY)
    return target


SET = [
    ("-c 1024", "n_ctx", 1024),
    ("--ctx_size 1024", "n_ctx", 1024),
    ("-c 1 -c 2", "n_ctx", 2),
    ("-np -1", "n_parallel", -1),
    ("", "n_parallel", -1),
    ("-ctv q4_0", "cache_type_v", CacheType.GGML_TYPE_Q4_0),
    ("-ctk iq4_nl", "cache_type_k", CacheType.GGML_TYPE_IQ4_NL),
    ("-fa off", "flash_attn_type", FlashAttention["LLAMA_FLASH_ATTN_TYPE_DISABLED"]),
    ("-fa 1", "flash_attn_type", FlashAttention["LLAMA_FLASH_ATTN_TYPE_ENABLED"]),
    ("--no-cont-batching", "cont_batching", False),
    ("-nocb -cb", "cont_batching", True),
    ("-nkvo", "no_kv_offload", True),
    ("-kvo", "no_kv_offload", False),
    ("--host ::1,127.0.0.1", "hostnames", ["::1", "127.0.0.1"]),
    ("-a x,y", "model_alias", {"x", "y"}),
    ("-ngl all", "n_gpu_layers", -2),
    ("-ngl 7", "n_gpu_layers", 7),
    ("--rope-scale 4", "rope_freq_scale", 0.25),
    ("-fit off", "fit_params", False),
    ("--timeout 5", "timeout_write", 5),
    ("--timeout 5", "timeout_read", 5),
]


@pytest.mark.parametrize(("line", "attribute", "value"), SET)
def test_an_option_sets_its_parameter(line: str, attribute: str, value: object) -> None:
    assert getattr(configured(line), attribute) == value


def test_one_thread_is_the_default_and_the_users_number_wins() -> None:
    plain, three, both = configured(""), configured("-t 3"), configured("-tb 2 -t 3")
    assert (plain.cpuparams.n_threads, plain.cpuparams_batch.n_threads) == (1, 1)
    assert (three.cpuparams.n_threads, three.cpuparams_batch.n_threads) == (3, 3)
    assert (both.cpuparams.n_threads, both.cpuparams_batch.n_threads) == (3, 2)


def test_nested_parameters_are_set() -> None:
    target = configured("--spec-type ngram-mod,none --spec-ngram-mod-n-min 5 -md d.gguf -s -1")
    assert [kind.name.removeprefix("COMMON_SPECULATIVE_TYPE_") for kind in target.speculative.types] == [
        "NGRAM_MOD",
        "NONE",
    ]
    assert target.speculative.ngram_mod.n_min == 5
    assert target.speculative.draft.mparams.path == "d.gguf"
    assert target.sampling.seed == 2**32 - 1


def test_variables_are_read_and_the_command_line_wins() -> None:
    assert configured("", LLAMA_ARG_CTX_SIZE="7").n_ctx == 7
    assert configured("-c 8", LLAMA_ARG_CTX_SIZE="7").n_ctx == 8
    assert configured("", LLAMA_ARG_CONT_BATCHING="off").cont_batching is False


def test_a_template_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "t.jinja"
    file.write_text("{{ x }}")
    assert configured(f"--chat-template-file {file}").chat_template == "{{ x }}"


REFUSED = [
    ("--nope", {}, "error: invalid argument: --nope"),
    ("--ctx-size=4", {}, "error: invalid argument: --ctx-size=4"),
    ("word", {}, "error: invalid argument: word"),
    ("-c", {}, 'error while handling argument "-c": expected value for argument'),
    ("-c x", {}, 'error while handling argument "-c": invalid value: "x"'),
    ("--temp x", {}, 'error while handling argument "--temp": invalid value: "x"'),
    ("-np 0", {}, "error: invalid value for n_parallel"),
    ("-ctv q4_k", {}, "Unsupported cache type: q4_k"),
    ("-fa maybe", {}, "error: unknown value for --flash-attn: 'maybe'"),
    ("--spec-type x", {}, "unknown speculative type: x"),
    ("--spec-type count", {}, "unknown speculative type: count"),
    ("--load-mode x", {}, 'error while handling argument "--load-mode": invalid value'),
    ("--rope-scale 0", {}, 'error while handling argument "--rope-scale"'),
    ("--draft-max 3", {}, "the argument has been removed. use --spec-draft-n-max"),
    ("--chat-template-file /none", {}, "No such file"),
    ("", {"LLAMA_ARG_CONT_BATCHING": "maybe"}, 'environment variable "LLAMA_ARG_CONT_BATCHING"'),
]


@pytest.mark.parametrize(("line", "environment", "message"), REFUSED)
def test_what_cannot_be_carried_out_is_refused_as_llama_server_does(
    line: str, environment: dict[str, str], message: str
) -> None:
    with pytest.raises(BadArgument) as raised:
        configured(line, **environment)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_unknown_option_ends_with_exit_code_1_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--nope"]) == 1
    streams = capsys.readouterr()
    assert (streams.out, streams.err) == ("", "error: invalid argument: --nope\n")


def test_no_name_stands_for_two_options() -> None:
    names = [name for option in OPTIONS for name in (*option.names, *option.off)]
    assert len(names) == len(set(names))
    assert len(OPTIONS) >= 50


def test_help_lists_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert text.rstrip() == usage()
    for option in OPTIONS:
        for name in (*option.names, *option.off):
            assert name in text


def test_versions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("culpa-llamacpp ")


def test_a_missing_wheel_is_one_line_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert main([]) == 1
    error = capsys.readouterr().err
    assert "pip install 'culpa[llamacpp]'" in error
    assert error.count("\n") == 1


def test_missing_weights_are_one_line_with_two_ways_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace())
    monkeypatch.setattr("culpa_llamacpp.launcher.find_spec", lambda name: None)
    assert main([]) == 1
    assert "give one with -m FILE" in capsys.readouterr().err


def test_a_package_without_the_weights_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr("culpa_llamacpp.launcher.find_spec", lambda name: spec)
    assert embedded_model() is None
