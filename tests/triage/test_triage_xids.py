"""Xid messages: every shape in the field is taken apart, and the catalogue knows the codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culpa.triage.xid_catalogue import xid_catalogue
from culpa.triage.xids import Xid, address_pattern, bus_address, describe, one_bad_launch, parse_xid

PAGE_FAULT = (
    "NVRM: Xid (PCI:0000:c1:00): 31, pid=12890, Ch 0000003b, intr 00000000. MMU Fault: ENGINE HOST0 "
    "HUBCLIENT_HOST_CPU faulted @ 0x1_0c3c0000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"
)
WARP = (
    "NVRM: Xid (PCI:0000:43:00): 13, pid=7302, name=VLLM::Worker_TP, Graphics SM Warp Exception on "
    "(GPC 2, TPC 7, SM 1): Out Of Range Address"
)


def parsed(text: str) -> Xid:
    xid = parse_xid(text, 1)
    assert xid is not None
    return xid


def fault_at(address: str, time: str = "1") -> Xid:
    text = PAGE_FAULT.replace("0x1_0c3c0000", address)
    xid = parse_xid(text, 1, time=time)
    assert xid is not None
    return xid


@pytest.mark.parametrize(
    ("text", "code", "bus", "pid", "name"),
    [
        (WARP, 13, "0000:43:00.0", 7302, "VLLM::Worker_TP"),
        (PAGE_FAULT, 31, "0000:c1:00.0", 12890, None),
        (
            "NVRM: Xid (PCI:0000:43:00): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR 0x52e7b0=0x1",
            13,
            "0000:43:00.0",
            None,
            None,
        ),
        ("NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.", 79, "0000:05:00.0", None, None),
        ("NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, "0000:03:00.0", None, None),
        ("NVRM: Xid (PCI:000f:01:00): 43, pid=1, name=a b, Ch 00000008", 43, "000f:01:00.0", 1, "a b"),
        ("[93904.120111] NVRM: Xid (PCI:0000:9C:00): 48, pid=5, name=x, DBE", 48, "0000:9c:00.0", 5, "x"),
    ],
)
def test_code_bus_and_process_are_read(
    text: str, code: int, bus: str, pid: int | None, name: str | None
) -> None:
    xid = parsed(text)
    assert (xid.code, xid.pci_bus, xid.pid, xid.name) == (code, bus, pid, name)


def test_a_page_fault_tells_access_type_client_and_address() -> None:
    fault = parsed(PAGE_FAULT).fault
    assert fault is not None
    assert (fault.engine, fault.client) == ("HOST0", "HUBCLIENT_HOST_CPU")
    assert (fault.kind, fault.access, fault.address) == ("FAULT_PDE", "virt_write", 0x10C3C0000)
    assert describe(parsed(PAGE_FAULT)).startswith("write of address 0x10c3c0000")


def test_an_unrecognised_client_is_read_too() -> None:
    text = (
        "NVRM: Xid (PCI:0000:9a:00): 31, pid=477445, name=python3, channel 0x00000002, intr 00000000. MMU Fault: "
        "ENGINE GRAPHICS GPC0 UNRECOGNIZED_CLIENT faulted @ 0x182400_0030198d. Fault is of type UNRECOGNIZED_FAULT "
        "ACCESS_TYPE_UNRECOGNIZED"
    )
    fault = parsed(text).fault
    assert fault is not None
    assert (fault.engine, fault.client) == ("GRAPHICS GPC0", "UNRECOGNIZED_CLIENT")


def test_exception_and_registers_of_a_graphics_exception_are_read() -> None:
    exception = parsed(WARP).exception
    assert exception is not None
    assert (exception.what, exception.gpc, exception.tpc, exception.sm) == ("Out Of Range Address", 2, 7, 1)
    esr = parsed(
        "NVRM: Xid (PCI:0000:43:00): 13, Graphics Exception: ESR 0x52e7b0=0x101000e 0x52e7b4=0x20"
    ).esr
    assert esr == ("0x52e7b0=0x101000e", "0x52e7b4=0x20")


def test_recovery_gsp_and_nvlink_fields_are_read() -> None:
    recovery = parsed(
        "NVRM: Xid (PCI:0000:0b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"
    )
    assert recovery.recovery == "GPU Reset Required"
    gsp = parsed(
        "NVRM: Xid (PCI:0000:0b:00): 119, pid=1, name=x, Timeout after 45s of waiting for RPC response from GPU3 GSP!"
    )
    assert gsp.gsp_seconds == 45
    link = parsed("NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x0)")
    assert (link.unit, link.severity, link.link) == ("RLW_RXPIPE", "Nonfatal", 13)


def test_addresses_are_null_fixed_or_drifting() -> None:
    assert address_pattern([fault_at("0x0_00000000")]) == "null"
    assert address_pattern([fault_at("0x6f17_04027000")]) is None
    assert address_pattern([fault_at("0x6f17_04027000"), fault_at("0x6f17_04027000")]) == "fixed"
    assert address_pattern([fault_at("0x6f17_04027000"), fault_at("0x6f18_04027000")]) == "drifting"


def test_the_same_exception_on_several_multiprocessors_is_one_bad_launch() -> None:
    other = WARP.replace("GPC 2, TPC 7", "GPC 6, TPC 8")
    assert one_bad_launch([parsed(WARP), parsed(other)])
    assert not one_bad_launch([parsed(WARP), parsed(WARP)])
    assert not one_bad_launch([parsed(WARP), parsed(other.replace("Out Of Range", "Misaligned"))])


@pytest.mark.parametrize("text", ["", "PCI:", "0000:00", "zz:00.0", "0000:43:00.9", "1" * 300])
def test_what_is_no_bus_address_is_none(text: str) -> None:
    assert bus_address(text) is None


@given(st.text(max_size=300))
def test_no_text_makes_parsing_raise(text: str) -> None:
    parse_xid(text, 1)
    parse_xid(f"NVRM: Xid (PCI:0000:43:00): 31, {text}", 1)
    parse_xid(f"NVRM: Xid (PCI:0000:43:00): 13, {text}", 1)


def test_the_catalogue_has_what_serving_reports_name() -> None:
    catalogue = xid_catalogue()
    wanted = {8, 13, 31, 43, 45, 48, 62, 63, 64, 74, 79, 94, 95, 109, 119, 120, 154, 171, *range(144, 151)}
    assert wanted <= set(catalogue)
    assert {code for code, entry in catalogue.items() if entry.role == "teardown"} == {43, 45, 154}
    assert catalogue[31].cause == "application"
    assert {catalogue[code].cause for code in (48, 63, 64, 79, 94, 95)} == {"hardware"}
