"""Pure core: the coordinator contract: a replicated state machine whose records live in an internal topic.

A plugin gives a `Coordinator`; the kernel's runtime makes one *shard* of it for each partition of its topic that this
broker leads, and drives it, all on the reactor's task::

    request --> operation(shard, now_ms) --> CoordinatorResult(records, response, answers)
                                                  |
                  replay(record), one by one  <---+--->  appended to the topic's partition, many results a batch
                                                              |
                  response and answers leave  <---------------+  once the batch is committed

Hard state changes in `replay` and nowhere else, so a shard that is loaded from the log is the one that wrote it. An
operation may keep soft state (who waits, what is armed, a rebalance under way): it is lost when the shard is unloaded,
as in Kafka. Records may be refused after the operation has run: nothing that clients were promised may rest on soft
state alone.

*Reads of committed state* need no second copy of it: a result without records is answered when everything that its
shard had written before is committed. What a client saw can not be taken back.

*What is long* is a generator that returns the result, and yields after each step of some tens of microseconds: it runs
in slices, with other shards and clients in between, and so do the encoding and the replaying of its records. Nothing
else of its shard runs before that has taken effect: requests, timers and markers wait in their order. A shard that is
unloaded in the middle has written nothing of it.

*Failures.* There is no rolling back: a shard whose append fails, or whose broker no longer leads the partition, is
unloaded; whoever waits is told NOT_COORDINATOR, and the shard is loaded anew from the log by whoever leads then.

*Source:* the form of Kafka's CoordinatorRuntime and CoordinatorShard.

.. versionadded:: 0.1
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

import attrs

from ..classes import frozen
from ..types import NO_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    import uuid

    from ..errors import KafkaError
    from ..types import Buffer
    from .api_handler import ApiHandler, AsyncApiHandler
    from .election import PartitionState
    from .services import Metric
    from .transactions import Transactions

Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)
Record_contra = TypeVar("Record_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)
Shard = TypeVar("Shard")
Shard_co = TypeVar("Shard_co", covariant=True)


class Parked(Enum):
    """The type of `PARKED`."""

    PARKED = 0


PARKED: Final = Parked.PARKED
"""The response of an operation that is answered by a later one, through its `answers`."""


class Waiter(Protocol):
    """Whoever waits for a response. Answered exactly once, on the reactor's task."""

    def answer(self, response: Any) -> None:
        """Take the response; everything that it tells is committed."""
        ...

    def fail(self, error: KafkaError) -> None:
        """Take an error instead: the operation's own, or one of a coordinator that is not here (see the runtime)."""
        ...


@frozen
class CoordinatorResult(Generic[Record_co, Response_co]):
    """What an operation decided: records to be committed, and the answers to be given once they are.

    Attributes:
        records: In order; replayed one by one as they are appended.
        response: For the waiter of this operation, or `PARKED`.
        answers: Of requests that were parked before: to whom, and what.
        is_atomic: Whether all records go in one batch, so that a crash leaves all or none.
    """

    records: Sequence[Record_co]
    response: Response_co
    answers: Sequence[tuple[Waiter, Any]] = ()
    is_atomic: bool = True


CoordinatorSteps: TypeAlias = Generator[None, None, CoordinatorResult[Any, Any]]
"""An operation that is long."""
Decided: TypeAlias = CoordinatorResult[Any, Any] | CoordinatorSteps
"""What an operation returns."""


@frozen
class ProducerIdentity:
    """The transactional producer for whom records are written: they count when its transaction commits (KIP-447)."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER: Final = ProducerIdentity(NO_PRODUCER_ID, NO_EPOCH)


class CoordinatorShard(Protocol[Record_contra]):
    """A pure state machine. Hard state changes in `replay` and nowhere else; operations are its other methods.

    Life: made empty, records replayed, `loaded`; operations, each followed by `replay` of its records; `unloaded`.

    *Source:* the form of Kafka's CoordinatorShard.
    """

    def replay(self, record: Record_contra, offset: int, producer: ProducerIdentity) -> None:
        """Apply one record. Never fails on a record that an operation of this version made.

        Args:
            record: As `Coordinator.decode` gave it, or as an operation made it.
            offset: Where it stands in the partition.
            producer: `NO_PRODUCER`, or whose transaction has to commit before the record counts.
        """
        ...

    def replay_marker(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        """Apply the end of a transaction in this partition.

        The marker's epoch may be newer than the one that the records carry: a producer has one transaction at a time,
        its id is what tells them.
        """
        ...

    def loaded(self, now_ms: int) -> Generator[None, None, None] | None:
        """Everything is replayed and this broker coordinates: arm timers, in steps where there are many.

        `now_ms` is the wall clock.
        """
        ...

    def unloaded(self) -> None:
        """Nothing will be asked any more. The runtime disarms the timers and fails whoever is parked."""
        ...


TimerKey: TypeAlias = tuple[str, ...]
"""What a timer is for, and whose it is: `("session", group_id, member_id)`. Never one text: clients choose the names,
and joined they can be made to look like another's."""


