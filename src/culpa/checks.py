"""What can be checked of a run's options before any engine starts, whatever the verb is."""

from dataclasses import replace
from pathlib import Path

from culpa.engines import EngineAdapter, closest
from culpa.experiment import HarnessCannotRun
from culpa.host import port_owner, why_unreadable
from culpa.hunt import Suite
from culpa.model import Launch
from culpa.model.options import IsolateOptions
from culpa.probes import BadText, parse_question, parse_record


def check_options(options: IsolateOptions) -> None:
    """Raises BadText, BadRequestFile or HarnessCannotRun for options that can't work, whatever the launch is."""
    for text in options.questions:
        parse_question(text)
    for text in options.records:
        parse_record(text)
    kinds = Suite(replace(options, probes=())).names()
    for name in options.probes:
        if name not in kinds:
            near = closest(name, kinds)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(kinds)}"
            raise BadText(f"--probe {name}: no such kind of request; {hint}")
    if len(options.records) > 1:
        raise BadText("--record can be given once: a long prompt hides one record")
    if options.kernel_log is not None:
        why = why_unreadable(Path(options.kernel_log))
        if why:
            raise HarnessCannotRun(f"--kernel-log {options.kernel_log}: {why}")


def checked_port(adapter: EngineAdapter, launch: Launch) -> int | None:
    """The port that the launch fixes, None if it fixes none. Raises HarnessCannotRun if it can't be had."""
    port = adapter.wanted_port(launch)
    if port is not None and not 0 < port < 65536:
        raise HarnessCannotRun(f"port {port} of the launch is none: ports go from 1 to 65535")
    owner = port_owner(port) if port is not None else None
    if owner is not None:
        raise HarnessCannotRun(
            f"port {port} of the launch is taken by {owner}: stop that process, or leave the port out of the "
            "command and a free one is found"
        )
    return port
