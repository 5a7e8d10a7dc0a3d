"""A small process that stands between culpa and an engine, and that leaves no process of the engine behind.

Run as `python -I -S supervisor.py CONTROL STATUS`; it uses the standard library only and imports nothing of
culpa, so that it starts in milliseconds and so that nothing which breaks an engine can break it.

stdin    what to start: NUL-separated fields `executable`, `cwd`, `number of arguments`, the arguments, and
         the environment as `NAME=VALUE`. No field can hold a NUL, so no quoting is needed.
stdout   the engine's log; the engine gets it as its stdout and its stderr, which keeps the order of lines.
CONTROL  a pipe that culpa writes: `stop SECONDS` ends the tree with this much grace. End of file means that
         culpa is dead, and ends the tree too.
STATUS   a pipe that culpa reads: `started PID`, `failed ERRNO TEXT`, `exit CODE` (negative for a signal),
         `survivors PID:NAME` ... (tab-separated: what even SIGKILL did not end), `gone KILLED` (the last
         line; 1 if SIGKILL was needed, else 0).

The invariant: the supervisor ends only when it has no child left. On Linux it is a subreaper, so every
descendant whose parent dies, daemons in their own sessions included, becomes its child: no child left means
that nothing of the engine lives, without any race between looking and dying. Elsewhere there is no
subreaper, and what left the engine's process group is out of reach.
"""

import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LINUX = sys.platform.startswith("linux")
ORPHAN_GRACE = 1.0  # seconds between SIGTERM and SIGKILL when culpa itself has died
KILL_PATIENCE = 5.0  # seconds of SIGKILL after which whoever still lives is reported as a survivor
KILL_INTERVAL = 0.02  # seconds between two rounds of SIGKILL, at first; later rounds are rarer
PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
RESET_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
)


def become_subreaper() -> None:
    """Ask Linux to hand orphaned descendants to this process; nothing to ask for elsewhere."""
    if LINUX:
        import ctypes

        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def read_stat(pid: str) -> tuple[int, int, str, str] | None:
    """Parent, process group, state and name of a process from /proc; None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (pathlib would double the start-up time)
            text = file.read()
        # The name stands in parentheses and may hold anything, parentheses and blanks included.
        opening, closing = text.index(b"("), text.rindex(b")")
        state, parent, group = text[closing + 2 :].split(None, 3)[:3]
    except (OSError, ValueError):
        return None
    return int(parent), int(group), state.decode(), text[opening + 1 : closing].decode(errors="replace")


def descendants(root: int) -> dict[int, tuple[int, str]]:
    """Process group and name of every living (not zombie) descendant of a process, by pid. Linux only."""
    children: dict[int, list[int]] = {}
    facts: dict[int, tuple[int, str, str]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and (stat := read_stat(name)) is not None:
            parent, group, state, command = stat
            children.setdefault(parent, []).append(int(name))
            facts[int(name)] = (group, state, command)
    found: dict[int, tuple[int, str]] = {}
    waiting = list(children.get(root, ()))
    while waiting:
        pid = waiting.pop()
        group, state, command = facts[pid]
        if state not in "ZX":
            found[pid] = (group, command)
        waiting.extend(children.get(pid, ()))
    return found


def send(kill: "Callable[[int, int], None]", target: int, number: int) -> None:
    """Signal a process or group that may just have gone, or be another user's (reported if it stays)."""
    try:  # noqa: SIM105 (contextlib would double the start-up time)
        kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass


