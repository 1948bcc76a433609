"""Shell: reading for a Fetch request, and the request's wait for more.

A read gives slices of files or memory, never copies. A long poll waits in the purgatory under the replicas it asks for;
an append or a watermark wakes it, and it reads again when what is there has grown enough.

*Source:* KIP-74 (one batch whatever the limits), KIP-207, KIP-320 (epochs), KIP-595 (diverging epoch).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from ..errors import ErrorCode, KafkaError, StorageError
from ..purgatory.delayed_operation import Outcome
from ..types import CONSUMER_REPLICA_ID, NO_EPOCH, IsolationLevel
from ..wire.messages.api_01_fetch import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    PartitionData,
)
from .fetch_session import UNKNOWN_ERRORS
from .request_operation import RequestOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..contracts.api_handler import RequestContext
    from .fetch_session import FetchTarget
    from .replica import Replica
    from .replica_manager import ReplicaManager

FIRST_VERSION_WITH_IDS: Final = 13
FIRST_VERSION_WITH_LEADERS: Final = 16
"""From which version on an error says who leads instead (KIP-951)."""
_LEADER_ERRORS: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


@attrs.frozen
class FetchLimits:
    """What a Fetch request wants as a whole.

    Attributes:
        max_bytes: Of all partitions together, but for the first batch.
        min_bytes: The answer waits for so many.
        isolation: What it sees of transactions.
        replica_id: The follower that asks, -1 for a consumer.
        version: The request's version.
        now_ms: The monotonic clock, for followers' positions.
    """

    max_bytes: int
    min_bytes: int
    isolation: IsolationLevel
    replica_id: int
    version: int
    now_ms: int

    @property
    def is_follower(self) -> bool:
        """Whether a replica asks."""
        return self.replica_id > CONSUMER_REPLICA_ID


@attrs.define
class FetchResult:
    """What a read of all partitions gave.

    Attributes:
        answers: One for each target, in order.
        size_bytes: Of all records.
        is_final: Whether waiting would be wrong: a partition has an error, or a follower has to truncate.
    """

    answers: list[PartitionData]
    size_bytes: int = 0
    is_final: bool = False


def note_positions(replicas: ReplicaManager, targets: Iterable[FetchTarget], limits: FetchLimits) -> None:
    """Take note of what a follower has, once for each of its requests: that may commit records others wait for.

    Targets that cannot be read are passed over here: reading them tells the follower why.
    """
    for target in targets:
        try:
            replica = find_replica(replicas, target, limits.version)
            replica.check_leader(max(target.current_leader_epoch, NO_EPOCH))
        except KafkaError:
            continue
        if replica.is_follower(limits.replica_id):
            high_watermark = replica.high_watermark
            replica.note_follower(limits.replica_id, target.fetch_offset, limits.now_ms)
            if replica.high_watermark != high_watermark:
                replicas.progressed(replica)


def read_targets(replicas: ReplicaManager, targets: Iterable[FetchTarget], limits: FetchLimits) -> FetchResult:
    """Read every target once, in order, within the limits."""
    result = FetchResult([])
    is_committed = limits.isolation == IsolationLevel.READ_COMMITTED
    for target in targets:
        answer = PartitionData(
            partition_index=target.partition, aborted_transactions=[] if is_committed else None, records=b""
        )
        result.answers.append(answer)
        try:
            _read_one(replicas, target, limits, result, answer)
        except KafkaError as error:
            _fail(replicas, target, limits.version, error.code, answer)
            result.is_final = True
        except StorageError:
            _fail(replicas, target, limits.version, ErrorCode.KAFKA_STORAGE_ERROR, answer)
            result.is_final = True
    return result


def _read_one(
    replicas: ReplicaManager, target: FetchTarget, limits: FetchLimits, result: FetchResult, answer: PartitionData
) -> None:
    replica = find_replica(replicas, target, limits.version)
    replica.check_leader(max(target.current_leader_epoch, NO_EPOCH))
    if target.max_bytes < 0 or (limits.max_bytes < 0 and not result.size_bytes):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if limits.is_follower and not replica.is_follower(limits.replica_id):
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    answer.high_watermark = replica.high_watermark
    answer.last_stable_offset = replica.last_stable_offset
    answer.log_start_offset = replica.log.log_start_offset
    if target.last_fetched_epoch >= 0 and _diverges(replica, target, answer):
        result.is_final = True
        return
    read = replica.read(
        target.fetch_offset,
        max(0, min(target.max_bytes, limits.max_bytes - result.size_bytes)),
        limits.isolation,
        is_follower=limits.is_follower,
        at_least_one=result.size_bytes == 0,
    )
    if read.size_bytes:
        answer.records = read.data
        result.size_bytes += read.size_bytes
        if limits.isolation == IsolationLevel.READ_COMMITTED:
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in replica.producers.aborted_transactions(target.fetch_offset, read.next_offset)
            ]


def find_replica(replicas: ReplicaManager, target: FetchTarget, version: int) -> Replica:
    """Return the replica that a Fetch of this version names.

    Raises:
        KafkaError: This broker has none.
    """
    if version < FIRST_VERSION_WITH_IDS:
        return replicas.get(target.topic, target.partition)
    topic = replicas.topics_by_id.get(target.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    replica = topic.partitions.get(target.partition)
    return replica if replica is not None else replicas.get(topic.name, target.partition)


def find_watched(replicas: ReplicaManager, targets: Iterable[FetchTarget], version: int) -> list[Replica]:
    """Return the replicas whose progress could complete a fetch of these targets, each once."""
    return list(dict.fromkeys(find_replica(replicas, target, version) for target in targets))


def _diverges(replica: Replica, target: FetchTarget, answer: PartitionData) -> bool:
    """Tell a reader whose log has gone another way where to truncate; return whether it has."""
    end = replica.log.end_offset_for_epoch(target.last_fetched_epoch)
    if end.leader_epoch < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.leader_epoch < target.last_fetched_epoch or end.end_offset < target.fetch_offset:
        answer.diverging_epoch = EpochEndOffset(epoch=end.leader_epoch, end_offset=end.end_offset)
        return True
    return False


def _fail(replicas: ReplicaManager, target: FetchTarget, version: int, code: ErrorCode, answer: PartitionData) -> None:
    answer.error_code = code
    answer.high_watermark = answer.last_stable_offset = answer.log_start_offset = -1
    if code in UNKNOWN_ERRORS:
        answer.aborted_transactions = []
    elif code in _LEADER_ERRORS and version >= FIRST_VERSION_WITH_LEADERS:
        replica = find_replica(replicas, target, version)
        answer.current_leader = LeaderIdAndEpoch(leader_id=replica.leader_id, leader_epoch=replica.leader_epoch)


class FetchOperation(RequestOperation):
    """A Fetch that waits until `min_bytes` can be read, something goes wrong, or `max_wait_ms` is over."""

    __slots__ = ("_reply", "_result", "limits", "replicas", "targets")

    def __init__(
        self,
        *,
        deadline_ms: int,
        context: RequestContext,
        replicas: ReplicaManager,
        targets: Sequence[FetchTarget],
        limits: FetchLimits,
        reply: Callable[[FetchResult], None],
    ) -> None:
        super().__init__(deadline_ms, context)
        self.replicas = replicas
        self.targets = targets
        self.limits = limits
        self._reply = reply
        self._result: FetchResult | None = None

    def is_ready(self) -> bool:
        """Return whether a read would now give enough, or an error.

        Source: DelayedFetch.tryComplete; sizes are those of a read, which costs no copy.
        """
        result = read_targets(self.replicas, self.targets, self.limits)
        if result.is_final or result.size_bytes >= self.limits.min_bytes:
            self._result = result
            return True
        return False

    def finish(self, outcome: Outcome) -> None:
        """Answer with what is there."""
        if outcome is not Outcome.CANCELLED:
            self._reply(self._result or read_targets(self.replicas, self.targets, self.limits))
