"""Finding and ending processes of an earlier run that no supervisor answers for any more.

The supervisor is the first net. This is the second, for the day on which culpa and the supervisor were both
killed: a process belongs to a run if its environment says so, if its output goes to a log of the run, or if
it descends from one that does. (The environment alone is not enough: engines that set their process title
overwrite the memory that /proc shows as their environment.)
"""

import contextlib
import os
import time
from pathlib import Path

import psutil

from culpa.host.tree import ProcessFacts, facts_of

RUN_VARIABLE = "CULPA_RUN"
_ROUND_SECONDS = 0.02


def leftovers(run_tag: str, output: Path | None = None) -> list[ProcessFacts]:
    """Living processes of a run: started with `run_tag` or a tag below it (`run_tag/...`), or whose stdout
    and stderr go to one file, `output` or below that folder; and all their descendants. This process, its
    ancestors, and other users' processes that may not be looked into are never among them.
    """
    return [facts for process in _find(run_tag, output) if (facts := facts_of(process)) is not None]


def end_leftovers(run_tag: str, output: Path | None = None, patience: float = 5.0) -> tuple[str, ...]:
    """SIGKILL every leftover of a run until none lives, at most `patience` seconds. Returns the survivors."""
    deadline = time.monotonic() + patience
    while True:
        found = _find(run_tag, output)
        for process in found:
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                process.kill()
        left = [facts for process in found if (facts := facts_of(process)) is not None]
        if not left:
            # One more look: a child may have been born between the search and the signal.
            if not found:
                return ()
        elif time.monotonic() > deadline:
            return tuple(facts.describe() for facts in left)
        else:
            time.sleep(_ROUND_SECONDS)


def _find(run_tag: str, output: Path | None) -> list[psutil.Process]:
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        if process.pid not in spared and (_has_tag(process, run_tag) or _logs_into(process, output)):
            found[process.pid] = process
    for process in list(found.values()):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.update({child.pid: child for child in process.children(recursive=True)})
    return [process for process in found.values() if process.pid not in spared and _lives(process)]


def _has_tag(process: psutil.Process, run_tag: str) -> bool:
    try:
        tag = process.environ().get(RUN_VARIABLE, "")
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return False
    return tag == run_tag or tag.startswith(f"{run_tag}/")


def _logs_into(process: psutil.Process, output: Path | None) -> bool:
    if output is None:
        return False
    try:
        outputs = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in (1, 2)]  # noqa: PTH115
    except OSError:
        return False
    return outputs[0] == outputs[1] and Path(outputs[0]).is_relative_to(output.resolve())


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    except psutil.NoSuchProcess:
        return False
