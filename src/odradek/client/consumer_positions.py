"""Shell: what consumers have in common, in a group or not: positions, and offsets of any partition.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
import trio

from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

from .consumer_settings import ConsumerSettings
from .errors import ClientClosedError, ClientTimeoutError, ClientUsageError
from .group.committed import OffsetAndMetadata
from .offset_lists import OffsetAndTimestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.kernel.machine.machine import Machine

    from .brokers import Brokers
    from .cluster import TopicInfo
    from .fetch_loop import FetchLoop
    from .fetched_records import ConsumerRecord
    from .fetcher import Fetcher
    from .ordered.order_keeper import OrderKeeper


def as_partition(given: TopicPartition | tuple[str, int]) -> TopicPartition:
    """Read a partition that a user names; one that cannot be would be waited for in vain.

    Raises:
        ClientUsageError: It is no pair of a topic's name and a partition's number.
    """
    match given:
        case (str() as topic, int() as number) if topic and number >= 0:
            return TopicPartition(topic, number)
    raise ClientUsageError(f"{given!r} is no pair of a topic's name and a partition's number")


def as_offsets(given: Mapping[TopicPartition, int | OffsetAndMetadata]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Read the offsets that a user gives to commit.

    Raises:
        ClientUsageError: A key is no partition.
    """
    return {
        as_partition(partition): OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in given.items()
    }


@attrs.frozen
class ConsumerStatistics:
    """How a consumer does.

    Attributes:
        fetches_count: Answered fetches.
        records_count: Records that polls returned.
        assigned_count: Partitions assigned.
    """

    fetches_count: int
    records_count: int
    assigned_count: int


