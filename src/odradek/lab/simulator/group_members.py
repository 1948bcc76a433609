"""Shell: a member of the group of the scenario `groups`: one that commits, or consumes, transforms and produces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client.errors import TransactionAbortableError
from odradek.client.group.listener import RebalanceListener
from odradek.kernel.peers.errors import ClientError

from .committing import commit
from .group_oracle import Committer, Floor, name_of
from .reading import text_of
from .seeds import WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer
    from odradek.kernel.types import TopicPartition

    from .cluster import Cluster
    from .group_oracle import GroupOracle
    from .oracle import Oracle
    from .runs import Run

GROUP: Final = "group"
INPUT: Final = "records"
OUTPUT: Final = "results"
NOBODY: Final = -1


@attrs.frozen
class MemberPlan:
    """How a member is.

    Attributes:
        name: Its host's, and its transactional id.
        settings: Its consumer's.
        is_transactional: Whether it consumes, transforms and produces.
        pause_ns_max: How long it takes at most for what it was given.
    """

    name: str
    settings: Mapping[str, object]
    is_transactional: bool
    pause_ns_max: int


class Member(RebalanceListener):
    """One member, in all its lives. Set `leaves`, and its life ends in peace.

    Attributes:
        name: Its host's.
        leaves: Whether it shall leave.
        is_committing: Whether a commit of it is on its way.
    """

    def __init__(self, run: Run, cluster: Cluster, oracle: GroupOracle, records: Oracle, plan: MemberPlan) -> None:
        """Be nobody yet.

        Args:
            run: Where things are counted.
            cluster: Where it lives.
            oracle: Told of commits and of what is read.
            records: Told of what the records say.
            plan: How it is.
        """
        self._run = run
        self._cluster = cluster
        self._oracle = oracle
        self._records = records
        self._plan = plan
        self._random = run.world.seeds.stream(WORKLOAD, plan.name)
        self._floors: dict[int, Floor] = {}
        self._has_failed = False
        self.name = plan.name
        self.leaves = False
        self.is_committing = False

    async def live(self) -> None:
        """Be a member, until it shall leave, or cannot go on."""
        self.is_committing = False
        settings = {
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "request.timeout.ms": 5_000,
            "default.api.timeout.ms": 20_000,
            "max.poll.interval.ms": 30_000,
            "max.poll.records": 1 + self._random.randrange(20),
            "metadata.max.age.ms": 5_000,
            **self._plan.settings,
        }
        try:
            async with self._cluster.consumer(self.name, settings) as consumer:
                self._consumer = consumer
                consumer.subscribe([INPUT], listener=self)
                if self._plan.is_transactional:
                    await self._transform()
                else:
                    await self._consume()
        except ClientError as error:
            self._run.count("members that gave up")
            self._run.world.note("gave up", self.name, type(error).__name__)

    # -- what it reads -----------------------------------------------------------------------------------------------

    async def _poll(self) -> list[ConsumerRecord]:
        records = await self._consumer.poll(timeout_ms=1_000)
        for record in records:
            partition, offset = record.partition, record.offset
            self._records.delivered(partition, offset, text_of(record.value), self._run.world.now_ns)
            if self._oracle.read(self.name, partition, offset):
                self._oracle.told(partition, offset, self._floors[partition])
        if records:
            await trio.sleep(between(self._random, MILLISECOND, self._plan.pause_ns_max) / SECOND)
        return records

    def on_partitions_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        for place in partitions:
            self._begin(place.partition)

    async def on_partitions_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        self._run.count("partitions taken away", len(partitions))
        if not self._plan.is_transactional and is_chosen(self._random, 0.7):
            await self._commit()

    def on_partitions_lost(self, partitions: frozenset[TopicPartition]) -> None:
        """See `RebalanceListener`."""
        self._run.count("partitions lost", len(partitions))

    def _begin(self, partition: int) -> None:
        self._oracle.begins(self.name, partition)
        self._floors[partition] = self._oracle.floor(partition)

    # -- one that commits --------------------------------------------------------------------------------------------

    async def _consume(self) -> None:
        while not self.leaves:
            records = await self._poll()
            for record in records:
                self._oracle.processed(record.partition, record.offset)
            if not records and not self._has_failed:
                continue
            self._has_failed = False
            if is_chosen(self._random, 0.3):
                self._commit_nowait()
            else:
                await self._commit()

    def _who(self) -> Committer:
        metadata = self._consumer.group_metadata
        return Committer(metadata.member_id, metadata.generation_id, metadata.instance_id or metadata.member_id)

    def _attempt(self) -> tuple[Committer, dict[int, int]]:
        who = self._who()
        offsets = {place.partition: found.offset for place, found in self._consumer.consumed().items()}
        self._oracle.attempted(who, offsets)
        return who, offsets

    async def _commit(self) -> None:
        who, offsets = self._attempt()
        if not offsets:
            return
        self.is_committing = True
        try:
            await self._consumer.commit(timeout_ms=10_000)
        except ClientError as error:
            self._failed(error)
        else:
            self._accepted(who, offsets)
        finally:
            self.is_committing = False

    def _commit_nowait(self) -> None:
        who, offsets = self._attempt()

        def told(_offsets: object, error: ClientError | None) -> None:
            if error is None:
                try:
                    self._accepted(who, offsets)
                except Exception as broken:  # the consumer would only log it
                    self._run.fail(broken)
            else:
                self._failed(error)

        self._consumer.commit_nowait(on_commit=told)

    def _accepted(self, who: Committer, offsets: dict[int, int]) -> None:
        self._run.count("commits")
        now = self._who()
        # One that went on to the next generation meanwhile may have committed in either.
        self._oracle.accepted(who if now == who else attrs.evolve(who, generation=NOBODY), offsets)

    def _failed(self, error: ClientError) -> None:
        self._has_failed = True
        self._run.count("commits that were refused")
        self._run.world.note("commit failed", self.name, type(error).__name__)

    # -- one that consumes, transforms and produces ------------------------------------------------------------------

    async def _transform(self) -> None:
        settings: dict[str, object] = {
            "transactional.id": self.name,
            "transaction.timeout.ms": 20_000,
            "delivery.timeout.ms": 15_000,
            "request.timeout.ms": 5_000,
            "max.block.ms": 15_000,
            "linger.ms": 0,
        }
        async with self._cluster.producer(self.name, settings) as producer:
            await producer.init_transactions()
            while not self.leaves:
                records = await self._poll()
                if not records:
                    continue
                try:
                    is_committed = await self._transact(producer, records)
                except TransactionAbortableError:
                    await producer.abort_transaction()
                    is_committed = False
                if not is_committed:
                    self._run.count("transactions, aborted")
                    await self._rewind()

    async def _transact(self, producer: Producer, records: list[ConsumerRecord]) -> bool:
        """Make what is to be made of records; return whether it was committed."""
        await producer.begin_transaction()
        for record in records:
            value = name_of(record.partition, record.offset)
            await producer.enqueue(OUTPUT, value, partition=record.partition)
        who, offsets = self._attempt()
        await producer.send_offsets(self._consumer.consumed(), self._consumer.group_metadata)
        if is_chosen(self._random, 0.2):
            await producer.abort_transaction()
            return False
        self.is_committing = True
        try:
            await commit(producer)
        finally:
            self.is_committing = False
        self._accepted(who, offsets)
        return True

    async def _rewind(self) -> None:
        """Read anew what an aborted transaction was made of."""
        places = sorted(self._consumer.assignment)
        floors = {place: self._oracle.floor(place.partition) for place in places}
        found = await self._consumer.committed(places)
        for place in places:
            if place not in self._consumer.assignment:
                continue
            committed = found[place]
            offset = 0 if committed is None else committed.offset
            self._oracle.told(place.partition, offset, floors[place])
            self._consumer.seek(place, offset)
            self._begin(place.partition)
