"""Shell: what the disk of a run's broker does: operations fail, there is no room, it is slow, bits turn round.

One after the other. After each the broker is stopped or killed, if it has not ended by itself, and starts anew on a
disk that is whole again: but for bits, which stay as they are.
"""

from __future__ import annotations

import errno
import re
from typing import TYPE_CHECKING, Final

import trio

from odradek.kernel.records.batch import HEADER_SIZE, read_header

from .disk import CAPACITY_BYTES, DiskFaults
from .promises import DiskAccident
from .seeds import FAULTS, between, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from .cluster import BrokerHost, Cluster
    from .disk import File
    from .runs import Run

ERRORS: Final = (errno.EIO, errno.EIO, errno.ENOSPC, errno.EROFS)
OPERATIONS_EXPONENT: Final = 9
"""An operation fails after at most 2 ** n."""
ROOM_BYTES_MAX: Final = 200_000
SLOW_NS_MAX: Final = 3 * SECOND
DURATION_NS_MAX: Final = 40 * SECOND
UNCHECKED_BYTES: Final = 17
"""Of a batch the first ones are not under its checksum: base offset, length, leader epoch, magic."""
CHECKPOINTS: Final = r"/data/(recovery-point|log-start|replication|cleaner)-offset-checkpoint"
BESIDE: Final = r"/data/{topic}-\d+/(\d+\.(index|timeindex|txnindex|snapshot)|leader-epoch-checkpoint)"
"""Of what lies beside logs, these files; of checkpoints only the lines of the topic whose logs rot."""
BITS_BESIDE: Final = 16
"""So many turn round at once, for few matter."""
ENTRY_BYTES: Final = {"index": 8, "timeindex": 12}
"""Entries that are not written yet mean nothing, and do not rot."""

ACCIDENTS: Final = (*DiskAccident,)
"""What is drawn from."""
ROTS: Final = (DiskAccident.ROT, DiskAccident.ROT_OF_HEADER, DiskAccident.ROT_BESIDE)