class PositionedConsumer:
    """The part of a consumer that knows where it reads; see `Consumer` for its life."""

    def __init__(self, settings: Mapping[str, object], machine: Machine) -> None:
        """Read the settings; arguments and errors as `Consumer`."""
        self._settings = ConsumerSettings.read(settings)
        self._machine = machine
        self._clock, self._random = machine.clock, machine.random
        connection = self._settings.connection
        self._backoff = Backoff(connection.retry_backoff_ms, connection.retry_backoff_max_ms, self._random)
        self._brokers: Brokers | None = None
        self._fetcher: Fetcher | None = None
        self._loop: FetchLoop | None = None
        self._order: OrderKeeper | None = None
        self._held_back: list[ConsumerRecord] = []

    def _opened(self) -> tuple[Brokers, Fetcher]:
        if self._brokers is None or self._fetcher is None:
            raise ClientClosedError("the consumer is not open: use it inside its `async with`")
        return self._brokers, self._fetcher

    def _look_again(self) -> None:
        if self._loop is not None:
            self._loop.wake()

    def announce(self) -> None:
        """Have a poll that waits look again; for the membership only."""
        if self._loop is not None:
            self._loop.announce()

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return self._opened()[1].assignment

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those of them that polls pass over."""
        return self._opened()[1].paused

    def seek(self, partition: TopicPartition | tuple[str, int], offset: int) -> None:
        """Go on from this offset; if the log does not have it, `auto.offset.reset` decides when it is read.

        Raises:
            ClientUsageError: The partition is not assigned, or the offset negative.
        """
        wanted = as_partition(partition)
        self._opened()[1].seek(wanted, offset)
        self._forget_held_back((wanted,))
        self._look_again()

    def seek_to_beginning(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on from the first record; of all assigned partitions when none is named."""
        self._seek_to(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Go on after the last record; of all assigned partitions when none is named."""
        self._seek_to(partitions, LATEST_TIMESTAMP)

    def _seek_to(self, partitions: Iterable[TopicPartition | tuple[str, int]], timestamp: int) -> None:
        fetcher = self._opened()[1]
        wanted = [as_partition(partition) for partition in partitions] or list(fetcher.assignment)
        for partition in wanted:
            fetcher.seek_to(partition, timestamp)
        self._forget_held_back(wanted)
        self._look_again()

    @property
    def held_back(self) -> list[ConsumerRecord]:
        """What an iteration holds back, the next record last: one list for the consumer's life.

        Another thread's iteration may pop from it, between any two steps here. So what goes is deleted where it stands:
        at no moment is the list without what is in front of a record that is in it.
        """
        return self._held_back

    def hold_back(self, records: Iterable[ConsumerRecord]) -> None:
        """Have a poll or an iteration hand these out next: they were taken, and nobody got them."""
        self._held_back.extend(reversed(list(records)))

    def _take_held_back(self, records_max: int) -> list[ConsumerRecord]:
        """Return what is held back, at most so many, and nothing of paused partitions."""
        taken: list[ConsumerRecord] = []
        held_back = self._held_back
        for index in reversed(range(len(held_back))):
            if len(taken) >= records_max:
                break
            with suppress(IndexError):  # an iteration of another thread has it
                record = held_back[index]
                if record.topic_partition not in self.paused:
                    del held_back[index]
                    taken.append(record)
        return taken

    def _forget_held_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Have an iteration not hand out what it holds back of these, and all else in its order."""
        forgotten = set(partitions)
        held_back = self._held_back
        index = 0
        while index < len(held_back):
            end = index
            with suppress(IndexError):  # the end, or an iteration of another thread has the rest
                while held_back[end].topic_partition in forgotten:
                    end += 1
            del held_back[index:end]
            index += 1

    def pause(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls pass these over."""
        for partition in partitions:
            self._opened()[1].pause(as_partition(partition), True)

    def resume(self, *partitions: TopicPartition | tuple[str, int]) -> None:
        """Have polls return records of these again."""
        for partition in partitions:
            self._opened()[1].pause(as_partition(partition), False)
        self._look_again()
        self.announce()

    async def position(self, partition: TopicPartition | tuple[str, int]) -> int:
        """Return the offset of the next record to be polled, looking it up if need be.

        Raises:
            NoOffsetForPartitionError: There is none, and `auto.offset.reset` is `none`.
            ClientTimeoutError: It could not be looked up within `default.api.timeout.ms`.
        """
        fetcher = self._opened()[1]
        wanted = as_partition(partition)
        with trio.move_on_after(self._settings.api_timeout_ms / 1_000):
            while True:
                fetcher.raise_error(wanted)
                found = fetcher.position(wanted)
                if found is not None:
                    await trio.lowlevel.checkpoint()
                    return found
                assert self._loop is not None
                arrived = self._loop.arrived
                self._look_again()
                await arrived.wait()
        raise ClientTimeoutError(f"no position of {wanted} within {self._settings.api_timeout_ms} ms")

    def high_watermark(self, partition: TopicPartition | tuple[str, int]) -> int:
        """Return up to where the partition could be read at the last fetch; -1 before the first."""
        return self._opened()[1].high_watermark(as_partition(partition))

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return up to where records were handed out; what an iteration holds back does not count."""
        found = self._opened()[1].consumed()
        for record in self._held_back:  # the next record to be handed out is the last
            found[record.topic_partition] = OffsetAndMetadata(record.offset, leader_epoch=record.leader_epoch)
        if self._order is not None:
            self._order.note(found)
        return found

    # Offsets of any partition.

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, int]:
        """Return the offsets of the first records.

        Raises:
            ClientError: A leader refused, or none answered within `default.api.timeout.ms`.
        """
        return await self._special_offsets(partitions, EARLIEST_TIMESTAMP)

    async def end_offsets(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> dict[TopicPartition, int]:
        """Return the offsets after the last records that a consumer of this isolation level may read.

        Raises:
            ClientError: As `beginning_offsets`.
        """
        return await self._special_offsets(partitions, LATEST_TIMESTAMP)

    async def _special_offsets(
        self, partitions: Iterable[TopicPartition | tuple[str, int]], timestamp: int
    ) -> dict[TopicPartition, int]:
        wanted = {as_partition(partition): timestamp for partition in partitions}
        found = await self._list(wanted)
        return {partition: found[partition].offset for partition in wanted}

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record of each partition that is as late as a timestamp, or None where there is none.

        Args:
            timestamps: Milliseconds since the Unix epoch, >= 0.

        Raises:
            ClientError: As `beginning_offsets`.
        """
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise ClientUsageError("timestamps are not negative; see beginning_offsets and end_offsets")
        found = await self._list({as_partition(partition): at for partition, at in timestamps.items()})
        return {partition: answer if answer.offset >= 0 else None for partition, answer in found.items()}

    async def _list(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        self._opened()
        assert self._loop is not None
        await trio.lowlevel.checkpoint_if_cancelled()
        return await self._loop.list(timestamps)

    async def partitions_for(self, topic: str) -> TopicInfo:
        """Return what is known of a topic.

        Raises:
            ClientTimeoutError: It did not become known within `default.api.timeout.ms`.
        """
        return await self._opened()[0].topic(topic, timeout_ms=self._settings.api_timeout_ms)
