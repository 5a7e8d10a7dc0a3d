"""Everything that touches the machine: processes, ports, GPUs, the kernel's log, the environment."""

from culpa.host.executable import CannotStart, find_executable
from culpa.host.gpus import Gpu, GpuProcess, gpu_memory_used, gpu_processes
from culpa.host.idle import busy_gpus, visible_gpus, wait_until_idle
from culpa.host.kernel_log import KernelLog, why_unreadable
from culpa.host.leftovers import RUN_VARIABLE, end_leftovers, leftovers
from culpa.host.log_tail import LogTail
from culpa.host.machine import Machine, environment_facts, read_machine
from culpa.host.ports import free_port, port_owner
from culpa.host.process import EngineProcess, StopReport
from culpa.host.tree import ProcessFacts

__all__ = [
    "RUN_VARIABLE",
    "CannotStart",
    "EngineProcess",
    "Gpu",
    "GpuProcess",
    "KernelLog",
    "LogTail",
    "Machine",
    "ProcessFacts",
    "StopReport",
    "busy_gpus",
    "end_leftovers",
    "environment_facts",
    "find_executable",
    "free_port",
    "gpu_memory_used",
    "gpu_processes",
    "leftovers",
    "port_owner",
    "read_machine",
    "visible_gpus",
    "wait_until_idle",
    "why_unreadable",
]