class DiskAccidents:
    """Life: made, `run` once; then the broker serves on a disk that is whole.

    Attributes:
        are_over: Whether nothing more will go wrong.
    """

    def __init__(
        self,
        run: Run,
        cluster: Cluster,
        target: BrokerHost,
        *,
        topic: str,
        count: int,
        on_end: Callable[[bool], None],
        on_rot: Callable[[int, int], None],
    ) -> None:
        """Plan them.

        Args:
            run: Where they are counted.
            cluster: Where they happen.
            target: To whose broker; it is started by `run`.
            topic: Whose logs rot.
            count: How many.
            on_end: Called each time when the broker has ended: whether it was asked to.
            on_rot: Given a partition and the offset of a batch that rotted.
        """
        self._run = run
        self._target = target
        self._topic = topic
        self._count = count
        self._on_end = on_end
        self._on_rot = on_rot
        self._random = cluster.world.seeds.stream(FAULTS, "disk", target.host.name)
        target.on_failure = self._failed
        self.are_over = False

    def _failed(self, error: Exception) -> None:
        self._run.count("brokers that ended by a disk")

    async def run(self) -> None:
        """Let them happen."""
        target, disk = self._target, self._target.host.disk
        for _ in range(self._count):
            accident = self._random.choice(ACCIDENTS)
            if is_chosen(self._random, 0.3) or accident is DiskAccident.ROT_BESIDE:
                # While it starts: what lies beside logs is in memory when it serves.
                self._begin(accident)
                target.start()
            else:
                target.start()
                await trio.sleep(between(self._random, MILLISECOND, DURATION_NS_MAX) / SECOND)
                self._begin(accident)
            with trio.move_on_after(between(self._random, MILLISECOND, DURATION_NS_MAX) / SECOND):
                await target.wait_ended()
            await self._end()
            disk.faults, disk.capacity_bytes = DiskFaults(), CAPACITY_BYTES
            await trio.sleep(between(self._random, MILLISECOND, DURATION_NS_MAX) / SECOND)
        target.start()
        await target.wait_serving()
        self.are_over = True

    async def _end(self) -> None:
        """End the broker, if it has not ended by itself."""
        target, is_stopped = self._target, False
        if target.host.process is not None:
            if is_chosen(self._random, 0.5):
                target.crash()
            elif target.broker is not None:
                is_stopped = True
                target.broker.stop()
            with trio.move_on_after(60):
                await target.wait_ended()
            target.crash()
        await target.wait_ended()
        self._on_end(is_stopped)

    def _begin(self, accident: DiskAccident) -> None:
        disk, source = self._target.host.disk, self._random
        if accident in ROTS and not self._rot(accident):
            accident = DiskAccident.SLOW  # there is nothing yet that could rot
        match accident:
            case DiskAccident.ERROR:
                number = disk.operations_count + 1 + source.randrange(1 << (source.randrange(OPERATIONS_EXPONENT) + 1))
                disk.faults.errors[number] = source.choice(ERRORS)
                disk.faults.is_broken = is_chosen(source, 0.1)
            case DiskAccident.FULL:
                disk.capacity_bytes = disk.used_bytes + between(source, 0, ROOM_BYTES_MAX)
            case DiskAccident.SLOW:
                disk.faults.sync_ns_max = disk.faults.read_ns_max = between(source, MILLISECOND, SLOW_NS_MAX)
            case DiskAccident.ROT | DiskAccident.ROT_OF_HEADER | DiskAccident.ROT_BESIDE:
                pass
        self._run.count("accidents of the disk")
        self._run.count(f"disk: {accident.value}")
        self._run.world.note("disk accident", accident.name)

    def _rot(self, accident: DiskAccident) -> bool:
        """Turn a bit round; return whether there was one."""
        found: tuple[int, int] | None = None

        def can_rot(path: str, file: File, position: int) -> bool:
            nonlocal found
            if accident is DiskAccident.ROT_BESIDE:
                return self._is_beside(path, file.content, position)
            found = self._batch_at(path, file, position, is_in_header=accident is DiskAccident.ROT_OF_HEADER)
            return found is not None

        bits = BITS_BESIDE if accident is DiskAccident.ROT_BESIDE else 1
        if not [rotten for _ in range(bits) if (rotten := self._target.host.disk.rot(can_rot)) is not None]:
            return False
        if found is not None:
            self._on_rot(*found)
        return True

    def _is_beside(self, path: str, data: bytes, position: int) -> bool:
        """Say whether this byte is one of a file beside a log of the topic, or of its lines in a checkpoint."""
        if re.fullmatch(CHECKPOINTS, path):
            start = data.rfind(b"\n", 0, position) + 1
            return data.startswith(f"{self._topic} ".encode(), start)
        if not re.fullmatch(BESIDE.format(topic=self._topic), path):
            return False
        size = ENTRY_BYTES.get(path.rpartition(".")[2], 1)
        start = position // size * size
        return any(data[start : start + size])

    def _batch_at(self, path: str, file: File, position: int, *, is_in_header: bool) -> tuple[int, int] | None:
        """Return whose batch has this byte, in the part that its checksum covers or before: partition and offset.

        None if the byte is of no batch of the topic, or of the other part of one.
        """
        matched = re.fullmatch(rf"/data/{self._topic}-(\d+)/\d+\.log", path)
        if matched is None:
            return None
        start, data = 0, file.content
        while start + HEADER_SIZE <= len(data):
            header = read_header(data, start)
            if header.length_bytes < HEADER_SIZE:
                return None
            if position < start + header.length_bytes:
                is_whole = start + header.length_bytes <= len(data)
                is_meant = (position < start + UNCHECKED_BYTES) == is_in_header
                return (int(matched[1]), header.base_offset) if is_whole and is_meant else None
            start += header.length_bytes
        return None
