"""Pure core: a consumer's positions, what it may fetch next, and the fetched records that wait to be polled.

A partition is fetched again when nothing of it waits any more. What comes back for a partition that was sought,
reassigned or unassigned meanwhile is dropped: each state has a generation.

    position known -> fetch -> buffered -> taken (position moves) -> fetch ...
    position unknown or out of range -> reset by auto.offset.reset -> position known

*Source:* `AbstractFetch`, `FetchCollector`, `SubscriptionState` of Kafka 4.3; KIP-98 (aborted records), KIP-392.

.. versionadded:: 0.1
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, cast

import attrs

from ..errors import ErrorCode, error_code
from ..ids import ZERO_ID
from ..records.batch import CorruptRecordsError
from ..types import CONSUMER_REPLICA_ID, IsolationLevel, TopicPartition
from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from .errors import BrokerError, ClientError, ClientUsageError, DeserializationError, NoOffsetForPartitionError
from .fetched_records import ConsumerRecord, FetchedRecords

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..types import Buffer
    from ..wire.messages.api_01_fetch import FetchResponse, PartitionData
    from .cluster import Cluster
    from .consumer_settings import ConsumerSettings

_NEVER: Final = float("inf")
_STALE_METADATA: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


@attrs.define(eq=False)
class _State:
    """One assigned partition.

    Attributes:
        generation: Answers to requests of an older one are dropped.
        position: Offset of the next record to return; None until it is known.
        needs_reset: Whether the position must be looked up.
        reset_timestamp: What to look up.
        is_paused: Whether polls pass it over.
        is_busy: Whether a request about it is under way.
        retry_at_ms: Not to be asked about before.
        records: What was fetched and not yet taken.
        error: To be raised by the next poll.
        high_watermark: As of the last fetch; -1 before.
        last_stable_offset: Likewise.
        log_start_offset: Likewise.
        replica_id: A follower that the leader told us to read from.
    """

    generation: int
    position: int | None = None
    needs_reset: bool = False
    reset_timestamp: int = 0
    is_paused: bool = False
    is_busy: bool = False
    retry_at_ms: int = 0
    records: FetchedRecords | None = None
    error: ClientError | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    replica_id: int | None = None


@attrs.frozen
class Fetch:
    """A request and what it was made from, to be handed back with the answer."""

    request: FetchRequest
    generations: dict[TopicPartition, int]
    has_topic_ids: bool


class Fetcher:
    """The positions and buffers of one consumer; one owner, no awaits between its calls needed."""

    def __init__(self, settings: ConsumerSettings, cluster: Cluster) -> None:
        self._settings = settings
        self._cluster = cluster
        self._states: dict[TopicPartition, _State] = {}
        self._generation = 0
        self._is_committed = settings.isolation_level is IsolationLevel.READ_COMMITTED

    # Assignment and positions.

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The assigned partitions."""
        return frozenset(self._states)

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """Those of them that polls pass over."""
        return frozenset(partition for partition, state in self._states.items() if state.is_paused)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions from now on; those that were assigned before keep their positions."""
        known = self._states
        self._states = {partition: known.get(partition) or self._new_state() for partition in partitions}

    def _new_state(self) -> _State:
        self._generation += 1
        return _State(self._generation)

    def _state(self, partition: TopicPartition) -> _State:
        state = self._states.get(partition)
        if state is None:
            raise ClientUsageError(f"{partition} is not assigned")
        return state

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset.

        Raises:
            ClientUsageError: The partition is not assigned, or the offset negative.
        """
        if offset < 0:
            raise ClientUsageError(f"offset {offset} is negative")
        self._moved(partition).position = offset

    def seek_to(self, partition: TopicPartition, timestamp: int) -> None:
        """Look the position up, by a special timestamp or a real one, when it is needed next."""
        state = self._moved(partition)
        state.position = None
        state.needs_reset = True
        state.reset_timestamp = timestamp

    def _moved(self, partition: TopicPartition) -> _State:
        """Return the state of a partition after dropping what was fetched or is being fetched."""
        old = self._state(partition)
        fresh = self._new_state()
        fresh.is_paused = old.is_paused
        self._states[partition] = fresh
        return fresh

    def pause(self, partition: TopicPartition, is_paused: bool) -> None:
        """Have polls pass a partition over, or not any more; its position and what was fetched stay."""
        self._state(partition).is_paused = is_paused

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record; None while it is not known."""
        return self._state(partition).position

    def high_watermark(self, partition: TopicPartition) -> int:
        """Return the end of what a consumer may read, as of the last fetch; -1 before the first."""
        state = self._state(partition)
        return state.last_stable_offset if self._is_committed else state.high_watermark

    def raise_error(self, partition: TopicPartition) -> None:
        """Raise what stands against a partition, if anything."""
        error, state = self._state(partition).error, self._state(partition)
        if error is not None:
            state.error = None
            raise error

    def take_resets(self, now_ms: int, default_timestamp: int | None) -> dict[TopicPartition, tuple[int, int]]:
        """Return what must be looked up: timestamp and generation by partition; these count as busy then.

        Args:
            now_ms: Monotonic time.
            default_timestamp: What `auto.offset.reset` means; None for `none`.
        """
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for partition, state in self._states.items():
            if state.position is not None or state.is_busy or state.retry_at_ms > now_ms or state.error is not None:
                continue
            if not state.needs_reset:
                if default_timestamp is None:
                    state.error = NoOffsetForPartitionError((partition,))
                    continue
                state.needs_reset = True
                state.reset_timestamp = default_timestamp
            state.is_busy = True
            wanted[partition] = (state.reset_timestamp, state.generation)
        return wanted

    def reset(self, partition: TopicPartition, generation: int, offset: int) -> None:
        """Take a position over that was looked up."""
        state = self._current(partition, generation)
        if state is not None:
            state.is_busy = False
            state.needs_reset = False
            state.position = offset

    def failed(
        self, generations: dict[TopicPartition, int], retry_at_ms: int, error: ClientError | None = None
    ) -> None:
        """Take note that a request failed: try again later, or have the next poll raise `error`."""
        for partition, generation in generations.items():
            state = self._current(partition, generation)
            if state is not None:
                state.is_busy = False
                state.retry_at_ms = retry_at_ms
                state.replica_id = None
                state.error = error

    def _current(self, partition: TopicPartition, generation: int) -> _State | None:
        state = self._states.get(partition)
        return state if state is not None and state.generation == generation else None

    # Fetching.

    def fetchable(self, now_ms: int) -> tuple[dict[int, list[TopicPartition]], float, bool]:
        """Return what could be fetched now.

        Returns:
            Partitions by the broker to ask; when to look again if nothing happens; whether a leader is unknown.
        """
        nodes: dict[int, list[TopicPartition]] = {}
        next_ms = _NEVER
        is_leader_unknown = False
        for partition, state in self._states.items():
            if state.is_busy or state.is_paused or state.records is not None or state.error is not None:
                continue
            if state.retry_at_ms > now_ms:
                next_ms = min(next_ms, state.retry_at_ms)
                continue
            if state.position is None:
                continue
            node_id = state.replica_id
            if node_id is None or node_id not in self._cluster.nodes:
                node_id = self._cluster.leader_of(partition)
            if node_id is None:
                is_leader_unknown = True
            else:
                nodes.setdefault(node_id, []).append(partition)
        return nodes, next_ms, is_leader_unknown

    def begin_fetch(self, partitions: Sequence[TopicPartition]) -> Fetch:
        """Make the request for partitions that `fetchable` found; they count as busy until the answer."""
        settings = self._settings
        topics: dict[str, FetchTopic] = {}
        generations: dict[TopicPartition, int] = {}
        has_ids = True
        for partition in partitions:
            state = self._states[partition]
            assert state.position is not None, "only what has a position is fetchable"
            state.is_busy = True
            generations[partition] = state.generation
            topic = topics.get(partition.topic)
            if topic is None:
                topic_id = self._cluster.topic_id(partition.topic)
                has_ids = has_ids and topic_id != ZERO_ID
                topic = topics[partition.topic] = FetchTopic(topic=partition.topic, topic_id=topic_id, partitions=[])
            info = self._cluster.partition(partition)
            topic.partitions.append(
                FetchPartition(
                    partition=partition.partition,
                    current_leader_epoch=-1 if info is None else info.leader_epoch,
                    fetch_offset=state.position,
                    partition_max_bytes=settings.partition_fetch_bytes_max,
                )
            )
        request = FetchRequest(
            replica_id=CONSUMER_REPLICA_ID,
            max_wait_ms=settings.fetch_wait_ms_max,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_bytes_max,
            isolation_level=settings.isolation_level,
            topics=list(topics.values()),
            rack_id=settings.rack,
        )
        return Fetch(request, generations, has_ids)

    def finish_fetch(self, fetch: Fetch, response: FetchResponse, retry_at_ms: int) -> bool:
        """Take an answer over.

        Args:
            fetch: What it answers.
            response: The answer, whose records stay views into its memory.
            retry_at_ms: When partitions with a passing error may be asked about again.

        Returns:
            Whether the metadata turned out to be wrong.
        """
        if response.error_code:
            self.failed(fetch.generations, retry_at_ms)
            return True
        is_stale = False
        unanswered = dict(fetch.generations)
        for topic in response.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id)
            for data in topic.partitions:
                partition = TopicPartition(name or "", data.partition_index)
                generation = unanswered.pop(partition, None)
                state = None if generation is None else self._current(partition, generation)
                if state is not None:
                    state.is_busy = False
                    is_stale = self._take_answer(partition, state, data, retry_at_ms) or is_stale
        self.failed(unanswered, retry_at_ms)
        return is_stale or bool(unanswered)

    def _take_answer(self, partition: TopicPartition, state: _State, data: PartitionData, retry_at_ms: int) -> bool:
        code = error_code(data.error_code)
        if code is ErrorCode.NONE:
            self._take_records(partition, state, data)
            return False
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.replica_id is not None:
                state.replica_id = None  # a follower may be behind: ask the leader first
            else:
                state.position = None
            return False
        state.replica_id = None
        state.retry_at_ms = retry_at_ms
        if code in _STALE_METADATA:
            if data.current_leader is not None:
                self._cluster.set_leader(partition, data.current_leader.leader_id, data.current_leader.leader_epoch)
            return True
        if not code.retriable or code is ErrorCode.CORRUPT_MESSAGE:
            state.error = BrokerError(code, f"{partition}: {code.text}")
        return False

    def _take_records(self, partition: TopicPartition, state: _State, data: PartitionData) -> None:
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.replica_id = data.preferred_read_replica
            return
        records = cast("Buffer | None", data.records)  # decoded, it is a view
        if not records:
            return
        aborted = sorted((item.first_offset, item.producer_id) for item in data.aborted_transactions or ())
        assert state.position is not None, "only what has a position is fetched"
        state.records = FetchedRecords(
            partition,
            records,
            state.position,
            aborted if self._is_committed else None,
            checks_crcs=self._settings.checks_crcs,
        )

    # Taking.

    def take(self, records_max: int) -> list[ConsumerRecord]:
        """Return fetched records and move the positions past them.

        Partitions are taken from in turn, each as far as it goes.

        Raises:
            ClientError: What stands against a partition; when records of others are there, these come first.
        """
        taken: list[ConsumerRecord] = []
        for partition, state in list(self._states.items()):
            if state.is_paused:
                continue
            if state.error is not None:
                if taken:
                    return taken
                self.raise_error(partition)
            if state.records is not None and len(taken) < records_max:
                self._take_from(partition, state, records_max - len(taken), taken)
                if state.records is not None:
                    break
        if taken:
            self._rotate(taken[-1].topic_partition)
        return taken

    def _rotate(self, last: TopicPartition) -> None:
        """Put the partition taken from last behind the others, unless more of it waits."""
        state = self._states[last]
        if state.records is None:
            self._states[last] = self._states.pop(last)

    def _take_from(self, partition: TopicPartition, state: _State, count: int, taken: list[ConsumerRecord]) -> None:
        assert state.records is not None
        before = len(taken)
        failure: ClientError | None = None
        fetched: list[ConsumerRecord] = []
        try:
            fetched += islice(state.records, count)  # what came before an error stays
        except CorruptRecordsError as error:
            failure = BrokerError(
                ErrorCode.CORRUPT_MESSAGE, f"{partition} from offset {state.records.next_offset}: {error}"
            )
        if self._settings.key_deserializer is None and self._settings.value_deserializer is None:
            taken += fetched
        else:
            failure = self._deserialize(partition, fetched, taken) or failure
        if len(taken) > before:
            state.position = taken[-1].offset + 1
        if failure is not None:
            # The next poll fetches again from the record that failed, and meets the error if nobody sought past it.
            state.records = None
            if not taken:
                raise failure
        elif len(fetched) < count:
            state.position = state.records.next_offset
            state.records = None

    def _deserialize(
        self, partition: TopicPartition, fetched: list[ConsumerRecord], taken: list[ConsumerRecord]
    ) -> DeserializationError | None:
        """Add records with keys and values made by the deserializers; return what stopped that, if anything."""
        of_key, of_value = self._settings.key_deserializer, self._settings.value_deserializer
        for record in fetched:
            try:
                key = record.key if of_key is None or record.key is None else of_key(record.topic, record.key)
                value = record.value
                if of_value is not None and value is not None:
                    value = of_value(record.topic, value)
            except Exception as error:
                failure = DeserializationError(partition, record.offset, str(error))
                failure.__cause__ = error
                return failure
            taken.append(record._replace(key=key, value=value))
        return None
