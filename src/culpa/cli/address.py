"""Addresses on the command line."""

import re
from urllib.parse import urlsplit

import typer

#: A name, a number, or an address of IPv6 with its zone.
_HOST = re.compile(r"[\w.:%-]{1,253}", re.ASCII)


def root_url(option: str, text: str) -> str:
    """The root URL of a server, without a slash or `/v1` at its end. Raises BadParameter."""
    try:
        parts = urlsplit(text)
        named = text.isprintable() and text.isascii() and _HOST.fullmatch(parts.hostname or "") is not None
        good = parts.scheme in ("http", "https") and parts.port != 0 and named
        good = good and not parts.query and not parts.fragment
    except ValueError:  # a port that is none, brackets that aren't closed
        good = False
    if not good:
        raise typer.BadParameter(
            f"{option} {text}: an address begins with http:// or https:// and names a host: http://127.0.0.1:8000"
        )
    return text.rstrip("/").removesuffix("/v1")


def address(option: str, text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:8001`, `[::1]:8001` or `:8001` (this machine only). Raises BadParameter."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "127.0.0.1", parts.port
        good = port is not None and port > 0 and not parts.path and not parts.query and parts.username is None
        good = good and _HOST.fullmatch(host) is not None
    except ValueError:
        good, host, port = False, "", None
    if not good or port is None:
        raise typer.BadParameter(f"{option} {text}: write host and port, as 127.0.0.1:8001")
    return host, port
