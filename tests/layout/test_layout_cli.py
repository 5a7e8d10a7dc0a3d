"""`culpa layout` as people call it: models, launches, comparisons, JSON, pictures, and bad input."""

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from tests.layout.shapes import INCIDENT, dense_config, incident_config

import culpa.report
from culpa.cli.app import main
from culpa.report.layout_document import LayoutDocument, layout_schema

PARTITION = ("--partition", "23,23,18", "--max-model-len", "131072")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["layout", *arguments])
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, out, err


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code, out, err = run(capsys, "--json", *arguments)
    assert code in (0, 1), err
    document = json.loads(out)
    assert isinstance(document, dict)
    return document


def test_the_incident_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    document = as_json(capsys, str(INCIDENT), *PARTITION, "--blocks", "492")
    LayoutDocument.model_validate(document)
    assert document["schema"] == "culpa.layout/1"
    assert document["capacity_tokens"] == 370_617
    assert document["blocks_per_request"] == 174
    assert (document["block_size"], document["page_bytes"]) == (784, 3_211_264)
    assert document["bytes_per_block"] == 6 * 3_211_264
    assert document["period"] == 4
    assert document["layer_types"].count("full_attention") == 16
    assert [stage["layers"] for stage in document["stages"]] == [[0, 22], [23, 45], [46, 63]]
    assert [stage["full_attention"] for stage in document["stages"]] == [5, 6, 5]
    assert [stage["recurrent"] for stage in document["stages"]] == [18, 17, 13]
    assert [stage["group_widths"] for stage in document["stages"]] == [
        [6, 6, 6, 5],
        [6, 6, 5, 6],
        [4, 4, 5, 5],
    ]
    assert [group["type"] for group in document["groups"]] == ["linear_attention"] * 3 + ["full_attention"]
    assert document["limiting_stage"] == 0
    assert {"id", "level", "text"} <= document["findings"][0].keys()


def test_the_schema_file_is_that_of_the_document() -> None:
    file = Path(culpa.report.__file__).parent / "layout.schema.json"
    if os.environ.get("CULPA_UPDATE_GOLDEN"):
        file.write_text(layout_schema(), encoding="utf-8")
    assert file.read_text(encoding="utf-8") == layout_schema()


def test_strides_and_offsets_lie_inside_the_allocation(capsys: pytest.CaptureFixture[str]) -> None:
    document = as_json(capsys, str(INCIDENT), *PARTITION, "--blocks", "492")
    for stage in document["stages"]:
        for place in stage["storage"]:
            assert place["layer_stride"] == 492 * 3_211_264
            assert place["offset"] + len(place["layers"]) * place["layer_stride"] <= place["size"]
            assert place["size"] == stage["bytes_per_block"] * 492


