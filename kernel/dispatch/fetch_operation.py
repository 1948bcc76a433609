"""Shell: reading for a Fetch request, and the request's wait for more.

A read gives slices of files or memory, never copies. A long poll waits in the purgatory under the replicas it asks for;
an append or a watermark wakes it, and it reads again when what is there has grown enough.

What lies in a remote store is asked for, and waited for in the same way (`remote.fetch.max.wait.ms`); who has enough
without it is answered at once, and finds it near when it asks again.

Clients with a thousand partitions have a session, most of whose partitions have nothing new: such a one costs a few
comparisons in a request and nothing at a wake-up, where only the replica that progressed is looked at.

*Source:* KIP-74 (one batch whatever the limits), KIP-320 (epochs), KIP-405 (tiers), KIP-595 (diverging epoch).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from ..contracts.election import NO_BROKER_EPOCH
from ..contracts.tiering import RecordsAreRemoteError
from ..errors import CorruptionError, ErrorCode, KafkaError, StorageError
from ..purgatory.delayed_operation import Outcome
from ..types import NO_EPOCH, READ_COMMITTED, IsolationLevel
from ..wire.messages.api_01_fetch import AbortedTransaction, EpochEndOffset, PartitionData
from ..wire.records import records_size
from .broker_nodes import NO_NODE
from .fetch_context import UNKNOWN_ERRORS
from .fetch_throttling import is_throttled
from .request_operation import RequestOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Hashable, Iterable, Sized

    from ..contracts.api_handler import RequestContext
    from ..partitions.replica import Replica
    from ..partitions.replicas import Replicas
    from ..replication.throttling import ReplicationQuota
    from .fetch_context import FetchContext
    from .fetch_target import FetchTarget
    from .replica_selection import Selection

log = logging.getLogger(__name__)

FIRST_VERSION_WITH_IDS: Final = 13
FIRST_VERSION_FOR_FOLLOWERS: Final = 11
"""From which version on a consumer may read from a follower (KIP-392)."""


@attrs.define
class FetchLimits:
    """What a Fetch request wants as a whole. Requests that repeat each other share one, but for `now_ms`.

    Attributes:
        max_bytes: Of all partitions together, but for the first batch.
        min_bytes: The answer waits for so many; at most `max_bytes`, as no answer brings more.
        isolation: What it sees of transactions.
        replica_id: The follower that asks, -1 for a consumer.
        is_follower: Whether a replica asks.
        version: The request's version.
        now_ms: The monotonic clock, for followers' positions.
        broker_epoch: Of the follower's registration, as it says; -1 when it does not.
        is_stale: Whether that is of an earlier process of the follower: it gets nothing.
        selection: Says which replica the consumer is to read from; None: from the leader, or from whom it asked.
        quota: How much followers that are throttled may have; None of a consumer.
        is_throttling: Whether that was exceeded when targets were read last: those that are throttled have to wait.
        keeps_positions: Whether where a follower's log begins and ends is kept: consumers may be sent to it.
    """

    max_bytes: int
    min_bytes: int
    isolation: IsolationLevel
    replica_id: int
    is_follower: bool
    version: int
    now_ms: int
    broker_epoch: int = NO_BROKER_EPOCH
    is_stale: bool = False
    selection: Selection | None = None
    quota: ReplicationQuota | None = None
    is_throttling: bool = False
    keeps_positions: bool = False


@attrs.define
class FetchResult:
    """What a read of all partitions gave.

    Attributes:
        answers: One for each target, in order; None for one that was passed over because it has nothing new.
        size_bytes: Of all records.
        is_final: Whether waiting would be wrong: a partition has an error, or a follower has to truncate.
        cold: Those whose records lie in a remote store and are not at hand.
        cut: Those that have more than the limits allow, with how much of their limits whole batches left free.
    """

    answers: list[PartitionData | None]
    size_bytes: int = 0
    is_final: bool = False
    cold: tuple[FetchTarget, ...] = ()
    cut: tuple[tuple[FetchTarget, int], ...] = ()

    @property
    def ready_bytes(self) -> int:
        """What counts for `min_bytes`: a limit that stopped a read is reached, though whole batches left some of it.

        Otherwise who asks for about as much as fits would wait in vain, beside a full log.
        """
        if not self.cut:
            return self.size_bytes
        return self.size_bytes + sum(bytes_left for _target, bytes_left in self.cut)


def nothing_new(targets: Sized) -> FetchResult:
    """Return what a read within a session gives of targets that are known to have nothing new."""
    return FetchResult([None] * len(targets))


def read_targets(
    replicas: Replicas,
    targets: Iterable[FetchTarget],
    limits: FetchLimits,
    *,
    is_incremental: bool,
    only: Container[FetchTarget] | None = None,
    into: FetchResult | None = None,
) -> FetchResult:
    """Read every target once, in order, within the limits.

    Args:
        replicas: Where.
        targets: What.
        limits: As the request has them.
        is_incremental: Whether targets with nothing new may be passed over.
        only: Pass over all others: they are known to have nothing new.
        into: What targets before these gave, whose bytes count: the same is returned, with these behind.
    """
    result = FetchResult([]) if into is None else into
    is_committed = limits.isolation == READ_COMMITTED
    limits.is_throttling = limits.quota is not None and limits.quota.is_exceeded()
    for target in targets:
        if only is not None:
            if target not in only:
                result.answers.append(None)
                continue
        elif is_incremental and _has_nothing_new(target, limits):
            result.answers.append(None)
            continue
        answer = PartitionData(
            partition_index=target.partition, aborted_transactions=[] if is_committed else None, records=b""
        )
        result.answers.append(answer)
        try:
            _read_one(replicas, target, limits, result, answer)
        except RecordsAreRemoteError:
            if limits.is_follower:  # it is to take what it lacks from the store itself, as in Kafka
                watermarks = answer.high_watermark, answer.log_start_offset
                _fail(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE, answer)
                answer.high_watermark, answer.log_start_offset = watermarks
                result.is_final = True
            else:
                result.cold += (target,)
        except KafkaError as error:
            _fail(error.code, answer)
            result.is_final = True
        except CorruptionError as error:
            # A storage error would be waited for, as one that passes: damage stays.
            log.error("%s cannot be read from offset %d on: %s", target.replica, target.fetch_offset, error)
            _fail(ErrorCode.CORRUPT_MESSAGE, answer)
            result.is_final = True
        except StorageError:
            _fail(ErrorCode.KAFKA_STORAGE_ERROR, answer)
            result.is_final = True
    return result


def _has_nothing_new(target: FetchTarget, limits: FetchLimits) -> bool:
    """Say whether a read would surely give neither records nor an error nor anything that was not told.

    Where it is not sure, the read decides. A follower sees all that is there: only one at the log's end has it all.
    """
    replica = target.replica
    if replica is None or not replica.is_leader or target.max_bytes < 0:
        return False
    if limits.is_follower and (limits.is_stale or not replica.is_follower(limits.replica_id)):
        return False
    log, high_watermark = replica.log, replica.high_watermark  # as `is_told_all_of`, without its call: hot
    return (
        target.told_high_watermark == high_watermark
        and target.told_log_start_offset == log.log_start_offset
        and target.current_leader_epoch in (NO_EPOCH, replica.leader_epoch)
        and (
            target.fetch_offset == log.log_end_offset
            or (
                not limits.is_follower
                and (replica.last_stable_offset if limits.isolation == READ_COMMITTED else high_watermark)
                <= target.fetch_offset
                <= log.log_end_offset
            )
        )
        and (target.last_fetched_epoch < 0 or target.quiet is not None or has_all_below(replica, target))
    )


def _read_one(
    replicas: Replicas, target: FetchTarget, limits: FetchLimits, result: FetchResult, answer: PartitionData
) -> None:
    replica = target.replica
    if replica is not None and replica.is_leader:
        replica.check_leader(max(target.current_leader_epoch, NO_EPOCH))
    else:
        replica = target.replica = _find_readable(replicas, target, limits)
    if target.max_bytes < 0 or (limits.max_bytes < 0 and not result.size_bytes):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if limits.is_follower:
        _check_follower(replica, target, limits)
    answer.high_watermark = replica.high_watermark
    answer.last_stable_offset = replica.last_stable_offset
    answer.log_start_offset = replica.log.log_start_offset
    if (target.last_fetched_epoch >= 0 and _diverges(replica, target, answer)) or (
        limits.selection is not None and _is_sent_on(replica, target.fetch_offset, limits.selection, answer)
    ):
        result.is_final = True
        return
    if limits.is_throttling and is_throttled(replica, limits.replica_id):
        return
    max_bytes = max(0, min(target.max_bytes, limits.max_bytes - result.size_bytes))
    read = replica.read(
        target.fetch_offset,
        max_bytes,
        limits.isolation,
        is_follower=limits.is_follower,
        at_least_one=result.size_bytes == 0,
    )
    if read.size_bytes:
        answer.records = read.data
        result.size_bytes += read.size_bytes
        _note_cut(result, target, read.next_offset, max_bytes - read.size_bytes, limits)
        if limits.isolation == READ_COMMITTED:
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
                for aborted in replica.producers.transactions.aborted_between(target.fetch_offset, read.next_offset)
            ]
        return
    if result.size_bytes:  # it was no first one, so it may have a batch for which the limits leave no room
        _note_cut(result, target, target.fetch_offset, max_bytes, limits)
    if max_bytes and limits.isolation == READ_COMMITTED and target.fetch_offset < answer.last_stable_offset:
        answer.aborted_transactions = None  # as Kafka tells such a batch


def _find_readable(replicas: Replicas, target: FetchTarget, limits: FetchLimits) -> Replica:
    """Return the replica that a Fetch names; consumers may read from a follower, if they know of that (KIP-392).

    Raises:
        KafkaError: This broker has none that may be read.
    """
    replica = find_replica(replicas, target, limits.version)
    if limits.is_follower or limits.version < FIRST_VERSION_FOR_FOLLOWERS:
        replica.check_leader(max(target.current_leader_epoch, NO_EPOCH))
    else:
        replica.check_epoch(max(target.current_leader_epoch, NO_EPOCH))
    return replica


def _is_sent_on(replica: Replica, offset: int, selection: Selection, answer: PartitionData) -> bool:
    """Tell a consumer from which other replica it is to read; return whether there is one."""
    if replica.is_leader and replica.state is not None:
        answer.preferred_read_replica = selection(replica, offset)
    return answer.preferred_read_replica != NO_NODE


def _check_follower(replica: Replica, target: FetchTarget, limits: FetchLimits) -> None:
    """See that a follower may read.

    Raises:
        KafkaError: It has no replica, or an earlier process of it asks.
    """
    if not replica.is_follower(limits.replica_id):
        # Who knows the leader epoch is to ask again: it may be ahead of this broker's metadata.
        knows_epoch = target.current_leader_epoch >= 0
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if knows_epoch else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if limits.is_stale:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _note_cut(result: FetchResult, target: FetchTarget, offset: int, bytes_left: int, limits: FetchLimits) -> None:
    """Note what the limits of a partition left free, where the reader may see more, from this offset on."""
    if result.size_bytes >= limits.min_bytes or bytes_left <= 0 or target.replica is None:
        return
    replica = target.replica
    if offset < (replica.appended_offset if limits.is_follower else replica.visible_end(limits.isolation)):
        result.cut += ((target, bytes_left),)


def begin_cold_read(target: FetchTarget, limits: FetchLimits, done: Callable[[], None]) -> None:
    """Have brought near what a target that was just found to be cold would read; `done` is called when it is there.

    A tier that fails is logged, and `done` not called: whoever waits has a deadline.
    """
    tiered_log = target.replica.tiered_log if target.replica is not None else None
    assert tiered_log is not None, "only what is tiered is cold"
    try:
        tiered_log.begin_cold_read(target.fetch_offset, min(target.max_bytes, limits.max_bytes), done)
    except Exception:  # a plugin's: this target pays, and no other of its request
        log.exception("%s cannot be read from the remote store", tiered_log.partition)


def find_replica(replicas: Replicas, target: FetchTarget, version: int) -> Replica:
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


def find_watched(replicas: Replicas, targets: Iterable[FetchTarget], version: int) -> list[Replica]:
    """Return the replicas whose progress could complete a fetch of these targets, which were just read; each once."""
    return [target.replica or find_replica(replicas, target, version) for target in targets]


def has_all_below(replica: Replica, target: FetchTarget) -> bool:
    """Return whether a follower's log, by what it says of it, is this one as far as it goes."""
    log = replica.log
    if not log.log_start_offset <= target.fetch_offset <= log.log_end_offset:
        return False
    epoch = target.last_fetched_epoch
    if epoch < 0:  # a voter that gave up all it had: it counts as soon as it has a record
        return replica.voting is None or not target.fetch_offset
    end = log.end_offset_for_epoch(epoch)
    return end.leader_epoch == epoch and end.end_offset >= target.fetch_offset


