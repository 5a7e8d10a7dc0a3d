"""What every process of the engine does first: take a name and die with its parent."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def settle(name: str, parent: int) -> None:
    """Name this process as `ps` and the kernel show it, and tie its life to process `parent`.

    Signals of the terminal are the parent's business. Ends the process if the parent is gone already.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