def test_before_0_30_layers_share_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    document = as_json(capsys, str(INCIDENT), *PARTITION, "--blocks", "492", "--engine-version", "0.28.0")
    tensors = document["stages"][0]["storage"]
    assert [tensor["shared_by"] for tensor in tensors][:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert tensors[-1]["shared_by"] == [20, 21, 22]
    assert document["capacity_tokens"] == 370_617


def test_a_launch_is_read_with_its_variables(capsys: pytest.CaptureFixture[str]) -> None:
    document = as_json(
        capsys, "--blocks", "492", "--", "VLLM_PP_LAYER_PARTITION=23,23,18", "vllm", "serve", str(INCIDENT), "-pp", "3",
        "--max-model-len", "128K", "--enable-prefix-caching", "--port", "8000",
    )  # fmt: skip
    assert document["partition"] == [23, 23, 18]
    assert document["capacity_tokens"] == 370_617


def test_a_launch_and_the_same_flags_behind_a_model_agree(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [
        "-pp", "2", "--tensor-parallel-size=2", "--max-model-len", "65536", "--kv-cache-dtype", "fp8",
        "--no-enable-prefix-caching", "--block-size", "32", "--speculative-config",
        '{"method": "mtp", "num_speculative_tokens": 2}', "--num-gpu-blocks-override", "700",
    ]  # fmt: skip
    launched = as_json(capsys, "--engine-version", "0.32.0", "--", "vllm", "serve", str(INCIDENT), *flags)
    modelled = as_json(capsys, str(INCIDENT), *flags)
    assert launched == modelled
    assert modelled["mamba_cache_mode"] == "none"
    assert modelled["num_blocks"] == 700


def test_a_config_json_is_as_good_as_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert as_json(capsys, str(INCIDENT / "config.json"), *PARTITION) == as_json(
        capsys, str(INCIDENT), *PARTITION
    )


def test_without_memory_the_capacity_is_unknown_and_it_is_said_how_to_get_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = as_json(capsys, str(INCIDENT), *PARTITION)
    assert (document["capacity_tokens"], document["num_blocks"], document["limiting_stage"]) == (
        None,
        None,
        None,
    )
    _, out, _ = run(capsys, str(INCIDENT), *PARTITION)
    assert "--gpu-memory" in out


def test_memory_is_one_size_or_one_for_each_stage(capsys: pytest.CaptureFixture[str]) -> None:
    document = as_json(capsys, str(INCIDENT), *PARTITION, "--kv-memory", "8GB,9GiB,7.5GB")
    assert [stage["available_bytes"] for stage in document["stages"]] == [8 * 10**9, 9 << 30, 7_500_000_000]


@pytest.mark.parametrize(
    ("split", "expected"), [("auto", [21, 22, 21]), ("aligned", [20, 24, 20]), ("23,23,18", [23, 23, 18])]
)
def test_splits_by_name(capsys: pytest.CaptureFixture[str], split: str, expected: list[int]) -> None:
    assert as_json(capsys, str(INCIDENT), "-pp", "3", "--partition", split)["partition"] == expected


def test_the_comparison_explains_two_capacities(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "compare", str(INCIDENT), "--partition", "23,23,18", "--partition", "24,24,16", "--max-model-len", "131072",
        "--capacity", "370617", "--capacity", "340485",
    ]  # fmt: skip
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert "one decoder layer less of weights" in " ".join(out.split())
    document = as_json(capsys, *arguments)
    assert document["schema"] == "culpa.layout-comparison/1"
    assert document["explanation"]["blocks"] == [492, 452]
    assert len(document["layouts"]) == 2


@pytest.mark.parametrize("split", ["30,40,-6", "-6,40,30", "64,0,0", "0,64", "70,-6"])
def test_splits_that_only_vllm_accepts_are_drawn_and_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, split: str
) -> None:
    picture = tmp_path / "picture.svg"
    arguments = (str(INCIDENT), f"--partition={split}", "--blocks", "492", "--svg", str(picture))
    code, out, _ = run(capsys, *arguments)
    assert code == 1
    assert "vLLM checks only" in " ".join(out.split())
    ElementTree.parse(picture)
    document = as_json(capsys, *arguments)
    assert "empty_stage" in {finding["id"] for finding in document["findings"]}
    assert all(0 <= layer < 64 for stage in document["stages"] for layer in stage["layers"])


def test_a_comparison_of_three_with_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys,
        "compare",
        str(INCIDENT),
        "--partition",
        "23,23,18",
        "--partition",
        "24,24,16",
        "--partition",
        "auto",
    )
    assert code == 0
    assert "21,22,21" in out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--blocks", "492"), 0), (("--blocks", "5"), 1), (("--gpu-memory", "16GB"), 1), (("-tp", "5"), 1)],
)
def test_the_exit_code_says_whether_something_stands_against_the_launch(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int
) -> None:
    assert run(capsys, str(INCIDENT), *PARTITION, *arguments)[0] == code


def test_an_engine_that_is_not_there_is_said_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(INCIDENT), *PARTITION, "--verify-with-engine")
    assert code == 0
    assert "vLLM was not asked" in out
    assert "0.28.0 and 0.32.0" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give a MODEL"),
        (("nosuch",), "no such folder"),
        (("nosuch", "-pp", "3"), "nosuch"),
        (("-pp", "3"), "name the MODEL"),
        ((str(INCIDENT), "--max-model-lem", "5"), "did you mean --max-model-len?"),
        ((str(INCIDENT), "--partition", "23,x"), "whole numbers"),
        ((str(INCIDENT), "--partition", "23,23,19"), "adds up to 65"),
        ((str(INCIDENT), "-pp", "4", "--partition", "23,23,18"), "4 pipeline stages"),
        ((str(INCIDENT), "-pp", "three"), "whole number"),
        ((str(INCIDENT), "-pp"), "whole number"),
        ((str(INCIDENT), "--partition", "auto", "--partition", "auto"), "compare"),
        (("compare", str(INCIDENT), "--partition", "auto"), "two or more"),
        (("compare", str(INCIDENT), "--partition", "1,63", "--partition", "1,1,62"), "2 and 3 stages"),
        ((str(INCIDENT), "--capacity", "5"), "--capacity"),
        ((str(INCIDENT), "--gpu-memory", "lots"), "write a size"),
        ((str(INCIDENT), "--gpu-memory", "1GB,2GB"), "2 values"),
        ((str(INCIDENT), "--blocks", "4", "--kv-memory", "1GB"), "contradict"),
        ((str(INCIDENT), "--mamba-cache-mode", "some"), "none, all or align"),
        ((str(INCIDENT), "--speculative-config", "{"), "JSON object"),
        ((str(INCIDENT), "--gpu-memory-utilization", "2"), "share"),
        ((str(INCIDENT), "--engine-version", "new"), "a release such as"),
        ((str(INCIDENT), "--svg", "/nowhere/x.svg"), "can't be written"),
        ((str(INCIDENT), "--verify-with-engine", "--python", "/nowhere"), "no such program"),
        ((str(INCIDENT), "other"), "one model at a time"),
        (("--", "llama-server", "-m", "x.gguf"), "no launch of vLLM"),
        (("--", "vllm", "serve"), "names no model"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert len(err.splitlines()) == 1
    assert says in err


def test_files_that_are_no_configuration(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1, 2]")
    (tmp_path / "text.json").write_text("layers = 3")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "deep.json").write_text("[" * 200_000)
    for name in ("list.json", "text.json", "bytes.json", "deep.json"):
        code, _, err = run(capsys, str(tmp_path / name))
        assert code == 2
        assert len(err.splitlines()) == 1


