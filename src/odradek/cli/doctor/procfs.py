"""Pure core: what Linux says of a host in `/proc`, read from its text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTENS: Final = "0A"
_NO_DISKS: Final = re.compile(r"loop|ram|zram|dm-|md|sr|fd")
_PARTS: Final = re.compile(r"(nvme\d+n\d+p\d+|mmcblk\d+p\d+|[a-z]+\d+)$")
_WHOLE: Final = re.compile(r"(nvme\d+n\d+|mmcblk\d+)$")


def listening(text: str) -> dict[str, int]:
    """Return the ports that somebody listens on, by the inode of the socket: `/proc/net/tcp` or `tcp6`."""
    found = {}
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENS:
            found[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return found


def files_max(text: str) -> int | None:
    """Return how many files a process may have open: `/proc/PID/limits`; None where there is no limit."""
    found = re.search(r"^Max open files\s+(\d+)", text, re.MULTILINE)
    return int(found[1]) if found else None


def swapped_pages(text: str) -> int:
    """Return how many pages went to the swap or came back since the start: `/proc/vmstat`."""
    return sum(int(count) for count in re.findall(r"^pswp(?:in|out) (\d+)", text, re.MULTILINE))


def disk_times(text: str) -> dict[str, tuple[int, int]]:
    """Return requests and their milliseconds, since the start, of each disk: `/proc/diskstats`."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 14:
            continue
        name = fields[2]
        is_whole = _WHOLE.match(name) or not _PARTS.match(name)
        if is_whole and not _NO_DISKS.match(name):
            reads, read_ms, writes, write_ms = (int(fields[place]) for place in (3, 6, 7, 10))
            found[name] = (reads + writes, read_ms + write_ms)
    return found


def request_ms(
    before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]], requests_min: int
) -> dict[str, float]:
    """Return how long a request took between two looks, of disks that had some."""
    found = {}
    for name, (count, spent_ms) in after.items():
        count_before, spent_before = before.get(name, (0, 0))
        if count - count_before >= requests_min:
            found[name] = (spent_ms - spent_before) / (count - count_before)
    return found
