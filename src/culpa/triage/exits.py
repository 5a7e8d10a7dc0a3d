"""What an exit code says when the log says nothing."""

from culpa.triage.windows import kernel_log

# Linux on x86-64 and Arm; the signal module would give the names of the machine that reads, not of the one that failed.
_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
    24: "SIGXCPU",
    25: "SIGXFSZ",
    31: "SIGSYS",
}
_CRASH_SYMPTOMS = {"SIGSEGV": "segfault", "SIGBUS": "segfault", "SIGABRT": "abort"}


def signal_name(exit_code: int | None) -> str | None:
    """The signal that ended a process: negative codes as Python gives them, 128 + n as shells do."""
    if exit_code is None:
        return None
    number = -exit_code if exit_code < 0 else exit_code - 128 if 128 < exit_code < 193 else 0
    if number <= 0:
        return None
    return _SIGNALS.get(number, f"signal {number}")


def symptom_of_exit(exit_code: int | None) -> str:
    """The class of a death that left no word: segfault, abort, or silent_death."""
    return _CRASH_SYMPTOMS.get(signal_name(exit_code) or "", "silent_death")


def event_of_exit(exit_code: int | None) -> str:
    """What there is to say of the death itself."""
    name = signal_name(exit_code)
    if name is not None:
        return f"killed by {name}"
    return f"exit code {exit_code}"


def evidence_after_exit(exit_code: int | None, time: str | None = None) -> tuple[str, ...]:
    """What a person should fetch to learn more of such a death; `time` as the log prints it."""
    name = signal_name(exit_code)
    if name == "SIGKILL":
        return (
            "the kernel log of that time, since the host or the container may have run out of memory: "
            f"{kernel_log(time)} | grep -i 'oom\\|killed process'",
        )
    if name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE"):
        return ("a core dump or native stack: coredumpctl info, or ulimit -c unlimited and gdb",)
    if name is not None:
        return (f"who sent {name}: the service manager's or the job scheduler's log",)
    return ("what the process wrote to standard error before it ended",)