def test_no_escape_sequence_of_a_configuration_reaches_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(dense_config(model_type="\x1b[31mred", architectures=["\x1b]0;title\x07"])))
    picture = tmp_path / "picture.svg"
    _, out, _ = run(capsys, str(file), "--svg", str(picture))
    assert "\x1b" not in out
    assert "\x1b" not in picture.read_text()
    ElementTree.parse(picture)
    file.write_text(json.dumps(dense_config(layer_types=["\x1b[31m"] * 32)))
    _, _, err = run(capsys, str(file))
    assert "\x1b" not in err


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_picture_has_every_layer_and_is_well_formed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, language: str
) -> None:
    picture = tmp_path / "picture.svg"
    run(capsys, str(INCIDENT), *PARTITION, "--blocks", "492", "--svg", str(picture), "--lang", language)
    root = ElementTree.parse(picture).getroot()
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("L") == 48 + 1  # one in the legend
    assert texts.count("F") == 16 + 1
    assert any("370,617" in text for text in texts)
    assert any(("阶段" if language == "zh" else "stage") in text for text in texts)
    width = float(root.attrib["width"])
    boxes = root.findall("{http://www.w3.org/2000/svg}rect")
    assert all(
        float(box.get("x", 0)) >= 0 and float(box.get("x", 0)) + float(box.attrib["width"]) <= width
        for box in boxes
    )


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "arguments",
    [
        (*PARTITION, "--gpu-memory", "32GiB"),
        ("-pp", "8", "--max-model-len", "131072", "--gpu-memory", "32GiB"),
        ("--max-model-len", "4096"),
    ],
)
def test_nothing_is_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    language: str,
    arguments: tuple[str, ...],
) -> None:
    from rich.cells import cell_len

    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = run(capsys, str(INCIDENT), *arguments, "--lang", language)
    assert max(cell_len(line) for line in out.splitlines()) <= columns
    assert all(line == line.rstrip() for line in out.splitlines())


def test_sizes_of_tensors_are_taken_from_a_checkpoint_that_is_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _checkpoint(tmp_path)
    document = as_json(capsys, str(tmp_path), "--partition", "1,1")
    assert document["weights_measured"]
    assert [stage["weights"]["layers"] for stage in document["stages"]] == [
        64,
        32,
    ]  # the second is kept in float32
    assert document["stages"][0]["weights"]["embedding"] == 128


def test_a_broken_checkpoint_falls_back_to_the_configuration(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _checkpoint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    assert not as_json(capsys, str(tmp_path), "--partition", "1,1")["weights_measured"]


def _checkpoint(folder: Path) -> None:
    """Heads of a safetensors file, with no data behind them."""
    config = dense_config(2, hidden_size=8, num_attention_heads=2, num_key_value_heads=2, vocab_size=8)
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {
        "model.embed_tokens.weight": {"dtype": "BF16", "shape": [8, 8], "data_offsets": [0, 128]},
        "model.layers.0.mlp.weight": {"dtype": "BF16", "shape": [32], "data_offsets": [128, 192]},
        "model.layers.1.mlp.weight": {"dtype": "F32", "shape": [16], "data_offsets": [192, 256]},
        "lm_head.weight": {"dtype": "BF16", "shape": [8, 8], "data_offsets": [256, 384]},
        "__metadata__": {"format": "pt"},
    }
    head = json.dumps(tensors).encode()
    (folder / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)


def test_the_reference_engines_model_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parent.parent.parent / "src" / "culpa_lab" / "checkpoint"
    document = as_json(capsys, str(folder), "-pp", "3", "--partition", "23,23,18")
    assert document["period"] == 4
    assert len(document["layer_types"]) == 64
    assert document["weights_measured"]


def test_incident_config_is_valid_for_the_documented_shape() -> None:
    text = incident_config()["text_config"]
    assert (text["num_hidden_layers"], text["linear_num_value_heads"], text["num_key_value_heads"]) == (
        64,
        48,
        4,
    )
