"""What the codes of NVIDIA's Xid messages mean, from `data/xids.toml`. What they mean for one failure is judged
elsewhere."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from culpa.triage.tables import Url

XidCause = Literal["application", "hardware", "driver", "link", "either"]
XidRole = Literal["first", "teardown"]
XidAct = Literal[
    "none",
    "restart_application",
    "reset_gpu",
    "reboot",
    "check_link",
    "check_mechanicals",
    "update_software",
    "contact_support",
    "as_printed",
]


class XidMeaning(BaseModel):
    """One code: name, meaning, who is at fault by the code alone, and what to do. See the head of xids.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: int = Field(ge=1, le=999)
    name: str
    meaning: str
    cause: XidCause
    role: XidRole
    act: XidAct
    advice: str
    source: Url


class _XidFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    xid: tuple[XidMeaning, ...]


@cache
def xid_catalogue() -> Mapping[int, XidMeaning]:
    """All known codes. Raises ValueError if the data file names a code twice."""
    text = files("culpa.triage").joinpath("data", "xids.toml").read_text("utf-8")
    entries = _XidFile.model_validate(tomllib.loads(text)).xid
    catalogue = {entry.code: entry for entry in entries}
    if len(catalogue) != len(entries):
        raise ValueError("a code stands twice in xids.toml")
    return MappingProxyType(catalogue)