class CoordinatorTimers(Protocol):
    """Timers of one shard. When one is due its operation runs like any other; its result's response is dropped."""

    def monotonic_ms(self) -> int:
        """Return the clock that timers run by, for deadlines that a shard keeps itself.

        It never goes back, and means nothing after a restart. The wall clock that operations are given is for what is
        written down: it may jump, and a deadline by it comes an hour late, or at once.

        .. versionadded:: 0.1
        """
        ...

    def schedule(self, key: TimerKey, delay_ms: int, operation: Callable[[int], Decided]) -> None:
        """Run `operation(now_ms)` once, `delay_ms` from now; replaces what `key` was armed for.

        An operation that raises is logged, and runs again after a pause.
        """
        ...

    def compute(
        self, key: TimerKey, work: Callable[[], Any], operation: Callable[[Any, int], Any], *, asked: object = None
    ) -> None:
        """Run `work()` on a worker thread, then `operation(what it returned, now_ms)` as that of a timer.

        For what is too long for an operation. `work` is given values that nobody changes; `operation` sees what still
        holds. Disarmed or armed anew, the outcome is dropped; `work` raising is logged, and disarms. `asked` is the
        object of a plugin that `work` asks, if any: named when it takes very long.

        .. versionadded:: 0.1
        """
        ...

    def cancel(self, key: TimerKey) -> None:
        """Disarm a key; nothing happens if it is not armed."""
        ...

    def is_scheduled(self, key: TimerKey) -> bool:
        """Return whether the key is armed."""
        ...


@frozen
class TopicView:
    """A topic, as plugins see it.

    Attributes:
        name: Its name.
        topic_id: Its id.
        partitions_count: How many partitions it has.
        racks: By partition, the racks of its replicas' brokers; brokers without a rack are left out.
        configs: What is set on it, as texts.
        storage: What keeps its logs.
        partitions: Who leads each partition, and which replicas it has.
    """

    name: str
    topic_id: uuid.UUID
    partitions_count: int
    racks: Sequence[frozenset[str]] = ()
    configs: Mapping[str, str] = attrs.field(factory=dict)
    storage: str = ""
    partitions: Sequence[PartitionState] = ()


class ClusterView(Protocol):
    """The committed metadata, as a coordinator sees it: always the newest."""

    @property
    def version(self) -> int:
        """Grows with every change: the offset of the last record of the metadata log that is in it."""
        ...

    def topic(self, name: str) -> TopicView | None:
        """Return a topic by its name."""
        ...

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicView | None:
        """Return a topic by its id."""
        ...

    def topic_names(self) -> Sequence[str]:
        """Return the names of all topics, in no order."""
        ...

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """Return what is set on a group by the Admin API (resource type GROUP)."""
        ...

    def feature_level(self, name: str) -> int:
        """Return the finalized level of a feature, 0 when it is not finalized."""
        ...


@frozen
class MetadataChange:
    """What changed in the metadata, as far as coordinators care.

    Attributes:
        created_topics: Names of new topics.
        changed_topics: Names of topics that were there and changed, for instance got partitions.
        deleted_topics: The topics that are gone, as they were.
        changed_groups: Groups whose configs changed.
    """

    created_topics: frozenset[str] = frozenset()
    changed_topics: frozenset[str] = frozenset()
    deleted_topics: tuple[TopicView, ...] = ()
    changed_groups: frozenset[str] = frozenset()


