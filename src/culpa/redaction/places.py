"""Hosts, addresses, users and mail: which of what looks like one is one, and is not public."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, ip_network

from culpa.redaction.table import Kind, load_table

# An alias that was put in already.
ALIAS = re.compile(r"(?:host|address|user|email|mac|login)-\d+", re.ASCII)
# RFC 1918, RFC 3927, RFC 6598.
_PRIVATE = tuple(
    IPv4Network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10")
)
# Loopback, "any", masks and multicast, RFC 5737, RFC 3849, and resolvers that everybody has.
_NOBODYS = tuple(
    IPv4Network(text)
    for text in (
        "127.0.0.0/8", "0.0.0.0/8", "224.0.0.0/3", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24",
        "8.8.8.8/32", "8.8.4.4/32", "1.1.1.1/32",
    )
)  # fmt: skip
_DOCUMENTATION = ip_network("2001:db8::/32")
# Four numbers with dots are a version as often as an address.
_VERSION_BEFORE = re.compile(
    r"(?:==|[<>~]=?|\bv|version\W{0,4}|release\W{0,4}|build\W{0,4}"
    r"|(?:tensorrt|cudnn|cuda|nccl|cublas|cufft|cusparse|cutlass|driver|firmware|vbios|libnv\w*|nvidia)[\w-]{0,20}"
    r"(?: version)?[\s:='\"/v-]{1,4}|[A-Za-z0-9][-_])$",
    re.IGNORECASE | re.ASCII,
)
_VERSION_AFTER = re.compile(r"[-+_][A-Za-z0-9]|\.\d|[A-Za-z]", re.ASCII)
_ADDRESS_BEFORE = re.compile(
    r"(?:://|@|\b(?:ip|addr|address|host|peer|client|server|from|to|connect|bind|listen\w*|node)\W{1,3})$",
    re.IGNORECASE | re.ASCII,
)
_PORT_AFTER = re.compile(r":\d{2,5}(?!\d)|<\d{2,5}>", re.ASCII)
_NO_HOST = frozenset({"file", "unix", "ipc", "inproc", "hf", "docker", "oci", "npz", "mem"})
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]{0,20})://[^\s/]*$", re.IGNORECASE | re.ASCII)
_LOOK_BACK = 48


def is_private(rule: str, kind: Kind, text: str, start: int, end: int) -> bool:
    """Whether what a rule found at a place of the text is to be taken out."""
    found = text[start:end]
    if ALIAS.fullmatch(found):
        return False
    before = text[max(0, start - _LOOK_BACK) : start]
    after = text[end : end + 8]
    if rule == "ipv4":
        return _is_private_ipv4(found, before, after)
    if rule == "ipv6":
        return _is_private_ipv6(found, before, after)
    if kind == "host":
        return _is_private_host(rule, found, before, after)
    if kind == "user":
        return len(found) > 1 and not found.startswith(("$", "%", "*", "<", "[redacted")) and found != "..."
    if kind == "mail":
        host = found.rpartition("@")[2]
        return not (found.startswith("git@") and _is_public(host))
    return True


def _is_private_ipv4(found: str, before: str, after: str) -> bool:
    try:
        address = IPv4Address(found)
    except AddressValueError:  # out of range, or zeros in front: a version
        return False
    if any(address in network for network in _NOBODYS):
        return False
    if _VERSION_AFTER.match(after) or (_VERSION_BEFORE.search(before) and not _PORT_AFTER.match(after)):
        return False
    if any(address in network for network in _PRIVATE):
        return True
    return bool(_ADDRESS_BEFORE.search(before) or _PORT_AFTER.match(after))


def _is_private_ipv6(found: str, before: str, after: str) -> bool:
    if after[:1] in (".", "_") or found.count(":") < 2 or ("::" not in found and found.count(":") != 7):
        return False  # a PCI address, a time of day
    try:
        address = IPv6Address(found)
    except AddressValueError:
        return False
    if address.is_loopback or address.is_unspecified or address.is_multicast or address in _DOCUMENTATION:
        return False
    if address.is_private or address.is_link_local:
        return True
    # Anything of the form a::b may be C++ too: a public one counts where an address is expected.
    return before.endswith(("[", "//")) or (len(found) >= 10 and found.count(":") >= 3)


def _is_private_host(rule: str, found: str, before: str, after: str) -> bool:
    if _is_number(found) or _is_public(found):
        return False
    if found.lower() in load_table().host_words or _looks_like_address(found):
        return False
    if rule == "url_host":
        scheme = _SCHEME.search(before)
        return not (scheme and scheme.group(1).lower().split("+")[-1] in _NO_HOST)
    if rule == "named_host":
        # What follows "host" is prose more often than a name: a name of a machine has a figure, a dot or a dash.
        if after[:1] in "(" and after[:1]:
            return False
        return len(found) >= 3 and bool(re.search(r"[0-9]|[^.-][.-][a-z0-9]", found, re.IGNORECASE))
    if rule == "internal_name":
        # threading.local, self.local: names of code.
        first = found.split(".")[0].lower()
        return not (found.lower().endswith(".local") and first in ("threading", "self", "torch", "os", "env"))
    return True


def _looks_like_address(found: str) -> bool:
    return bool(re.fullmatch(r"[0-9.]+", found, re.ASCII))


def _is_number(found: str) -> bool:
    return bool(re.fullmatch(r"[0-9][0-9.,_]*[a-zA-Z]{0,3}", found, re.ASCII)) and found.count(".") != 3


def _is_public(host: str) -> bool:
    labels = host.lower().strip(".").split(".")
    public = load_table().public_hosts
    return any(".".join(labels[start:]) in public for start in range(len(labels)))


def may_stand_alone(kind: Kind, found: str) -> bool:
    """Whether the name is so much nobody else's that it is taken out wherever it stands."""
    if kind == "host":
        return (
            len(found) >= 5
            and any(one.isdigit() for one in found)
            and any(one.isalpha() for one in found)
            and not re.fullmatch(
                r"(?:gpu|cpu|rank|worker|node|host|cuda|pp|tp|dp)s?[-_.]?\d{1,3}", found, re.I
            )
        )
    return kind in ("mail", "mac")
