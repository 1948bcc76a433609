"""Shell: the consumer: in a group that shares topics out, or with partitions assigned by hand.

    async with Consumer({"bootstrap.servers": "127.0.0.1:9092", "group.id": "readers"}) as consumer:
        consumer.subscribe(["greetings"])
        for record in await consumer.poll(timeout_ms=1_000):
            print(record.offset, record.value)
        await consumer.commit()
        async for record in consumer:       # for ever
            print(record.offset, record.value)

While it is open, tasks of its own fetch ahead (`fetch_loop`), keep its place in its group (`group.session`) and commit
(`group.committing`). They end with the `async with`: in peace, the consumer commits what was consumed, if
`enable.auto.commit`, tells the listener and leaves its group; by an exception or a cancellation it leaves without
committing, so that what was not processed comes again.

*Cancellation.* A cancelled `poll` took nothing: what it would have returned, the next one returns.

*Source:* `KafkaConsumer` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from odradek.kernel.machine.system.machine import real_machine
from odradek.kernel.peers.lifetime import open_crew
from odradek.kernel.types import TopicPartition

from .brokers import Brokers, open_brokers
from .consumer_positions import ConsumerStatistics, PositionedConsumer, as_offsets, as_partition
from .errors import ClientUsageError
from .failed_records import FailedRecords
from .fetch_loop import FetchLoop
from .fetched_records import ConsumerRecord
from .fetcher import Fetcher
from .group.committed import OffsetAndMetadata
from .group.member import GroupMetadata
from .group.session import GroupSession
from .group.subscription import Subscription
from .ordered.order_keeper import OrderKeeper

if TYPE_CHECKING:
    import re
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    from odradek.kernel.machine.machine import Machine
    from odradek.kernel.peers.errors import ClientError

    from .delivery import RecordMetadata
    from .group.listener import RebalanceListener
    from .producer import Producer

_log = logging.getLogger(__name__)


class Consumer(PositionedConsumer):
    """A consumer; open for the time of its `async with`, polled by one task at a time.

    .. versionadded:: 0.1
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        *,
        machine: Machine | None = None,
    ) -> None:
        """Read the settings; nothing is opened yet.

        Args:
            settings: Kafka's consumer keys.
            machine: What it takes of the host; the real one when None.

        Raises:
            ConfigError: A setting is unknown, unbuilt or wrong.
        """
        super().__init__(settings, machine or real_machine())
        self._group: GroupSession | None = None
        self._lifetime: AbstractAsyncContextManager[None] | None = None
        self._records_count = 0
        group = self._settings.group
        self._failed = None if group is None else FailedRecords(settings, group.group_id, self._machine)

    # Life.

    async def __aenter__(self) -> Self:
        if self._lifetime is not None:
            raise ClientUsageError("a consumer is opened once")
        self._lifetime = self._live()
        await self._lifetime.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._lifetime is not None
        return await self._lifetime.__aexit__(kind, error, traceback)

    @asynccontextmanager
    async def _live(self) -> AsyncIterator[None]:
        async with open_brokers(self._settings.connection, machine=self._machine) as brokers:
            brokers.create_topics_by_asking(self._settings.allows_topic_creation)
            brokers.on_change(self._metadata_changed)
            self._fetcher = Fetcher(self._settings, brokers.cluster)
            self._group = self._new_group(brokers)
            committer = None if self._group is None else self._group.committer
            self._loop = FetchLoop(self._settings, brokers, self._fetcher, committer, self._clock, self._backoff)
            if self._group is not None and self._failed is not None:
                self._order = OrderKeeper(
                    self._group,
                    brokers,
                    self._fetcher,
                    self._failed,
                    self._backoff,
                    self._clock,
                    self._settings.api_timeout_ms,
                    self.announce,
                )
            self._brokers = brokers
            is_peaceful = False
            try:
                async with open_crew() as crew:
                    crew.start_soon(self._loop.run)
                    if self._group is not None:
                        crew.start_soon(self._group.run)
                        crew.start_soon(self._group.committer.run)
                    if self._failed is not None and self._order is not None:
                        crew.start_soon(self._failed.run)
                        crew.start_soon(self._order.run)
                    try:
                        yield
                        is_peaceful = True
                    finally:
                        if self._group is not None:
                            await self._group.end(is_peaceful=is_peaceful)
                if is_peaceful:
                    await self._loop.close_sessions()
            finally:
                self._brokers = None

    def _new_group(self, brokers: Brokers) -> GroupSession | None:
        if self._settings.group is None:
            return None
        return GroupSession(
            self._settings.group,
            brokers,
            self,
            self._backoff,
            self._random,
            api_timeout_ms=self._settings.api_timeout_ms,
        )

    def _grouped(self) -> GroupSession:
        self._opened()
        if self._group is None:
            raise ClientUsageError("this consumer is in no group: set group.id")
        return self._group

    def _metadata_changed(self) -> None:
        if self._group is not None:
            self._group.metadata_changed()
        self._look_again()

    # The group.

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Join the group and read what falls to this consumer of these topics, instead of those before.

        Args:
            topics: Names; one that does not exist yet is read once it does.
            pattern: Instead of names; matched against whole names. A text is matched by the broker with RE2's syntax
                where `group.protocol=consumer`, and else here, as a compiled pattern always is.
            listener: Hears of partitions that come and go.

        Raises:
            ClientUsageError: There is no group, partitions are assigned by hand, or the arguments make no sense.
            ConfigError: An assignor of `partition.assignment.strategy` cannot be had.
        """
        group = self._grouped()
        if group.member is None and self.assignment:
            raise ClientUsageError("partitions are assigned by hand: unsubscribe() first")
        assert self._settings.group is not None
        try:
            subscription = Subscription.of(
                topics, pattern, is_matched_by_broker=self._settings.group.is_consumer_protocol
            )
        except ValueError as error:
            raise ClientUsageError(str(error)) from None
        group.subscribe(subscription, listener)

    async def unsubscribe(self) -> None:
        """Leave the group, or give the partitions up that were assigned by hand.

        Commits before, where the consumer commits by itself; raises what the listener raises. Cancelled, it is
        unknown whether that is done.
        """
        try:
            if self._group is None:
                await trio.lowlevel.checkpoint_if_cancelled()
            else:
                await self._group.leave("the consumer unsubscribed", is_for_good=True)
        finally:
            self.assign(())

    @property
    def subscription(self) -> Subscription | None:
        """What is subscribed to."""
        return None if self._group is None else self._group.subscription

    @property
    def group_metadata(self) -> GroupMetadata:
        """Who commits for this consumer now: for `send_offsets` of a transactional producer.

        Of a consumer that the group has gone on without it is who it was, so that its offsets are refused.

        Raises:
            ClientUsageError: There is no group.
        """
        known = self._grouped().metadata
        assert self._settings.group is not None
        settings = self._settings.group
        return known or GroupMetadata(settings.group_id, instance_id=settings.instance_id)

    def enforce_rebalance(self, reason: str = "the consumer asked for it") -> None:
        """Have the group rebalance (classic protocol; the broker of the other one knows better).

        Raises:
            ClientUsageError: Nothing is subscribed to.
        """
        group = self._grouped()
        if group.member is None:
            raise ClientUsageError("nothing is subscribed to")
        group.member.request_rejoin(reason)
        group.wake()

    async def commit(
        self, offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        """Commit offsets, and wait until they are: those given, or up to where records were handed out.

        Args:
            offsets: The next record to be read, by partition.
            timeout_ms: How long it is tried; `default.api.timeout.ms` when None.

        Raises:
            CommitFailedError: The group has gone on without this consumer.
            RebalanceInProgressError: It is about to: poll, then commit again what is still assigned.
            ClientError: The coordinator refuses, or was not to be reached.

        Cancelled, whether it is done is unknown.
        """
        group = self._grouped()
        wanted = self.consumed() if offsets is None else as_offsets(offsets)
        if wanted:
            timeout = self._settings.api_timeout_ms if timeout_ms is None else timeout_ms
            await group.committer.commit(wanted, timeout_ms=timeout)
        else:
            await trio.lowlevel.checkpoint()

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        *,
        on_commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata], ClientError | None], object] | None = None,
    ) -> None:
        """Commit without waiting, and without trying again: a newer commit may be right behind.

        Args:
            offsets: As for `commit`.
            on_commit: Called with the offsets, and with None or the error; it must not block.
        """
        wanted = self.consumed() if offsets is None else as_offsets(offsets)
        if wanted:
            self._grouped().committer.commit_nowait(wanted, on_commit)

    async def committed(
        self, partitions: Iterable[TopicPartition | tuple[str, int]]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what the group has committed; None where that is nothing.

        Raises:
            ClientError: The coordinator refuses, or was not to be reached in `default.api.timeout.ms`.
        """
        wanted = [as_partition(partition) for partition in partitions]
        return await self._grouped().committer.fetch(wanted, timeout_ms=self._settings.api_timeout_ms)

    # Failed records.

    async def retry(
        self, record: ConsumerRecord, *, reason: str = "", producer: Producer | None = None
    ) -> RecordMetadata:
        """Have a record given back later: produce it to the group's retry topic, and wait until that has it.

        Committing, and going on, is the caller's. The topic is to be subscribed to, too (`odradek retry enable`). Where
        it has `odradek.retry.order=key`, later records of the same key come behind this one.

        Args:
            record: As it was polled, from a topic or its retry topic.
            reason: Why it failed; a dead letter says so.
            producer: By which it is produced, such as one with an open transaction that takes the offsets, too; one of
                this consumer's own when None.

        Raises:
            ClientUsageError: There is no group; or a deserializer made something of it, and there is no producer; or
                order is kept, and its partition was taken away.
            ClientError: It could not be produced.
        """
        return await self._fail(record, reason, producer, is_dead=False)

    async def dead(
        self, record: ConsumerRecord, *, reason: str = "", producer: Producer | None = None
    ) -> RecordMetadata:
        """Have a record be a dead letter at once, whatever attempts are left; otherwise as `retry`."""
        return await self._fail(record, reason, producer, is_dead=True)

    async def _fail(
        self, record: ConsumerRecord, reason: str, producer: Producer | None, *, is_dead: bool
    ) -> RecordMetadata:
        self._grouped()
        assert self._failed is not None, "it is there where a group is"
        assert self._order is not None, "it is there where a group is"
        self._order.check(record)
        metadata = await self._failed.fail(record, reason, producer, is_dead=is_dead)
        self._order.produced(record, metadata.offset)
        return metadata

    # What the group asks of its consumer.

    def give(self, partitions: frozenset[TopicPartition]) -> None:
        """Begin to read partitions that the group gave; for the membership only."""
        brokers, fetcher = self._opened()
        ordered = sorted(partitions)  # a set's order is another one in each process
        fetcher.give(ordered)
        if self._order is not None:
            self._order.assigned()
        brokers.want({partition.topic: None for partition in ordered})
        self._look_again()

    def take(self, partitions: frozenset[TopicPartition]) -> None:
        """Read partitions no more that the group took; for the membership only."""
        self._forget_held_back(partitions)
        if self._fetcher is not None:
            self._fetcher.take_away(partitions)
        if self._order is not None:
            self._order.taken(partitions)

    # Assignment by hand.

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Read these partitions from now on, instead of those before; kept ones keep their positions.

        With a `group.id`, new ones begin where the group has committed; the group is not joined for that.

        Raises:
            ClientUsageError: Topics are subscribed to.
        """
        brokers, fetcher = self._opened()
        if self._group is not None and self._group.member is not None:
            raise ClientUsageError("topics are subscribed to: unsubscribe() first")
        wanted = [as_partition(partition) for partition in partitions]
        self._forget_held_back(fetcher.assignment.difference(wanted))
        fetcher.assign(wanted, from_committed=self._group is not None)
        if self._order is not None:
            self._order.assigned()
        brokers.want({partition.topic: None for partition in wanted})
        self._look_again()

    async def assign_topics(self, *topics: str) -> frozenset[TopicPartition]:
        """Assign every partition that these topics have now, and return them.

        Raises:
            ClientTimeoutError: A topic did not become known within `default.api.timeout.ms`.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        found = [await self.partitions_for(topic) for topic in topics]
        self.assign([TopicPartition(info.name, number) for info in found for number in info.partitions])
        return self.assignment

    # Polling.

    async def poll(self, *, timeout_ms: int | None = None, records_max: int | None = None) -> list[ConsumerRecord]:
        """Return the next records, at once if there are any, and move the positions past them.

        Args:
            timeout_ms: How long to wait for the first record; None is for ever. Then the list is empty.
            records_max: At most so many; `max.poll.records` when None.

        Returns:
            Records, those of a partition in order of their offsets; what an iteration holds back comes first.

        Raises:
            ClientUsageError: Nothing is subscribed to or assigned.
            NoOffsetForPartitionError: A partition has no valid position, and `auto.offset.reset` is `none`.
            DeserializationError: A deserializer failed; seek past the record to go on.
            BrokerError: A broker refuses a partition for good, or a batch is corrupt; or the group refuses this member
                for good.

        Listeners run within, and what they raise is raised. Cancelled, nothing was taken.
        """
        limit = self._settings.poll_records_max if records_max is None else records_max
        deadline_s = math.inf if timeout_ms is None else trio.current_time() + timeout_ms / 1_000
        return await self._poll(limit, deadline_s, is_iterated=False)

    async def _poll(self, limit: int, deadline_s: float, *, is_iterated: bool) -> list[ConsumerRecord]:
        """Do as `poll`; for an iteration return nothing where something is held back for it by now."""
        fetcher = self._opened()[1]
        group, loop = self._group, self._loop
        assert loop is not None
        if not fetcher.assignment and (group is None or group.member is None):
            raise ClientUsageError("nothing is subscribed to or assigned: subscribe() or assign() first")
        await trio.lowlevel.checkpoint()
        while True:
            if group is not None:
                await group.attend()  # in its own time: a listener is not cut off by the poll's
            if is_iterated and self._held_back:
                return []
            held_back = self._take_held_back(limit)
            records = held_back or fetcher.take(limit)
            loop.wake()
            if self._order is not None:
                self._order.polled(has_records=bool(records))
            if held_back:
                return held_back
            if records:
                self._records_count += len(records)
                return self._intercepted(records)
            if not await self._wait_arrived(loop, deadline_s):
                return []
            self._opened()

    async def _wait_arrived(self, loop: FetchLoop, deadline_s: float) -> bool:
        """Wait for something to come; return whether it did in time."""
        if self._group is not None:
            self._group.waits(True)
        try:
            with trio.move_on_at(deadline_s) as scope:
                await loop.arrived.wait()
        finally:
            if self._group is not None:
                self._group.waits(False)
        return not scope.cancelled_caught

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord:
        """Return the next record, waiting for ever; positions are ahead, by what was polled for the iteration."""
        while not self._held_back:
            await self.poll_iterated()
        return self._held_back.pop()

    async def poll_iterated(self) -> None:
        """Poll for an iteration, also one of another thread, unless something is held back by then.

        What is held back by then is left alone: another thread may be taking it.
        """
        if self._held_back:
            await trio.lowlevel.checkpoint()
        else:
            self.hold_back(await self._poll(self._settings.poll_records_max, math.inf, is_iterated=True))

    def _intercepted(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for interceptor in self._settings.interceptors:
            on_consume: Any = getattr(interceptor, "on_consume", None)
            if on_consume is None:
                continue
            try:
                records = on_consume(records)
            except Exception:
                _log.exception("interceptor %r failed in on_consume", interceptor)
        return records

    # The rest.

    def statistics(self) -> ConsumerStatistics:
        """Return how the consumer does."""
        assigned = 0 if self._fetcher is None else len(self._fetcher.assignment)
        fetches = 0 if self._loop is None else self._loop.fetches_count
        return ConsumerStatistics(fetches, self._records_count, assigned)

    def __repr__(self) -> str:
        state = "closed" if self._brokers is None else "open"
        return f"<Consumer {self._settings.connection.client_id} {state} {self.statistics()}>"
