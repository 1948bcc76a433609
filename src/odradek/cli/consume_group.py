"""Shell: `odradek consume --group`: a member of a consumer group that writes what falls to it, and commits that.

What is committed is what was written: before partitions go, and at the end or at an interruption before the group is
left, what is not committed yet is. Who follows sees on standard error which partitions come and go.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from typing import TYPE_CHECKING, Any, Final

import trio

from odradek.client import RebalanceListener
from odradek.kernel.errors import ConfigError
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.types import TopicPartition

from . import note
from .assign import ranges
from .consume import isolation_level
from .offset_spec import Where, parse_offset
from .record_format import ShownRecord

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from odradek.client import Consumer, OffsetAndMetadata

_log = logging.getLogger(__name__)

POLL_MS: Final = 200
LAST_COMMIT_S: Final = 5
"""How long a commit may take at the end, and before partitions go."""
EMPTY_HANDED_S: Final = 5
"""After so long without a partition nothing will fall to a member: there are more members than partitions."""
_RESETS: Final = {Where.BEGINNING: "earliest", Where.END: "latest"}


def group_settings(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what the options mean for a member of a group.

    Raises:
        ConfigError: An option makes no sense for one.
    """
    for option, value in (("--partition", arguments.partition), ("--until", arguments.until)):
        if value:
            raise ConfigError(f"{option} and --group exclude each other: the group says who reads what, and from where")
    where = parse_offset(arguments.offset).where
    if where not in _RESETS:
        raise ConfigError(
            f"--offset {arguments.offset} and --group exclude each other: members go on where the group has committed",
            hint="beginning or end says where to begin when it has committed nothing",
        )
    return {
        "group_id": arguments.group,
        "auto_offset_reset": _RESETS[where],
        "enable_auto_commit": "false",
        "client_id": f"odradek-{socket.gethostname()}-{os.getpid()}",  # so that members can be told from each other
    }


class _Listener(RebalanceListener):
    """Hears of partitions that come and go; within a poll."""

    def __init__(self, work: GroupWork, *, is_told: bool) -> None:
        self._work = work
        self._is_told = is_told
        self.is_over = False

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._tell("assigned", partitions)

    async def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self._tell("revoked", partitions)
        await self._work.give_up(partitions)

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._tell("lost", partitions)
        self._work.forget(partitions)

    def _tell(self, what: str, partitions: frozenset[TopicPartition]) -> None:
        if partitions and self._is_told and not self.is_over:  # that everything goes at the end is no news
            topic = next(iter(partitions)).topic
            numbers = ranges(sorted(partition.partition for partition in partitions))
            note(f"{what} {topic} {numbers}")


class GroupWork:
    """One run of the command.

    It knows up to where it has written each partition and not committed it yet. Of a partition that goes nothing stays
    known: others go on there, and if it comes back, what they have committed must stand.
    """

    def __init__(
        self, arguments: argparse.Namespace, consumer: Consumer, write: Callable[[ShownRecord], bytes]
    ) -> None:
        self._topic: str = arguments.topic
        self._follows: bool = arguments.follow
        self._left: int | None = arguments.count
        self._consumer = consumer
        self._write = write
        self._uncommitted: dict[TopicPartition, int] = {}
        self._listener = _Listener(self, is_told=arguments.follow)

    async def run(self, settings: Mapping[str, object]) -> None:
        """Join, write, commit, leave."""
        from .cluster_calls import reach_for_topic

        async with reach_for_topic(settings, self._topic) as calls:
            partitions = calls.partitions(self._topic, [])
            stops = {
                where: each.end for where, each in (await calls.offsets(partitions, isolation_level(settings))).items()
            }
        async with self._consumer as consumer:
            consumer.subscribe([self._topic], listener=self._listener)
            try:
                await self._read(consumer, stops)
            finally:
                self._listener.is_over = True
                with trio.move_on_after(LAST_COMMIT_S, shield=True):
                    await self._commit(consumer.assignment)
                self._uncommitted.clear()  # it was tried: not once more as the group is left

    async def _read(self, consumer: Consumer, stops: Mapping[TopicPartition, int]) -> None:
        idle_since_s = trio.current_time()
        while True:
            records = await consumer.poll(timeout_ms=POLL_MS)
            self._show(records)
            if self._left == 0:
                return
            if records:
                consumer.commit_nowait(dict(self._uncommitted), on_commit=self._committed)
            if consumer.assignment or consumer.group_metadata.generation_id < 0:
                idle_since_s = trio.current_time()
            if not self._follows and (
                await self._is_at_end(consumer, stops) or trio.current_time() > idle_since_s + EMPTY_HANDED_S
            ):
                return

    async def _is_at_end(self, consumer: Consumer, stops: Mapping[TopicPartition, int]) -> bool:
        """Say whether everything that falls to this member was read, as far as it was there at the beginning."""
        for partition in consumer.assignment:
            if await consumer.position(partition) < stops.get(partition, 0):
                return False
        return bool(consumer.assignment)

    def _show(self, records: Sequence[Any]) -> None:
        """Write records, as many as are wanted; they count once all of them have left this process."""
        wanted, out = records[: self._left], sys.stdout.buffer
        for record in wanted:
            out.write(self._write(ShownRecord.of(record)))
        out.flush()  # what is still in the buffer where the disk is full, or the reader gone, must not be committed
        self._uncommitted |= {record.topic_partition: record.offset + 1 for record in wanted}
        if self._left is not None:
            self._left -= len(wanted)

    async def give_up(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit what was written of partitions before they go, and forget them; also where that is cancelled."""
        try:
            await self._commit(partitions)
        finally:
            self.forget(partitions)

    def forget(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit nothing more of partitions that are others' now."""
        for partition in partitions:
            self._uncommitted.pop(partition, None)

    async def _commit(self, partitions: frozenset[TopicPartition]) -> None:
        """Commit what was written of these partitions and is not committed yet."""
        offsets = {partition: offset for partition, offset in self._uncommitted.items() if partition in partitions}
        if not offsets:
            return
        try:
            await self._consumer.commit(offsets, timeout_ms=LAST_COMMIT_S * 1_000)
        except ClientError as error:
            _log.warning("what was written last is not committed: %s", error)

    def _committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: ClientError | None) -> None:
        """Take note how a commit ended; what one that failed was to commit, the next one does."""
        for partition, offset in offsets.items():
            if error is None and self._uncommitted.get(partition) == offset.offset:
                del self._uncommitted[partition]
