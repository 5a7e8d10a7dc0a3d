"""Addresses that a page may link to."""

import re

_ADDRESS = re.compile(r"https://[\w./#?&=%:~+-]{1,300}", re.ASCII)


def safe_link(address: str) -> str:
    """The address if it is a plain https one, else empty: it then stands as text only."""
    return address if _ADDRESS.fullmatch(address) else ""
