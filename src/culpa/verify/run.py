"""Puts a verification together: on an engine that runs already, or on one that is started for it."""

import asyncio
import hashlib
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from culpa.engines import EngineAdapter, find_adapter, parse_command
from culpa.executors import LocalExecutor
from culpa.host import KernelLog, port_owner, read_machine, visible_gpus, why_unreadable
from culpa.hunt import Suite
from culpa.interrupts import until_interrupted
from culpa.model import Configuration, Launch
from culpa.model.verification import ProbeReport, Verification
from culpa.session import Patience, Unanswerable
from culpa.start import SCRATCH, Instrument, Starter
from culpa.target import Running, Started, Target
from culpa.verify.golden import BadGolden, Golden, read_golden, write_golden
from culpa.verify.gpu_messages import GpuMessages, why_elsewhere
from culpa.verify.verifier import Verifier, VerifyOptions, with_suite

Report = Callable[[ProbeReport], None]
Starting = Callable[[str, int], None]


class CannotVerify(RuntimeError):
    """The engine could not be asked at all; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be verified: an endpoint, or a launch, as texts. `instrument` measures in the engine's processes."""

    endpoint: str | None = None
    model: str = ""
    api_key: str | None = None
    words: tuple[str, ...] = ()
    factors_file: Path | None = None
    out: Path | None = None
    kernel_log: Path | None = None
    patience: Patience = field(default_factory=Patience)
    instrument: Instrument | None = None


def verify(wanted: Wanted, options: VerifyOptions, report: Report, starting: Starting) -> Verification:
    """Verify, and write the trusted answers if that was asked for; the result says whether they were.

    Raises Unreachable, CannotVerify, BadGolden, BadLaunch, BadFactors, BadText or BadRequestFile. SIGINT and
    SIGTERM give what was seen so far.
    """
    Suite(
        options.probes
    ).names()  # questions and requests that can't be asked are told before an engine starts
    why = why_unreadable(wanted.kernel_log) if wanted.kernel_log is not None else ""
    if why:
        raise CannotVerify(f"--kernel-log {wanted.kernel_log}: {why}")
    golden = read_golden(options.golden) if options.golden is not None else None
    if golden is not None:
        options = _as_recorded(options, golden)
    return asyncio.run(_verify(wanted, with_suite(options), golden, report, starting))


def _as_recorded(options: VerifyOptions, golden: Golden) -> VerifyOptions:
    """The options of the recording: nothing else can be compared with it. Raises BadGolden where the user asks for
    something else, which would otherwise be passed over in silence."""
    name, asked, given = f"--golden {options.golden}", golden.asking, options.asking
    suite = golden.suite
    if options.suite_given and (options.suite == "quick") != (golden.suite == "quick"):
        raise BadGolden(
            f"{name}: was recorded with --suite {golden.suite}, which --suite {options.suite} can't be compared with: "
            "leave --suite out, or record again"
        )
    if options.suite_given:
        suite = options.suite  # soak asks the standard suite again and again
    for option, recorded, now in (
        ("--probe-tokens", asked.probe_tokens, given.probe_tokens),
        ("--question", asked.questions, given.questions),
        ("--record", asked.records, given.records),
    ):
        if now and now != recorded:
            how = f"with {option} {recorded}" if recorded else f"without {option}"
            raise BadGolden(f"{name}: was recorded {how}: leave {option} out, or record again")
    if asked.requests != given.requests:
        want = "give the same file with --request" if asked.requests else "leave --request out"
        raise BadGolden(f"{name}: was recorded with other requests: {want}, or record again")
    probes = replace(
        options.probes,
        seed=golden.seed,
        probe_tokens=asked.probe_tokens,
        questions=asked.questions,
        records=asked.records,
    )
    return replace(options, suite=suite, probes=probes)


