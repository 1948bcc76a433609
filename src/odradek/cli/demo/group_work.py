"""Shell: the demo's group: members that share a topic out among themselves, and one that leaves half-way.

Every member commits what one poll gave it before it polls again, so nothing is read twice when partitions move. All
live in this process, so that the story can hold them at half of the topic and look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import Consumer, RebalanceListener
from odradek.kernel.errors import OdradekError

from ..cluster_calls import reach
from ..group_offsets import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.client import ConsumerRecord
    from odradek.kernel.types import TopicPartition

    from ..cluster_calls import ClusterCalls
    from ..group_offsets import PartitionProgress

GROUP: Final = "readers"
NAMES: Final = ("anna", "ben", "clara")
BROKER_SETTINGS: Final = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}
"""A member hears of a rebalance by its next heartbeat; five seconds apart, as by default, is long to watch."""

_POLL_MS: Final = 50
_TIMEOUT_S: Final = 60


@attrs.frozen
class Share:
    """What a member has of the topic.

    Attributes:
        name: The member's.
        partitions: Their numbers, in order.
        records_count: What it has read so far.
    """

    name: str
    partitions: tuple[int, ...]
    records_count: int


@attrs.frozen
class Act:
    """How the group stood at one moment.

    Attributes:
        took_s: How long it took to get there, in seconds.
        group_epoch: Grows with each rebalance.
        shares: By member.
        progress: By partition, as `odradek groups describe` tells it.
    """

    took_s: float
    group_epoch: int
    shares: tuple[Share, ...]
    progress: tuple[PartitionProgress, ...]


@attrs.frozen
class GroupRun:
    """What the group did.

    Attributes:
        half_way: All members, with half of the topic read.
        taken_over: One member less, and nothing read since.
        end: Everything read.
        offsets: The offsets of all records that were read, by partition, in the order in which they were.
    """

    half_way: Act
    taken_over: Act
    end: Act
    offsets: Mapping[int, list[int]]

    @property
    def committed(self) -> dict[int, int | None]:
        """What the group has committed at the end, by partition."""
        return {row.partition.partition: row.committed for row in self.end.progress}


class _Member(RebalanceListener):
    """One member: reads what falls to it, as far as the group may go, until it shall leave."""

    def __init__(self, group: _Group, name: str) -> None:
        self._group = group
        self._consumer = Consumer(
            {
                "bootstrap.servers": group.bootstrap,
                "client.id": name,
                "group.id": GROUP,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.name = name
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.records_count = 0
        self.must_leave = False

    async def run(self) -> None:
        async with self._consumer as consumer:
            consumer.subscribe([self._group.topic], listener=self)
            while not self.must_leave:
                self._pace()
                records = await consumer.poll(timeout_ms=_POLL_MS)
                if records:
                    await consumer.commit()
                    self.records_count += len(records)
                    self._group.note(records)
        self.partitions = frozenset()
        self._group.tell()

    def _pace(self) -> None:
        """Pause partitions in which the group has gone as far as it may, and no others."""
        finished = {partition for partition in self.partitions if self._group.is_at_limit(partition)}
        self._consumer.pause(*finished)
        self._consumer.resume(*self.partitions - finished)

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.partitions |= partitions
        self._pace()
        self._group.tell()

    def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.partitions -= partitions
        self._group.tell()

    def share(self) -> Share:
        numbers = sorted(partition.partition for partition in self.partitions)
        return Share(self.name, tuple(numbers), self.records_count)


class _Group:
    """All members, and what they have read."""

    def __init__(
        self, bootstrap: str, topic: str, ends: Mapping[TopicPartition, int], on_progress: Callable[[int], None]
    ) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.offsets: dict[TopicPartition, list[int]] = {partition: [] for partition in ends}
        self.limits: dict[TopicPartition, int] = dict.fromkeys(ends, 0)
        self.members = [_Member(self, name) for name in NAMES]
        self._on_progress = on_progress
        self._news = trio.Event()

    def note(self, records: list[ConsumerRecord]) -> None:
        """Take note of records that were read and committed."""
        for record in records:
            self.offsets[record.topic_partition].append(record.offset)
        self._on_progress(sum(map(len, self.offsets.values())))
        self.tell()

    def tell(self) -> None:
        """Wake whoever waits for something to happen."""
        self._news.set()
        self._news = trio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        while not holds():
            await self._news.wait()

    def is_at_limit(self, partition: TopicPartition) -> bool:
        """Whether the group may read no further in a partition, for now."""
        return len(self.offsets[partition]) >= self.limits[partition]

    def is_shared_out(self) -> bool:
        """Whether every partition has one reader, and every member that stays something to read."""
        taken = [partition for member in self.members for partition in member.partitions]
        staying = [member for member in self.members if not member.must_leave]
        leaving = [member for member in self.members if member.must_leave]
        return (
            sorted(taken) == sorted(self.limits)
            and all(member.partitions for member in staying)
            and not any(member.partitions for member in leaving)
        )

    async def read_to(self, limits: Mapping[TopicPartition, int]) -> None:
        """Let the members read so far, about, and wait until they have."""
        self.limits = dict(limits)
        await self.until(lambda: all(map(self.is_at_limit, self.limits)))

    async def look(self, calls: ClusterCalls, took_s: float) -> Act:
        """Ask the broker how the group stands."""
        description = await calls.admin.describe_group(GROUP)
        committed = await calls.admin.list_group_offsets(GROUP)
        ends = await calls.offsets(self.limits)
        rows = progress(
            description,
            {partition: found.offset if found else None for partition, found in committed.items()},
            {partition: found.end for partition, found in ends.items()},
        )
        return Act(took_s, description.epoch, tuple(member.share() for member in self.members), tuple(rows))


async def run_group(bootstrap: str, topic: str, on_progress: Callable[[int], None]) -> GroupRun:
    """Have three members read a topic, of which the last leaves half-way.

    Args:
        bootstrap: Where the broker is.
        topic: The topic.
        on_progress: Called with how many records were read.

    Raises:
        OdradekError: It took too long.
    """
    with trio.move_on_after(_TIMEOUT_S):
        async with reach({"bootstrap.servers": bootstrap}) as calls, trio.open_nursery() as nursery:
            ends = {partition: found.end for partition, found in (await calls.offsets(calls.partitions(topic))).items()}
            group = _Group(bootstrap, topic, ends, on_progress)
            began_s = trio.current_time()
            for member in group.members:
                nursery.start_soon(member.run)
            await group.until(group.is_shared_out)
            joined_s = trio.current_time()
            await group.read_to({partition: end // 2 for partition, end in ends.items()})
            half_way = await group.look(calls, joined_s - began_s)
            left_s = trio.current_time()
            group.members[-1].must_leave = True
            await group.until(group.is_shared_out)
            taken_over = await group.look(calls, trio.current_time() - left_s)
            await group.read_to(ends)
            end = await group.look(calls, trio.current_time() - left_s)
            for member in group.members:
                member.must_leave = True
        offsets = {partition.partition: read for partition, read in group.offsets.items()}
        return GroupRun(half_way, taken_over, end, offsets)
    raise OdradekError(f"the demo's group did not get through the topic in {_TIMEOUT_S} s")
