"""Which GPU is which: from tables, NCCL and llama.cpp; nothing is said where the order is not proven."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.triage.gpus import GpuTable
from culpa.triage.lines import LineParser, Ranks
from culpa.triage.tables import load_tables

SMI = """\
| NVIDIA-SMI 580.95.05              Driver Version: 580.95.05      CUDA Version: 13.0     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA L40S                    Off |   00000000:9E:00.0 Off |                    0 |
| N/A   41C    P0             82W /  350W |   42291MiB /  46068MiB |      0%      Default |
|   1  NVIDIA L40S                    Off |   00000000:A0:00.0 Off |                    0 |
| N/A   41C    P0             81W /  350W |   41816MiB /  46068MiB |      0%      Default |
| Processes:                                                                              |
|    0   N/A  N/A          5103      C   VLLM::Worker_TP0                      42270MiB |
|    1   N/A  N/A          5104      C   VLLM::Worker_TP1                      41790MiB |"""
UNLIKE = SMI.replace("1  NVIDIA L40S", "1  NVIDIA T40S").partition("| Processes")[0].rstrip()
LIKE = SMI.partition("| Processes")[0].rstrip()


def table(*texts: str) -> GpuTable:
    gpus = GpuTable()
    parser = LineParser(load_tables("generic"))
    for number, raw in enumerate("\n".join(texts).split("\n"), 1):
        for line in parser.parse(number, raw):
            gpus.note(line)
    return gpus


def bus(gpus: GpuTable, ranks: Ranks, pid: int | None = None) -> str | None:
    return gpus.bus_of_place(ranks, pid, only_tensor_parallel=True)


def test_nvidia_smi_gives_index_and_the_gpu_of_a_process() -> None:
    gpus = table(SMI)
    assert gpus.describe("0000:a0:00.0") == (1, None)
    assert gpus.bus_of_pid(5104) == "0000:a0:00.0"
    assert gpus.bus_of_pid(99) is None
    assert bus(gpus, (("tp", 1),)) == "0000:a0:00.0"
    assert gpus.place_of_bus("0000:9e:00.0") == ((("tp", 0),), None)


def test_uuids_come_from_the_list_and_from_the_kernel() -> None:
    listed = table(SMI, "GPU 1: NVIDIA L40S (UUID: GPU-5fc0bcec-c2e1-38dc-8994-2a9f9f3b709e)")
    assert listed.describe("0000:a0:00.0") == (1, "GPU-5fc0bcec-c2e1-38dc-8994-2a9f9f3b709e")
    kernel = table("NVRM: GPU at PCI:0000:48:00: GPU-5fc0bcec-c2e1-38dc-8994-2a9f9f3b709e")
    assert kernel.describe("0000:48:00.0") == (None, "GPU-5fc0bcec-c2e1-38dc-8994-2a9f9f3b709e")


def test_query_rows_below_their_header_are_read() -> None:
    gpus = table(
        "index, pci.bus_id, uuid, name",
        "0, 00000000:01:00.0, GPU-11111111-c2e1-38dc-8994-2a9f9f3b709e, NVIDIA L40S",
        "",
        "pid, gpu_bus_id, process_name",
        "77, 00000000:01:00.0, python",
    )
    assert gpus.describe("0000:01:00.0") == (0, "GPU-11111111-c2e1-38dc-8994-2a9f9f3b709e")
    assert gpus.bus_of_pid(77) == "0000:01:00.0"


def test_nccl_names_the_bus_of_every_rank() -> None:
    gpus = table(
        "node-b:904:1311 [2] NCCL INFO comm 0x55 rank 2 nranks 4 cudaDev 2 nvmlDev 2 busId 41000 commId 0x79"
    )
    assert bus(gpus, (("tp", 2),)) == "0000:41:00.0"
    assert bus(gpus, (("rank", 2),)) == "0000:41:00.0"
    assert gpus.bus_of_pid(904) == "0000:41:00.0"


LOCAL = "(Worker_TP1 pid=7) INFO 09-05 03:41:00 [parallel_state.py:1607] world_size=2 rank=1 local_rank=1 x"


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((LIKE, LOCAL), "0000:a0:00.0"),
        ((LIKE, LOCAL, "CUDA_VISIBLE_DEVICES=1,0"), "0000:9e:00.0"),
        ((UNLIKE, LOCAL), None),  # CUDA may count unlike GPUs in another order
        ((UNLIKE, LOCAL, "CUDA_DEVICE_ORDER=PCI_BUS_ID"), "0000:a0:00.0"),
        ((LIKE, LOCAL, "CUDA_VISIBLE_DEVICES=1,0", "CUDA_VISIBLE_DEVICES=0,1"), None),
        ((LIKE, LOCAL, "CUDA_VISIBLE_DEVICES=0"), None),
        ((LOCAL,), None),
        ((LIKE.replace("|   0  ", "|   3  "), LOCAL), None),  # the table does not list all GPUs
    ],
)
def test_a_rank_has_the_gpu_of_its_place_only_where_the_order_is_proven(
    texts: tuple[str, ...], found: str | None
) -> None:
    assert bus(table(*texts), (("tp", 1),), 7) == found


def test_among_unlike_gpus_llama_cpps_own_list_tells_by_name() -> None:
    gpus = table(UNLIKE, "  Device 0: NVIDIA T40S, compute capability 8.9, VMM: yes")
    assert bus(gpus, (("device", 0),)) == "0000:a0:00.0"
    assert bus(gpus, (("device", 1),)) is None


def test_llama_cpp_names_the_bus_of_a_device() -> None:
    gpus = table(
        "llama_model_load: using device CUDA1 (NVIDIA GeForce RTX 3090) (0000:05:00.0) - 23000 MiB free"
    )
    assert bus(gpus, (("device", 1),)) == "0000:05:00.0"


@given(st.lists(st.one_of(st.text(max_size=200), st.sampled_from(SMI.split("\n"))), max_size=30))
def test_no_text_makes_the_table_raise(lines: list[str]) -> None:
    gpus = table(*lines)
    gpus.place_of_bus("0000:9e:00.0")
    bus(gpus, (("device", 3),))