class Supervisor:
    """Starts the engine, reports what becomes of it, and ends its tree when told to or when culpa dies."""

    def __init__(self, control: int, status: int) -> None:
        self.control = control
        self.status = status
        self.engine = 0  # pid of the engine's main process
        self.stopping = False
        self.asked_by_signal = False  # somebody sent SIGTERM to the supervisor itself
        self.deadline = float("inf")  # monotonic time at which SIGKILL begins
        self.next_kill = 0.0
        self.kill_rounds = 0
        self.terminated: set[int] = set()  # who has had SIGTERM
        self.reported: tuple[int, ...] = ()  # survivors that culpa has been told of

    def report(self, line: str) -> None:
        """Tell culpa; if culpa is dead there is nobody to tell."""
        try:
            os.write(self.status, line.replace("\n", " ").encode(errors="replace") + b"\n")
        except BrokenPipeError:
            self.begin_stop(ORPHAN_GRACE)

    def start(self, spec: bytes) -> bool:
        """Start the engine in a session of its own, signals at their defaults. False: it did not start."""
        executable, cwd, count, *words = spec.split(b"\0")[:-1]
        arguments, pairs = words[: int(count)], words[int(count) :]
        environment = dict(pair.split(b"=", 1) for pair in pairs)
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        try:
            os.chdir(cwd)
            self.engine = os.posix_spawn(
                executable,
                arguments,
                environment,
                file_actions=files,
                setsid=True,
                setsigmask=(),
                setsigdef=RESET_SIGNALS,
            )
        except OSError as error:
            self.report(f"failed {error.errno or 0} {error.strerror}")
            return False
        self.report(f"started {self.engine}")
        return True

    def living(self) -> dict[int, tuple[int, str]]:
        """The tree as it is now: pid to process group and name."""
        if LINUX:
            return descendants(os.getpid())
        try:
            os.killpg(self.engine, 0)
        except OSError:
            return {}
        return {self.engine: (self.engine, "process group")}

    def signal_all(self, found: dict[int, tuple[int, str]], number: int) -> None:
        """Signal whole process groups, so that a child forked this instant is reached, then each process."""
        own = os.getpgrp()
        for group in {group for group, _ in found.values()} - {own, 0}:
            send(os.killpg, group, number)
        for pid, (group, _) in found.items():
            if group in (own, 0):
                send(os.kill, pid, number)

    def begin_stop(self, grace: float) -> None:
        """SIGTERM to the whole tree, and SIGKILL after `grace` seconds; a later, shorter grace holds."""
        self.deadline = min(self.deadline, time.monotonic() + grace)
        if not self.stopping:
            self.stopping = True
            self.terminate(self.living())

    def terminate(self, found: dict[int, tuple[int, str]]) -> None:
        """SIGTERM, and SIGCONT for those that are stopped and would not see it."""
        self.terminated.update(found)
        self.signal_all(found, signal.SIGTERM)
        self.signal_all(found, signal.SIGCONT)

    def reap(self) -> bool:
        """Collect the dead. False when no child is left, and so no descendant either."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not LINUX and bool(self.living())
            if pid == 0:
                return True
            if pid == self.engine:
                self.report(f"exit {os.waitstatus_to_exitcode(status)}")

    def press(self) -> None:
        """One step of ending the tree, while it is being stopped."""
        now = time.monotonic()
        if now < self.deadline:
            # Whoever was started after SIGTERM went out may be cleaning up for its parent; it is asked to
            # end only when those that were asked first are gone.
            found = self.living()
            if found and not self.terminated & found.keys():
                self.terminate(found)
            return
        if now < self.next_kill:
            return
        found = self.living()
        self.signal_all(found, signal.SIGKILL)
        self.kill_rounds += 1
        self.next_kill = now + min(KILL_INTERVAL * self.kill_rounds, 1.0)
        survivors = tuple(sorted(found))
        if now > self.deadline + KILL_PATIENCE and survivors != self.reported:
            self.reported = survivors
            self.report("survivors " + "\t".join(f"{pid}:{found[pid][1]}" for pid in survivors))

    def heed_signals(self) -> int:
        """Have every signal wake the poll of `run`; returns the descriptor to poll."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: setattr(self, "asked_by_signal", True))
        return wake_read

    def run(self, wake_read: int) -> None:
        """Watch until nothing is left."""
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        while self.reap():
            if self.asked_by_signal and not self.stopping:
                self.begin_stop(ORPHAN_GRACE)
            if self.stopping:
                self.press()
            for descriptor, _ in poll.poll(self.pause()):
                if descriptor == wake_read:
                    os.read(wake_read, 4096)
                elif commands := os.read(self.control, 4096):
                    self.begin_stop(min(float(line.split()[1]) for line in commands.splitlines()))
                else:
                    poll.unregister(self.control)
                    self.begin_stop(ORPHAN_GRACE)
        self.report(f"gone {int(self.kill_rounds > 0)}")

    def pause(self) -> int | None:
        """Milliseconds until something must be done although nothing was heard; None: as long as it takes."""
        if not self.stopping:
            return None
        due = max(self.deadline, self.next_kill) - time.monotonic()
        return max(1, min(1000, int(due * 1000) + 1))


def main() -> None:
    """Read what to start, start it, and stay until nothing of it lives."""
    control, status = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    spec = sys.stdin.buffer.read()
    become_subreaper()
    supervisor = Supervisor(control, status)
    wake_read = supervisor.heed_signals()
    if supervisor.start(spec):
        try:
            supervisor.run(wake_read)
        except BaseException:
            # Whatever this is, the engine must not run on without anybody who would end it.
            supervisor.signal_all(supervisor.living(), signal.SIGKILL)
            raise
    os._exit(0)  # nothing is buffered, and taking the interpreter down would make every stop wait


if __name__ == "__main__":
    main()
