"""Reads how much memory there is and how much a process uses, in MiB."""

from collections.abc import Iterator
from pathlib import Path

import psutil

MIB = 1024 * 1024


def pss_mib(pid: int, proc: Path = Path("/proc")) -> float:
    """Its share of what it has in memory; its whole resident memory where the share cannot be read; 0 when it is gone."""
    try:
        for line in (proc / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        # An older kernel, or a sandboxed process, whose maps are nobody's to read.
        pass
    return resident_mib(pid)


def resident_mib(pid: int) -> float:
    """0 when it is gone."""
    try:
        return float(psutil.Process(pid).memory_info().rss) / MIB
    except psutil.Error:
        return 0.0


def machine_mib(root: Path = Path("/")) -> float:
    """What the machine has, or the control group that this process is in."""
    return min([psutil.virtual_memory().total / MIB, *_group_limits_mib(root)])


def _group_limits_mib(root: Path) -> Iterator[float]:
    for controllers, group in _groups(root / "proc/self/cgroup"):
        if controllers == "":
            base, name = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        inside = base / group.lstrip("/")
        for folder in (inside, *inside.parents):
            if folder.is_relative_to(base) and (size := _number(folder / name)):
                yield size / MIB


def _groups(file: Path) -> Iterator[tuple[str, str]]:
    """Controllers and path of every control group of this process."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        yield controllers, path


def _number(file: Path) -> int:
    """0 where there is none: no such file, or `max`."""
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0