class CoordinatorRuntime(Protocol[Shard_co]):
    """What a plugin's handlers ask of the kernel. Plain calls, on the reactor's task.

    Errors that a waiter is failed with beside its operation's own: COORDINATOR_NOT_AVAILABLE (the write took longer
    than the coordinator's time-out, too few replicas are in sync; nothing was replayed then),
    COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR (another broker leads the partition, this one stopped leading it, or
    the topic is not there yet, as Kafka answers),
    UNKNOWN_SERVER_ERROR (the records of an atomic result do not fit in a batch, and nothing was replayed; or a bug:
    both are logged).
    """

    @property
    def partitions_count(self) -> int:
        """How many partitions the topic has, or will have when it is created."""
        ...

    def partition_for(self, key: str) -> int:
        """Return the partition that coordinates a key: Java's String.hashCode, made positive, modulo the partitions."""
        ...

    def submit(
        self,
        partition: int,
        operation: Callable[[Shard_co, int], Decided],
        waiter: Waiter,
        *,
        producer: ProducerIdentity = NO_PRODUCER,
        verified: Any = ...,
    ) -> None:
        """Run an operation, now unless something long is under way, and have its response given once it is committed.

        Args:
            partition: Which shard.
            operation: Takes the shard and the wall clock in milliseconds. May raise `KafkaError`: the waiter is failed
                with it, at once when nothing is uncommitted. May be called at most once.
            waiter: Answered once; when the response is `PARKED`, by a later result.
            producer: For whose transaction the records are written.
            verified: What `begin_verification` gave before the transaction's coordinator was asked; left out where it
                is not. Where the transaction has ended meanwhile, the waiter is failed with INVALID_TXN_STATE.
        """
        ...

    def begin_verification(self, partition: int, producer: ProducerIdentity, *, may_add: bool) -> Any:
        """Return what to `submit` with, once the coordinator of the producer's transaction has agreed.

        Raises:
            KafkaError: The producer is fenced, or nobody coordinates here.
        """
        ...

    def submit_all(self, operation: Callable[[Shard_co, int], Decided], waiter: Waiter) -> None:
        """Run an operation on every active shard of this broker; the waiter gets the list of their responses.

        A shard that fails is left out when it stopped coordinating meanwhile; any other error fails the waiter.
        COORDINATOR_LOAD_IN_PROGRESS of shards that are loading is told by `is_loading`.
        """
        ...

    def is_loading(self) -> bool:
        """Return whether some shard of this broker is still loading."""
        ...

    async def call(
        self,
        partition: int,
        operation: Callable[[Shard_co, int], Decided],
        *,
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> Any:
        """Like `submit`, and wait. If cancelled, the operation stands and its response is dropped.

        Raises:
            KafkaError: What a waiter would have been failed with.
        """
        ...

    async def call_all(self, operation: Callable[[Shard_co, int], Decided]) -> list[Any]:
        """Like `submit_all`, and wait. If cancelled, what the operation did stands and its responses are dropped.

        Raises:
            KafkaError: What a waiter would have been failed with.
        """
        ...

    def shards(self) -> Iterator[tuple[int, Shard_co]]:
        """Iterate over the active shards with their partitions: for metrics and for counting, to be read only.

        What is read so may not be committed yet: an answer takes it from an operation.
        """
        ...

    def coordinator_epoch(self, partition: int) -> int:
        """Return the leader epoch in which this broker coordinates a partition, -1 when it does not."""
        ...


class Coordinator(Protocol[Shard, Record]):
    """What a plugin gives, once for each broker.

    Attributes:
        name: For logs and tasks.
        key_type: FindCoordinator's key type: 0 groups, 1 transactions, 2 share groups.
        topic: The internal topic: clients are told so, and cannot produce to it or delete its records.
        topic_settings: Broker keys of the topic: its partitions, its replication factor, and by topic key the broker
            key that gives its value or, where there is none, the value itself as `=value`.
        write_timeout_key: Broker key of how long a commit may take, in milliseconds.
        load_buffer_key: Broker key of how many bytes are read at a time while loading.
    """

    name: str
    key_type: int
    topic: str
    topic_settings: TopicKeys
    write_timeout_key: str
    load_buffer_key: str

    def new_shard(self, partition: int, timers: CoordinatorTimers) -> Shard:
        """Return an empty shard."""
        ...

    def encode(self, record: Record) -> tuple[bytes, bytes | None]:
        """Return a record's key and value; a value of None is a tombstone."""
        ...

    def decode(self, key: Buffer, value: Buffer | None) -> Record | None:
        """Return the record of a key and value, None for a type that this version does not know.

        Raises:
            CorruptionError: It is no such record: skipped, counted and logged with its offset.
        """
        ...

    def handlers(self, runtime: CoordinatorRuntime[Shard]) -> Sequence[ApiHandler | AsyncApiHandler]:
        """Return the handlers of the coordinator's APIs; called once, before the broker listens."""
        ...

    def metrics(self, runtime: CoordinatorRuntime[Shard]) -> Sequence[Metric]:
        """Return the coordinator's metrics; called once."""
        ...

    def metadata_changed(self, change: MetadataChange, runtime: CoordinatorRuntime[Shard]) -> None:
        """Hear of each change of the committed metadata, in order; must not block."""
        ...

    def transactions(self, runtime: CoordinatorRuntime[Shard]) -> Transactions | None:
        """Return the coordinator's face towards producers, when it is the one of transactions; called once."""
        ...


@frozen
class TopicKeys:
    """How an internal topic is configured; see `Coordinator.topic_settings`.

    Attributes:
        partitions_key: Broker key of its partitions.
        replication_factor_key: Broker key of its replicas; there are never more than live brokers.
        configs: By topic key the broker key that gives its value, or the value itself as `=value`;
            `min.insync.replicas` is never more than the replicas.
        compression_key: Broker key of the number of the codec that batches are written with; none when it is empty.
        base_sequence: What its batches carry as their first sequence. It means nothing, as no producer counts them,
            but stands in Kafka's files: 0 in `__consumer_offsets`, -1 (none) in `__transaction_state`.
    """

    partitions_key: str
    replication_factor_key: str
    configs: Mapping[str, str]
    compression_key: str = ""
    base_sequence: int = 0
