"""Shell: what a process and its children have used, as Linux tells it; elsewhere nothing is known.

| figure | from | what it counts |
| --- | --- | --- |
| processor time | `/proc/PID/stat` | user and system, of the process and of its children, ended or alive |
| bytes read | `read_bytes` of `/proc/PID/io` | what had to come from a disk; nothing for what the page cache has |
| bytes written | `write_bytes` there | pages that were made dirty: what goes to a disk, sooner or later |
| memory | `VmHWM` of `/proc/PID/status` | the most physical memory the process had |

*Source:* proc(5).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

_PROC: Final = Path("/proc")
_KIBIBYTE: Final = 1024
_WORKING: Final = frozenset({"R", "D"})
"""It runs, or waits for a disk."""
_UTIME: Final = 11
"""Where `utime` stands in /proc/PID/stat behind the name; `stime`, `cutime` and `cstime` follow."""


@attrs.frozen
class ProcessUse:
    """What was used so far; None where the system does not tell.

    Attributes:
        cpu_s: Processor time in seconds, to a hundredth.
        read_bytes: From disks.
        written_bytes: To disks.
        memory_bytes_max: The most at one time, without children.
        workers_count: How many children it has now, theirs included.
        works_aside: Whether a thread other than its first runs now, or waits for a disk: a flush, a copy.
    """

    cpu_s: float | None = None
    read_bytes: float | None = None
    written_bytes: float | None = None
    memory_bytes_max: int | None = None
    workers_count: int = 0
    works_aside: bool = False

    def cpu_since(self, before: ProcessUse) -> float | None:
        """Return the processor time since an earlier look."""
        return _difference(self.cpu_s, before.cpu_s)

    def read_since(self, before: ProcessUse) -> float | None:
        """Return the bytes read since an earlier look."""
        return _difference(self.read_bytes, before.read_bytes)

    def written_since(self, before: ProcessUse) -> float | None:
        """Return the bytes written since an earlier look."""
        return _difference(self.written_bytes, before.written_bytes)


def _difference(now: float | None, before: float | None) -> float | None:
    return None if now is None or before is None else now - before


def process_use(process_id: int, proc: Path = _PROC) -> ProcessUse:
    """Look at a process that runs.

    Args:
        process_id: Whose.
        proc: Where Linux tells of processes.
    """
    processes = [proc / str(one) for one in (process_id, *_descendants(process_id, proc))]
    counts = [_numbers(process / "io") for process in processes]
    memory = _numbers(processes[0] / "status").get("VmHWM")
    return ProcessUse(
        _sum(_cpu_s(process) for process in processes),
        _sum(one.get("read_bytes") for one in counts),
        _sum(one.get("write_bytes") for one in counts),
        None if memory is None else memory * _KIBIBYTE,
        len(processes) - 1,
        _works_aside(processes[0]),
    )


def _works_aside(process: Path) -> bool:
    """Say whether a thread other than the first is at work: threads that wait for work sleep."""
    states = []
    for thread in (process / "task").glob("*/stat"):
        if thread.parent.name == process.name:
            continue
        try:
            states.append(thread.read_text().rpartition(")")[2].split()[0])
        except OSError:
            continue  # it ended meanwhile
    return any(state in _WORKING for state in states)


def _sum(values: Iterable[float | None]) -> float | None:
    """Add what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _cpu_s(process: Path) -> float | None:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        ticks = sum(map(int, fields[_UTIME : _UTIME + 4]))
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, AttributeError):
        return None


def _numbers(file: Path) -> dict[str, int]:
    """Read lines such as `VmHWM:  20480 kB`; those that hold no number are left out."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.partition(":") for line in lines)
    return {name: int(words[0]) for name, _, rest in pairs if (words := rest.split()) and words[0].isdigit()}


def _descendants(process_id: int, proc: Path) -> list[int]:
    """Return the children that live, and theirs."""
    found: list[int] = []
    for tasks in (proc / str(process_id) / "task").glob("*/children"):
        try:
            children = [int(word) for word in tasks.read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *_descendants(child, proc)]
    return found
