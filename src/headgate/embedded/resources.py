"""How much memory and disk there is, before a service is started into too little of it."""

from __future__ import annotations

from pathlib import Path

import psutil

from headgate.embedded.errors import NotEnoughDisk, NotEnoughMemory

MEGABYTE = 1024 * 1024
CGROUP = Path("/sys/fs/cgroup")


def available_memory(cgroup: Path = CGROUP) -> int:
    """Megabytes that a new process may use: what the machine has left, or the container if that is less."""
    machine = int(psutil.virtual_memory().available)
    limit = _container_memory(cgroup)
    return (machine if limit is None else min(machine, limit)) // MEGABYTE


def _container_memory(cgroup: Path) -> int | None:
    """Bytes left under the limit of cgroup v2, None without one. Pages of files can be taken back, so they are free."""
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        stat = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return None
    if limit == "max":
        return None
    return max(0, int(limit) - used + int(stat.get("inactive_file", 0)))


def free_disk(folder: Path) -> int:
    """Megabytes free where the folder is, or will be."""
    place = folder
    while not place.exists():
        place = place.parent
    return int(psutil.disk_usage(str(place)).free) // MEGABYTE


def check_room(service: str, folder: Path, memory: int, disk: int) -> None:
    """Raise unless these megabytes of memory, and of disk at the folder, are to be had."""
    if (have := available_memory()) < memory:
        raise NotEnoughMemory(service, memory, have)
    if (have := free_disk(folder)) < disk:
        raise NotEnoughDisk(service, str(folder), disk, have)