async def _verify(
    wanted: Wanted, options: VerifyOptions, golden: Golden | None, report: Report, starting: Starting
) -> Verification:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    began = time.monotonic()
    if wanted.endpoint is not None:
        running = Running(wanted.endpoint, wanted.model, wanted.api_key, wanted.patience)
        await running.connect()
        with KernelLog(file=wanted.kernel_log) as kernel:
            verifier = Verifier(
                running,
                options,
                kernel=_messages_of(kernel, wanted),
                golden=golden,
                report=report,
                started=starting,
            )
            interrupted = await _until_interrupted(verifier, running)
            return _result(verifier, options, wanted.endpoint, started, began, interrupted)
    launch = parse_command(wanted.words)
    adapter = find_adapter(launch, wanted.factors_file)
    with _folder(wanted.out) as name:
        folder = Path(name)
        kernel_log = wanted.kernel_log or adapter.kernel_log(folder / SCRATCH)
        target = await _started(wanted, launch, adapter, folder, kernel_log, starting)
        with KernelLog(file=kernel_log) as kernel:
            # An engine whose devices have a log of their own has none of this machine's GPUs.
            own = adapter.kernel_log(folder / SCRATCH) is not None and wanted.kernel_log is None
            visible = launch.environment(os.environ).get("CUDA_VISIBLE_DEVICES")
            gpus = () if own else visible_gpus(read_machine().gpus, visible)
            verifier = Verifier(
                target,
                options,
                kernel=GpuMessages(kernel, gpus),
                golden=golden,
                report=report,
                started=starting,
            )
            interrupted = await _until_interrupted(verifier, target)
            return _result(verifier, options, launch.command_line(), started, began, interrupted)


def _messages_of(kernel: KernelLog, wanted: Wanted) -> GpuMessages:
    """What is read of the kernel while an endpoint is asked: any GPU of its machine may be the engine's."""
    elsewhere = why_elsewhere(wanted.endpoint or "") if wanted.kernel_log is None else ""
    if elsewhere:
        kernel.close()
        kernel.unreadable = elsewhere
    return GpuMessages(kernel, () if elsewhere or wanted.kernel_log else read_machine().gpus)


async def _started(
    wanted: Wanted,
    launch: Launch,
    adapter: EngineAdapter,
    folder: Path,
    kernel_log: Path | None,
    starting: Starting,
) -> Started:
    """The launch as a living, ready engine. Raises CannotVerify where it does not get there."""
    machine = read_machine()
    adapter.read(launch, machine)
    port = adapter.wanted_port(launch)
    owner = port_owner(port) if port is not None else None
    if owner is not None:
        raise CannotVerify(f"port {port} of the launch is taken by {owner}: stop it, or give --endpoint")
    tag = hashlib.sha256(f"{folder} {os.getpid()} {time.time_ns()}".encode()).hexdigest()[:16]
    starter = Starter(
        adapter,
        LocalExecutor(),
        machine,
        wanted.patience,
        folder=folder,
        run_tag=tag,
        port=port,
        kernel_log=kernel_log,
    )
    starting("start", 0)
    session = await starter.start(launch, Configuration(()), folder, wanted.instrument)
    if isinstance(session, Unanswerable):
        raise CannotVerify(session.reason)
    try:
        ended = await session.wait_until_ready(lambda _line: None)
    except BaseException:
        await session.close(1.0)
        raise
    if isinstance(ended, Unanswerable):
        await session.close(1.0)
        raise CannotVerify(ended.reason)
    return Started(session, adapter, wanted.patience, ended)


async def _until_interrupted(verifier: Verifier, target: Target) -> bool:
    """Run the verifier and let go of the engine; whether a signal cut it off."""
    try:
        _, interrupted = await until_interrupted(verifier.run())
    finally:
        survivors = await target.close()
    if survivors:
        raise CannotVerify(f"processes of the engine could not be ended: {', '.join(survivors)}")
    return interrupted


def _result(
    verifier: Verifier, options: VerifyOptions, target: str, started: str, began: float, interrupted: bool
) -> Verification:
    found = verifier.result(
        target=target, started=started, seconds=time.monotonic() - began, interrupted=interrupted
    )
    if options.record_golden is None:
        return found
    if interrupted:
        return replace(found, unrecorded="it was interrupted")
    try:
        write_golden(verifier.golden(), options.record_golden)
    except BadGolden as error:  # the verification is worth telling all the same
        return replace(found, unrecorded=str(error))
    return replace(found, recorded=str(options.record_golden))


def _folder(out: Path | None) -> AbstractContextManager[str]:
    """The folder for the evidence: the user's, which stays, or a temporary one."""
    if out is None:
        return TemporaryDirectory(prefix="culpa-verify-")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotVerify(f"--out {out}: can't be made: {error.strerror or error}") from None
    return nullcontext(str(out.resolve()))
