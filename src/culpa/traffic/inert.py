"""Unpickles without running anything: every class becomes an inert record of its name and its fields.

A pickle is a program, and one from another machine may be hostile. Here no name that it mentions is looked up: plain
containers, texts and numbers come as they are, everything else as a `Record` that can do nothing. The unpickler
written in Python is used, because the one in C sets memory aside for whatever index a pickle names.
"""

import pickle
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any, Final

from culpa.traffic.recorded import BadRecording

_PLAIN: Final[dict[tuple[str, str], Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "deque"): deque,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
}
_MOST_BYTES: Final = 4 << 30


class Record:
    """What stands for an object of any class: `fields` is its state where that is a mapping, `args` what it was to be
    made from."""

    name = ""

    def __init__(self, *args: Any, **_: Any) -> None:
        self.fields: dict[str, Any] = {}
        self.args = args

    def __setstate__(self, state: Any) -> None:
        # Objects with slots have their state as a pair.
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                self.fields.update({key: value for key, value in part.items() if isinstance(key, str)})

    def append(self, _: Any) -> None:
        """Members of an unknown container are not kept."""

    def extend(self, _: Any) -> None:
        """Members of an unknown container are not kept."""

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str):
            self.fields[key] = value


class _Inert(pickle._Unpickler):
    """Names lead to records, whatever they are called."""

    def find_class(self, module: str, name: str) -> Any:
        """A class of its own for each mention, so that nothing in a pickle can reach another one's."""
        plain = _PLAIN.get((module, name))
        if plain is not None:
            return plain
        return type("Record", (_Made,), {"name": f"{module}.{name}"})

    def persistent_load(self, pid: Any) -> Any:
        """References to things outside of the pickle stand for nothing."""
        return Record()


class _Made(Record):
    """A record that is made with `__new__` alone still has its fields."""

    def __new__(cls, *args: Any, **_: Any) -> "_Made":
        made = super().__new__(cls)
        Record.__init__(made, *args)
        return made


def read_pickle(path: Path) -> Any:
    """What a pickle holds, without running any of it. Raises BadRecording."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadRecording(f"{path}: is larger than {_MOST_BYTES >> 30} GiB")
        with path.open("rb") as file:
            return _Inert(file).load()
    except OSError as error:
        raise BadRecording(f"{path}: can't be read: {error.strerror or error}") from None
    except BadRecording:
        raise
    except Exception as error:  # a damaged pickle may raise anything
        raise BadRecording(f"{path}: is no whole pickle ({type(error).__name__})") from None
