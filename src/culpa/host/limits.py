"""What a container or a shell allows an engine: shared memory, locked memory, files, memory, processors, processes."""

import os
import platform
import resource
from pathlib import Path

_GIB = 1 << 30
_UNLIMITED = 1 << 60  # cgroup v1 writes "no limit" as a number near 2**63
_CGROUP = Path("/sys/fs/cgroup")


def limits(root: Path = _CGROUP) -> dict[str, str | None]:
    """Name to value in words; None where the system does not tell."""
    return {
        "shm": shared_memory(),
        "memlock": _limit(resource.RLIMIT_MEMLOCK, "KiB", 1024),
        "files": _limit(resource.RLIMIT_NOFILE, "", 1),
        "core": _limit(resource.RLIMIT_CORE, "KiB", 1024),
        "memory": _memory(root),
        "processors": _processors(root),
        "processes": _processes(root),
    }


def shared_memory() -> str:
    """Size of /dev/shm: tensor-parallel workers need it, and containers give 64 MiB by default."""
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return "no /dev/shm"
    return f"{status.f_blocks * status.f_frsize / _GIB:.2f} GiB"


def container() -> str:
    """Which kind of container this is, `no` outside of one."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    for mark, name in (("/run/.containerenv", "podman"), ("/.dockerenv", "docker")):
        if Path(mark).exists():
            return name
    for variable in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if variable in os.environ:
            return "apptainer"
    return "no"


def image() -> tuple[str | None, str]:
    """The tag of the image that this container was made of, and where it is written or why it is not known.

    Only podman and apptainer tell a container; docker and kubernetes do not.
    """
    for variable in ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        if os.environ.get(variable):
            return os.environ[variable], variable
    for line in read_text("/run/.containerenv").splitlines():
        name, _, value = line.partition("=")
        if name == "image" and value.strip('"'):
            return value.strip('"'), "/run/.containerenv"
    inside = container()
    if inside == "no":
        return None, "not in a container"
    return None, f"{inside} does not tell a container its image; say --image, or look at docker inspect"


def numa_nodes() -> str | None:
    """How many NUMA nodes the machine has."""
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    return str(len(nodes)) if nodes else None


def c_library() -> str:
    """The C library, such as `glibc 2.39`."""
    return " ".join(part for part in platform.libc_ver() if part) or "not glibc"


def nvidia_module() -> str | None:
    """Version line of NVIDIA's kernel module, which says whether it is the open one."""
    for line in read_text("/proc/driver/nvidia/version").splitlines():
        if line.startswith("NVRM version:"):
            return " ".join(line.removeprefix("NVRM version:").split())
    return None


def _limit(which: int, unit: str, divisor: int) -> str:
    soft = resource.getrlimit(which)[0]
    return "unlimited" if soft == resource.RLIM_INFINITY else f"{soft // divisor} {unit}".strip()


def _groups(root: Path, controller: str) -> list[Path]:
    """The folders of this process's control group and of those around it, innermost first; version 2, then 1."""
    found: list[Path] = []
    for line in read_text("/proc/self/cgroup").splitlines():
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        top = root if not names else root / controller
        # In a container the path may be the host's and lead nowhere here: then the top is the container's own.
        inner = top / path.lstrip("/")
        found += [folder for folder in (inner, *inner.parents) if folder.is_relative_to(top)]
    return list(dict.fromkeys([*found, root, root / controller]))


def _memory(root: Path) -> str | None:
    """The tightest limit on memory of all control groups around this process."""
    told: list[int] = []
    unlimited = False
    for folder in _groups(root, "memory"):
        text = _first(folder / "memory.max", folder / "memory.limit_in_bytes")
        if text == "max" or (text is not None and text.isdigit() and int(text) >= _UNLIMITED):
            unlimited = True
        elif text is not None and text.isdigit():
            told.append(int(text))
    if told:
        return f"{min(told) / _GIB:.1f} GiB"
    return "no limit" if unlimited else None


def _processors(root: Path) -> str | None:
    """The tightest quota, in processors."""
    told: list[float] = []
    unlimited = False
    for folder in _groups(root, "cpu"):
        quota, _, period = read_text(str(folder / "cpu.max")).partition(" ")
        if not quota:
            quota = read_text(str(folder / "cpu.cfs_quota_us"))
            period = read_text(str(folder / "cpu.cfs_period_us"))
        if quota.isdigit() and period.isdigit() and int(period):
            told.append(int(quota) / int(period))
        unlimited = unlimited or quota in ("max", "-1")
    if told:
        return f"{min(told):g}"
    return "no limit" if unlimited else None


def _processes(root: Path) -> str | None:
    """The tightest limit on the number of processes and threads."""
    told = [_first(folder / "pids.max") for folder in _groups(root, "pids")]
    numbers = [int(text) for text in told if text is not None and text.isdigit()]
    if numbers:
        return str(min(numbers))
    return "no limit" if "max" in told else None


def _first(*places: Path) -> str | None:
    """The first of these files that says anything."""
    return next((text for place in places if (text := read_text(str(place)))), None)


def read_text(name: str) -> str:
    """A small file of the kernel, stripped; empty where it is not there or may not be read."""
    try:
        return Path(name).read_text(errors="replace").strip()
    except OSError:
        return ""