def _diverges(replica: Replica, target: FetchTarget, answer: PartitionData) -> bool:
    """Tell a reader whose log has gone another way where to truncate; return whether it has."""
    end = replica.log.end_offset_for_epoch(target.last_fetched_epoch)
    if end.leader_epoch < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if end.leader_epoch < target.last_fetched_epoch or end.end_offset < target.fetch_offset:
        answer.diverging_epoch = EpochEndOffset(epoch=end.leader_epoch, end_offset=end.end_offset)
        answer.aborted_transactions = None
        return True
    return False


def _fail(code: ErrorCode, answer: PartitionData) -> None:
    answer.error_code = code
    answer.high_watermark = answer.last_stable_offset = answer.log_start_offset = -1
    answer.aborted_transactions = [] if code in UNKNOWN_ERRORS else None


class FetchOperation(RequestOperation):
    """A Fetch that waits until `min_bytes` can be read, something goes wrong, or `max_wait_ms` is over.

    One that waits for a remote store is answered with the first records that came from there, however few.
    """

    __slots__ = (
        "_asked",
        "_min_bytes",
        "_ready_by_target",
        "_ready_bytes",
        "_reply",
        "_result",
        "limits",
        "replicas",
        "session",
    )

    def __init__(
        self,
        *,
        deadline_ms: int,
        context: RequestContext,
        replicas: Replicas,
        session: FetchContext,
        limits: FetchLimits,
        found: FetchResult,
        reply: Callable[[FetchResult], None],
    ) -> None:
        """Make the operation.

        Args:
            deadline_ms: When it is answered with what there is.
            context: The request.
            replicas: Where to read.
            session: What to read.
            limits: As the request has them.
            found: What the first read gave: not enough.
            reply: Takes the answer.
        """
        super().__init__(deadline_ms, context)
        self.replicas = replicas
        self.session = session
        self.limits = limits
        self._reply = reply
        self._result: FetchResult | None = None
        self._asked: set[FetchTarget] = set()
        self._min_bytes = max(limits.min_bytes, 1)
        self._ready_bytes = found.ready_bytes
        # Of those that have something new; what is told without records has 0.
        cut = dict(found.cut)
        self._ready_by_target = {
            target: records_size(answer.records) + cut.get(target, 0)
            for target, answer in zip(session.targets, found.answers, strict=True)
            if answer is not None
        }

    def is_ready(self) -> bool:
        """Return whether a read would now give enough, or an error.

        Source: DelayedFetch.tryComplete; sizes are those of a read, which costs no copy.
        """
        result = self._read()
        self.ask_for(result.cold)
        is_near = bool(self._asked) and not result.cold and result.size_bytes > 0
        if result.is_final or is_near or result.ready_bytes >= self._min_bytes:
            self._result = result
            return True
        return False

    def is_ready_for(self, key: Hashable) -> bool:
        """Return the same, looking only at the replica that progressed: the others have what they had."""
        replica: Replica = key  # type: ignore[assignment] # it waits under replicas and nothing else
        partition = replica.partition
        uses_ids = self.limits.version >= FIRST_VERSION_WITH_IDS
        target = self.session.by_key.get((partition.topic_id.int if uses_ids else partition.topic, partition.partition))
        if target is None:
            return self.is_ready()
        found = read_targets(self.replicas, (target,), self.limits, is_incremental=False)
        self.ask_for(found.cold)
        ready_bytes = found.ready_bytes
        self._ready_bytes += ready_bytes - self._ready_by_target.get(target, 0)
        self._ready_by_target[target] = ready_bytes
        is_near = target in self._asked and found.size_bytes > 0
        return found.is_final or is_near or self._ready_bytes >= self._min_bytes

    def ask_for(self, cold: Iterable[FetchTarget]) -> None:
        """Have brought near what this fetch found to be cold; each once: what is gone again is asked for another time.

        Called when it is parked, and whenever it reads.
        """
        for target in cold:
            if target not in self._asked:
                self._asked.add(target)
                begin_cold_read(target, self.limits, partial(self._came_near, target.replica))

    def _came_near(self, replica: Replica | None) -> None:
        if self.purgatory is not None:
            self.purgatory.check_one(self, replica)

    def _read(self) -> FetchResult:
        session = self.session
        only = self._ready_by_target if session.is_incremental else None
        if only is not None and not only:
            return nothing_new(session.targets)
        return read_targets(
            self.replicas, session.targets, self.limits, is_incremental=session.is_incremental, only=only
        )

    def finish(self, outcome: Outcome) -> None:
        """Answer with what is there."""
        if outcome is not Outcome.CANCELLED:
            self._reply(self._result or self._read())
