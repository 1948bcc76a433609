"""Pure core: what a consumer may fetch next, and the fetched records that wait to be polled.

A partition is fetched again when nothing of it waits any more. One fetch is under way with each broker at a time: it
answers one after the other anyway, and a session (`fetch_session`) wants them in order. While records of a broker wait
to be polled, fetches from it do not wait for new ones, and partitions that had nothing are left out: so an idle
partition never keeps a busy one waiting.

    position known -> fetch -> buffered -> taken (position moves) -> fetch ...
    position unknown or out of range -> `positions`

*Source:* `AbstractFetch`, `FetchCollector` of Kafka 4.3; KIP-98 (aborted records), KIP-227, KIP-392, KIP-951.

.. versionadded:: 0.1
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, cast

import attrs

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import ClientError
from odradek.kernel.peers.fetch_session_handler import FetchSessionHandler, Wish
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.types import CONSUMER_REPLICA_ID, NO_EPOCH, ZERO_ID, IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic

from .cluster import LEADER_MOVED, Node
from .errors import BrokerError, DeserializationError
from .fetched_records import ConsumerRecord, FetchedRecords
from .ordered.key_order import Verdict
from .positions import PartitionState, Positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.types import Buffer
    from odradek.kernel.wire.messages.api_01_fetch import FetchResponse, PartitionData

    from .cluster import Cluster
    from .consumer_settings import ConsumerSettings
    from .ordered.key_order import Sieve

_NEVER: Final = float("inf")
_SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
_STALE_METADATA: Final = LEADER_MOVED | {
    ErrorCode.KAFKA_STORAGE_ERROR,  # its disk failed: another replica will lead
    ErrorCode.OFFSET_NOT_AVAILABLE,  # a new leader that does not know its high watermark yet
}

_FOLLOWING_MS_MIN: Final = 1_000
"""So long a follower is read from at least: where metadata counts as old at once, the leader, which has nothing for who
should read elsewhere, would be asked before each fetch."""


@attrs.frozen
class Fetch:
    """A request and what it was made from, to be handed back with the answer.

    Attributes:
        node_id: Whom it goes to.
        request: The request.
        generations: Of the partitions that are wanted, whether named in the request or known to the session.
        has_topic_ids: Whether all topics have ids.
        waits: Whether the broker waits for records where there are none.
    """

    node_id: int
    request: FetchRequest
    generations: dict[TopicPartition, int]
    has_topic_ids: bool
    waits: bool


class Fetcher(Positions):
    """The positions and buffers of one consumer; one owner, no awaits between its calls needed.

    Attributes:
        sieve: Who says which fetched records may be taken; None where all may.
    """

    def __init__(self, settings: ConsumerSettings, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._settings = settings
        self._is_committed = settings.isolation_level is IsolationLevel.READ_COMMITTED
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._fetching: set[int] = set()
        self._held: set[TopicPartition] = set()
        self.sieve: Sieve | None = None

    def high_watermark(self, partition: TopicPartition) -> int:
        """Return the end of what a consumer may read, as of the last fetch; -1 before the first."""
        state = self._state(partition)
        return state.last_stable_offset if self._is_committed else state.high_watermark

    # Fetching.

    def fetchable(self, now_ms: int) -> tuple[dict[int, list[TopicPartition]], float, bool]:
        """Return what could be fetched now.

        Returns:
            Partitions by the broker to ask; when to look again if nothing happens; whether a leader is unknown.
        """
        nodes: dict[int, list[TopicPartition]] = {}
        next_ms = _NEVER
        is_leader_unknown = False
        loaded = self._loaded_nodes()
        for partition, state in self._states.items():
            if state.is_busy or state.is_paused or state.records is not None or state.error is not None:
                continue
            # What a position is found by goes by the clock, whoever leads.
            waits_for_position = state.position is None and state.retry_at_ms > now_ms
            if waits_for_position or self._is_resting(partition, state, now_ms):
                next_ms = min(next_ms, state.retry_at_ms)
                continue
            if state.position is None or not self._is_confirmed(partition, state):
                continue
            self._leave_replica(partition, state, now_ms)
            node_id = self._node_of(partition, state)
            if node_id is None:
                is_leader_unknown = True
            elif node_id not in self._fetching and not (state.is_dry and node_id in loaded):
                nodes.setdefault(node_id, []).append(partition)
        return nodes, next_ms, is_leader_unknown

    def _leave_replica(self, partition: TopicPartition, state: PartitionState, now_ms: int) -> None:
        """Turn to the leader again from time to time, and to a new one: a follower does not say that it is behind.

        As Java: after `metadata.max.age.ms`. The leader names another one, or gives the records itself, where the
        follower has not got what is asked for.
        """
        if state.replica_id is None:
            return
        info = self._cluster.partition(partition)
        has_other_leader = info is not None and info.leader_epoch > state.replica_epoch
        if now_ms >= state.replica_until_ms or has_other_leader:
            state.replica_id = None

    def _node_of(self, partition: TopicPartition, state: PartitionState) -> int | None:
        node_id = state.replica_id
        if node_id is None or node_id not in self._cluster.nodes:
            return self._cluster.leader_of(partition)
        return node_id

    def _loaded_nodes(self) -> set[int | None]:
        """Return brokers of whose partitions records wait to be polled."""
        return {
            self._node_of(partition, state)
            for partition, state in self._states.items()
            if state.records is not None and not state.is_paused and partition not in self._held
        }

    def begin_fetch(self, partitions: Sequence[TopicPartition], node_id: int) -> Fetch:
        """Make the request for partitions that `fetchable` found; they count as busy until the answer."""
        settings = self._settings
        waits = node_id not in self._loaded_nodes()
        generations: dict[TopicPartition, int] = {}
        wanted: dict[TopicPartition, Wish] = {}
        for partition in partitions:
            state = self._states[partition]
            assert state.position is not None, "only what has a position is fetchable"
            state.is_busy = True
            generations[partition] = state.generation
            info = self._cluster.partition(partition)
            wanted[partition] = Wish(
                self._cluster.topic_id(partition.topic),
                FetchPartition(
                    partition=partition.partition,
                    current_leader_epoch=-1 if info is None else info.leader_epoch,
                    fetch_offset=state.position,
                    partition_max_bytes=settings.partition_fetch_bytes_max,
                ),
            )
        session = self._sessions.setdefault(node_id, FetchSessionHandler())
        self._fetching.add(node_id)
        named, forgotten = session.plan(wanted)
        topics: dict[str, FetchTopic] = {}
        for partition, wish in named.items():
            fresh = FetchTopic(topic=partition.topic, topic_id=wish.topic_id, partitions=[])
            topics.setdefault(partition.topic, fresh).partitions.append(wish.partition)
        request = FetchRequest(
            replica_id=CONSUMER_REPLICA_ID,
            max_wait_ms=settings.fetch_wait_ms_max if waits else 0,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_bytes_max,
            isolation_level=settings.isolation_level,
            session_id=session.session_id,
            session_epoch=session.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=forgotten,
            rack_id=settings.rack,
        )
        has_ids = all(wish.topic_id != ZERO_ID for wish in wanted.values())
        return Fetch(node_id, request, generations, has_ids, waits)

    def end_sessions(self) -> list[tuple[int, bool, FetchRequest]]:
        """Return what closes the brokers' sessions: which broker, whether it still owes an answer, the request."""
        ends = ((node_id, session.end()) for node_id, session in self._sessions.items())
        return [(node_id, node_id in self._fetching, request) for node_id, request in ends if request is not None]

    def fail_fetch(self, fetch: Fetch, retry_at_ms: int, error: ClientError | None = None) -> None:
        """Take note that a fetch brought no answer."""
        self._fetching.discard(fetch.node_id)
        self._sessions[fetch.node_id].failed()
        self.failed(fetch.generations, retry_at_ms, error)

    def finish_fetch(self, fetch: Fetch, response: FetchResponse, now_ms: int, retry_at_ms: int) -> bool:
        """Take an answer over.

        Args:
            fetch: What it answers.
            response: The answer, whose records stay views into its memory.
            now_ms: Monotonic time.
            retry_at_ms: When partitions with a passing error may be asked about again.

        Returns:
            Whether the metadata turned out to be wrong.
        """
        self._fetching.discard(fetch.node_id)
        session = self._sessions[fetch.node_id]
        was_incremental = session.is_incremental
        if not session.answered(response):
            # A session that is gone begins again at once; anything else comes with doubts about the metadata.
            is_session_lost = error_code(response.error_code) in _SESSION_ERRORS
            self.failed(fetch.generations, 0 if is_session_lost else retry_at_ms)
            return not is_session_lost
        self._cluster.add_nodes(
            Node(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) for endpoint in response.node_endpoints
        )
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
                    is_stale = self._take_answer(partition, state, data, now_ms, retry_at_ms) or is_stale
                    state.is_dry = not fetch.waits and state.records is None
        if was_incremental:  # what is left out has no news
            for partition, generation in unanswered.items():
                state = self._current(partition, generation)
                if state is not None:
                    state.is_busy, state.is_dry = False, not fetch.waits
            return is_stale
        self.failed(unanswered, retry_at_ms)
        return is_stale or bool(unanswered)

    def _take_answer(
        self, partition: TopicPartition, state: PartitionState, data: PartitionData, now_ms: int, retry_at_ms: int
    ) -> bool:
        code = error_code(data.error_code)
        if code is ErrorCode.NONE:
            self._take_records(partition, state, data, now_ms)
            return False
        if code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if state.replica_id is not None:
                state.replica_id = None  # a follower may be behind: ask the leader first
            else:
                state.position = None
            return False
        state.replica_id = None
        self._rest(partition, state, retry_at_ms)
        if code in _STALE_METADATA:
            leader = data.current_leader
            if leader is not None and self._cluster.set_leader(partition, leader.leader_id, leader.leader_epoch):
                state.retry_at_ms = 0  # the answer says who to turn to: no reason to wait
            return True
        if not code.retriable or code is ErrorCode.CORRUPT_MESSAGE:
            state.error = BrokerError(code, f"{partition}: {code.text}")
        return False

    def _take_records(self, partition: TopicPartition, state: PartitionState, data: PartitionData, now_ms: int) -> None:
        state.high_watermark = data.high_watermark
        state.last_stable_offset = data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            info = self._cluster.partition(partition)
            state.replica_id = data.preferred_read_replica
            state.replica_epoch = NO_EPOCH if info is None else info.leader_epoch
            state.replica_until_ms = now_ms + max(self._settings.connection.metadata_max_age_ms, _FOLLOWING_MS_MIN)
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
        if self.sieve is not None:
            self._held.clear()
            self.sieve.begin(self.position)
        for partition, state in list(self._states.items()):
            if state.is_paused:
                continue
            if state.error is not None:
                if taken:
                    return taken
                self.raise_error(partition)
            if state.records is not None and len(taken) < records_max:
                self._take_from(partition, state, records_max - len(taken), taken)
                if partition in self._held:
                    continue
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

    def _take_from(
        self, partition: TopicPartition, state: PartitionState, count: int, taken: list[ConsumerRecord]
    ) -> None:
        assert state.records is not None
        before = len(taken)
        failure: ClientError | None = None
        fetched: list[ConsumerRecord] = []
        passed: ConsumerRecord | None = None
        try:
            if self.sieve is None:
                fetched += islice(state.records, count)  # what came before an error stays
            else:
                passed = self._sift(partition, state.records, count, fetched)
        except CorruptRecordsError as error:
            failure = BrokerError(
                ErrorCode.CORRUPT_MESSAGE, f"{partition} from offset {state.records.next_offset}: {error}"
            )
        if self._settings.key_deserializer is None and self._settings.value_deserializer is None:
            taken += fetched
        else:
            failure = self._deserialize(partition, fetched, taken) or failure
        last = taken[-1] if len(taken) > before else None
        if passed is not None and failure is None:
            last = passed
        if last is not None:
            state.position, state.position_epoch = last.offset + 1, last.leader_epoch
        if failure is not None:
            # The next poll fetches again from the record that failed, and meets the error if nobody sought past it.
            state.records = None
            if not taken:
                raise failure
        elif len(fetched) < count and partition not in self._held:
            # Behind a marker the epoch, too, is the marker's: that of the last record shown may end before this offset.
            state.position, state.position_epoch = state.records.next_offset, state.records.next_epoch
            state.records = None

    def _sift(
        self, partition: TopicPartition, records: FetchedRecords, count: int, fetched: list[ConsumerRecord]
    ) -> ConsumerRecord | None:
        """Add records that may be given; return the last that is given or passed over, None for nothing.

        Where one has to stay, the partition is held.
        """
        assert self.sieve is not None, "it is asked for"
        passed: ConsumerRecord | None = None
        while len(fetched) < count:
            following = records.peek(1)
            if not following:
                next(records, None)  # raises what has damaged the rest, where it is not used up
                return passed
            verdict = self.sieve.judge(following[0])
            if verdict is Verdict.BEHIND:
                self.sieve.put_behind(records.peek(count))
            if verdict is Verdict.BEHIND or verdict is Verdict.STAY:
                self._held.add(partition)
                return passed
            passed = next(records)
            if verdict is Verdict.GIVE:
                fetched += following
        return passed

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
