"""NVIDIA's Xid messages as the kernel log prints them, taken apart."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from culpa.triage.clock import NO_MOMENT, Moment

_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)"
    r"(?: GPU-I:\d{1,2})?(?: GPU-CI:\d{1,2})?\): (\d{1,3})\b,? ?(.{0,2000})"
)
_PID = re.compile(r"^pid='?<?(\d{1,10}|unknown)>?'?,? ?")
_NAME = re.compile(r"^name=<?([^,>]{1,64})>?,? ?")
_FAULT = re.compile(
    r"ENGINE (?P<engine>[\w ]{1,40}?) (?P<client>(?:GPCCLIENT|HUBCLIENT|UNRECOGNIZED)\w{0,40}) "
    r"faulted @ 0x(?P<address>[0-9a-fA-F_]{1,24})\. "
    r"Fault is of type (?P<type>\w{1,60}) ACCESS_TYPE_(?P<access>\w{1,30})"
)
_WARP = re.compile(
    r"Graphics SM (?P<kind>Warp|Global) Exception on \(GPC (?P<gpc>\d{1,3}), TPC (?P<tpc>\d{1,3})"
    r"(?:, SM (?P<sm>\d{1,3}))?\): (?P<what>[^,]{1,80})"
)
_ESR = re.compile(r"0x[0-9a-fA-F]{1,16}=0x[0-9a-fA-F]{1,16}")
_RECOVERY = re.compile(
    r"changed from 0x[0-9a-fA-F]{1,4} \([^)]{1,60}\) to 0x[0-9a-fA-F]{1,4} \(([^)]{1,60})\)"
)
_GSP = re.compile(r"Timeout after (\d{1,5})s of waiting for RPC response from GPU(\d{1,3}) GSP")
_NVLINK = re.compile(
    r"^(?P<unit>[A-Z][A-Z0-9_/]{2,40}) (?P<severity>Nonfatal|Fatal) XC\d i\d{1,3} Link (?P<link>-?\d{1,3})"
)
_BUS = re.compile(r"^(?:PCI:)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.([0-7]))?$", re.IGNORECASE)

AddressPattern = Literal["null", "fixed", "drifting"]


@dataclass(frozen=True, slots=True)
class MmuFault:
    """The fields of an Xid 31. `address` is the number; a small one (below a page) is a null pointer."""

    engine: str
    client: str
    address: int
    kind: str
    access: str

    @property
    def null(self) -> bool:
        """Whether the address is that of a null pointer or a small offset from one."""
        return self.address < 0x1000


@dataclass(frozen=True, slots=True)
class SmException:
    """An exception of a streaming multiprocessor, from an Xid 13."""

    what: str
    gpc: int
    tpc: int
    sm: int | None


_CAUSED = re.compile(r"caused by previous Xid (\d{1,4})\b", re.ASCII)


@dataclass(frozen=True, slots=True)
class Xid:
    """One message. `pci_bus` is domain:bus:device.function in lower case, `pid` that of the host.

    `esr` are the exception registers of an Xid 13 as printed, `recovery` what an Xid 154 asks for, `unit`,
    `severity` and `link` those of NVLink's codes 144 to 150; `caused_by` is the code that the driver names
    as the cause.
    """

    line: int
    code: int
    pci_bus: str
    pid: int | None = None
    name: str | None = None
    time: str | None = None
    moment: Moment = NO_MOMENT
    section: int = 0
    fault: MmuFault | None = None
    exception: SmException | None = None
    esr: tuple[str, ...] = ()
    recovery: str | None = None
    gsp_seconds: int | None = None
    unit: str | None = None
    severity: str | None = None
    link: int | None = None
    caused_by: int | None = None


def bus_address(text: str) -> str | None:
    """A PCI address in the one form used here, domain:bus:device.function in lower case; None if it is none.

    >>> bus_address("PCI:0000:C1:00")
    '0000:c1:00.0'
    >>> bus_address("00000000:9E:00.0")
    '0000:9e:00.0'
    """
    match = _BUS.match(text.strip())
    if match is None:
        return None
    domain = (match[1] or "0000").lower()
    if len(domain) > 4:
        domain = domain.lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2].lower()}:{match[3].lower()}.{match[4] or '0'}"


def parse_xid(
    text: str, line: int, *, time: str | None = None, moment: Moment = NO_MOMENT, section: int = 0
) -> Xid | None:
    """The message in a line of the kernel log, with or without what the log puts in front; None if it has none."""
    match = _XID.search(text)
    if match is None:
        return None
    bus = bus_address(match[1])
    if bus is None:
        return None
    rest = match[3]
    pid: int | None = None
    name: str | None = None
    if found := _PID.match(rest):
        pid = int(found[1]) if found[1].isdigit() else None
        rest = rest[found.end() :]
    if found := _NAME.match(rest):
        name = None if found[1] == "unknown" else found[1].strip()
        rest = rest[found.end() :]
    code = int(match[2])
    fault = _FAULT.search(rest) if code == 31 else None
    warp = _WARP.search(rest) if code == 13 else None
    recovery = _RECOVERY.search(rest) if code == 154 else None
    gsp = _GSP.search(rest) if code in (119, 120) else None
    caused = _CAUSED.search(rest)
    nvlink = _NVLINK.match(rest) if 144 <= code <= 150 else None
    return Xid(
        line=line,
        code=code,
        pci_bus=bus,
        pid=pid,
        name=name,
        time=time,
        moment=moment,
        section=section,
        fault=MmuFault(
            fault["engine"],
            fault["client"],
            int(fault["address"].replace("_", "") or "0", 16),
            fault["type"],
            fault["access"].lower(),
        )
        if fault
        else None,
        exception=SmException(
            warp["what"].strip(), int(warp["gpc"]), int(warp["tpc"]), int(warp["sm"]) if warp["sm"] else None
        )
        if warp
        else None,
        esr=tuple(_ESR.findall(rest)[:8]) if code == 13 else (),
        recovery=recovery[1] if recovery else None,
        gsp_seconds=int(gsp[1]) if gsp else None,
        unit=nvlink["unit"] if nvlink else None,
        severity=nvlink["severity"] if nvlink else None,
        link=int(nvlink["link"]) if nvlink else None,
        caused_by=int(caused[1]) if caused else None,
    )


def address_pattern(xids: Sequence[Xid]) -> AddressPattern | None:
    """Whether the page faults of several incidents hit a null pointer, one address, or a different one each time;
    None with fewer than one fault, or one that is not null."""
    addresses = [xid.fault.address for xid in xids if xid.fault is not None]
    if not addresses:
        return None
    if all(address < 0x1000 for address in addresses):
        return "null"
    if len(addresses) < 2:
        return None
    return "fixed" if len(set(addresses)) == 1 else "drifting"


def one_bad_launch(xids: Sequence[Xid]) -> bool:
    """Whether exceptions on several multiprocessors say the same: one kernel launch is bad, not one piece of
    silicon."""
    said = [xid.exception for xid in xids if xid.exception is not None]
    places = {(one.gpc, one.tpc, one.sm) for one in said}
    return len(places) > 1 and len({one.what for one in said}) == 1


def describe(xid: Xid) -> str:
    """The fields of the message that tell faults apart, as a short phrase; empty if it has none."""
    if xid.fault is not None:
        where = "a null pointer" if xid.fault.null else f"address 0x{xid.fault.address:x}"
        access = xid.fault.access.replace("virt_", "").replace("phys_", "physical ")
        return f"{access} of {where}, {xid.fault.kind}, {xid.fault.client}"
    if xid.exception is not None:
        return f"{xid.exception.what} on GPC {xid.exception.gpc}, TPC {xid.exception.tpc}"
    if xid.recovery is not None:
        return f"now needs: {xid.recovery}"
    if xid.gsp_seconds is not None:
        return f"no answer for {xid.gsp_seconds} s; the process that it names only asked"
    if xid.unit is not None:
        return f"{xid.unit}, {(xid.severity or '').lower()}, link {xid.link}"
    if xid.caused_by is not None:
        return f"the driver says that Xid {xid.caused_by} caused it"
    return ""
