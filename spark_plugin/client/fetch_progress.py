"""Pure core: reading one range of one partition: what to fetch next, and what an answer means.

    fetching --whole batches--> Fetched, position moves --position >= end--> done
             --a batch at or after the end--> done: what is missing before was compacted away
             --nothing, though the broker has the end--> done, once a second answer and the leader agree
             --nothing, and the end is not there yet--> again, until nothing moved for the poll time-out

A range ends without its last records for three reasons, none of them an error: gaps of compaction, control batches at
the end of the log, aborted transactions. The first two show as a batch beyond the end, or as no batch at all.

*An empty answer is doubted once.* A broker that throttles a client, or that did not get to a remote segment in time,
answers with nothing as well, and with a high watermark beyond the range. So the end counts only if a second answer in
a row is empty too, none of them was throttled, and the position is in the leader's local log (`needs_local_check`).

*Source:* `AbstractFetch`, `FetchCollector`, `DelayedRemoteFetch` of Kafka 4.3; KIP-74, KIP-98, KIP-320, KIP-392.

.. versionadded:: 0.1
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import attrs

from odradek.client.cluster import LEADER_MOVED
from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.types import CONSUMER_REPLICA_ID, ZERO_ID, IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic

from .batches import walk_batches

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from odradek.kernel.wire.messages.api_01_fetch import FetchResponse, PartitionData

_BYTES_MAX: Final = 2**31 - 1
_EMPTY_ANSWERS_MIN: Final = 2
_NAMES_VERSION_MAX: Final = 12
"""Up to this version Fetch goes by a topic's name, from the next on by its id."""
_NO_SESSION: Final = -1

_STALE: Final = LEADER_MOVED | {
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.UNKNOWN_SERVER_ERROR,  # a read that went wrong once: of a disk, or of remote storage
}
"""Look at the metadata and ask again: what is not a leader's leaving passes as well, or the poll time-out ends it."""


class Fetched(NamedTuple):
    """What one answer brought: whole batches, valid until the next one is asked for.

    Attributes:
        data: Record batches as the broker has them; the first may begin before the position, the last may end after
            the range: `ColumnReader` cuts by offsets.
        aborted: First offset and producer id of aborted transactions in it, rising; empty unless read_committed.
        next_offset: The offset after the last batch.
        high_watermark: As the broker says.
        last_stable_offset: As the broker says; -1 where it does not.
        log_start_offset: As the broker says; -1 where it does not.
    """

    data: memoryview
    aborted: Sequence[tuple[int, int]]
    next_offset: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int


class Outcome(Enum):
    """What an answer without records means for the next step."""

    AGAIN = auto()
    """Ask again at once: the broker has waited already."""
    LATER = auto()
    """Ask again after a pause: nothing is wrong, but the broker did not wait."""
    REFRESH = auto()
    """Ask for metadata first: this broker is the wrong one, or not ready, or the topic is gone or was made anew."""
    OTHER_REPLICA = auto()
    """The leader names a replica nearer to this client."""
    BACK_TO_LEADER = auto()
    """A follower does not have the offset; the leader may."""
    OUT_OF_RANGE = auto()
    """The leader does not have the offset."""
    LOCAL_CHECK = auto()
    """The range seems to have ended; ask whether the position is in the leader's local log."""
    DONE = auto()
    """The range has ended."""
    REFUSED = auto()
    """An error that repetition does not cure."""


@attrs.define
class FetchProgress:
    """How far the reading of a range has come; one owner.

    Attributes:
        partition: Where.
        position: The next offset that is missing.
        end: Where the range ends.
        is_read_committed: Whether the last stable offset bounds the reading.
        fetch_bytes: How much one answer may bring.
        high_watermark: As last heard; -1 before.
        last_stable_offset: As last heard; -1 before.
        log_start_offset: As last heard; -1 before.
        code: The last error code.
        replica_id: The replica that the leader named last; -1 for none.
    """

    partition: TopicPartition
    position: int
    end: int
    is_read_committed: bool
    fetch_bytes: int
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    code: ErrorCode = ErrorCode.NONE
    replica_id: int = -1
    _empty_count: int = 0
    _has_ended: bool = False

    @property
    def is_done(self) -> bool:
        """Whether nothing of the range is missing any more."""
        return self._has_ended or self.position >= self.end

    def seek(self, position: int) -> None:
        """Go on at another offset."""
        self.position = position
        self._has_ended = False
        self._empty_count = 0

    def finish(self) -> None:
        """Take note that nothing more will come."""
        self._has_ended = True

    def request(
        self, topic_id: uuid.UUID, leader_epoch: int, *, wait_ms: int, min_bytes: int, max_bytes: int, rack: str
    ) -> FetchRequest:
        """Return the request for what comes next; with a zero id it must be sent in `version_max` at most.

        Args:
            topic_id: Of the topic, as the metadata says.
            leader_epoch: Of the leader that is asked; -1 for a follower.
            wait_ms: How long the broker may wait for records.
            min_bytes: How much it waits for.
            max_bytes: The most it may send in all.
            rack: Where this client stands; empty when unknown.
        """
        partition = FetchPartition(
            partition=self.partition.partition,
            current_leader_epoch=leader_epoch,
            fetch_offset=self.position,
            partition_max_bytes=self.fetch_bytes,
        )
        return FetchRequest(
            replica_id=CONSUMER_REPLICA_ID,
            max_wait_ms=wait_ms,
            min_bytes=min_bytes,
            max_bytes=max(max_bytes, self.fetch_bytes),
            isolation_level=self._isolation_level,
            session_epoch=_NO_SESSION,
            topics=[FetchTopic(topic=self.partition.topic, topic_id=topic_id, partitions=[partition])],
            rack_id=rack,
        )

    @property
    def _isolation_level(self) -> IsolationLevel:
        return IsolationLevel.READ_COMMITTED if self.is_read_committed else IsolationLevel.READ_UNCOMMITTED

    def judge(self, response: FetchResponse, *, is_leader: bool) -> Fetched | Outcome:
        """Take an answer over.

        Args:
            response: The answer, whose records are a view.
            is_leader: Whether the leader gave it, not a follower.

        Returns:
            What it brought, the position moved behind it; or what to do instead.

        Raises:
            CorruptRecordsError: A batch's header makes no sense.
        """
        data = _partition_data(response, self.partition.partition)
        self.code = error_code(response.error_code or (0 if data is None else data.error_code))
        if self.code:
            return self._judge_code(is_leader=is_leader)
        if data is None:
            # A broker that throttles answers without partitions.
            self._empty_count = 0
            return Outcome.LATER
        self.high_watermark = data.high_watermark
        self.last_stable_offset = data.last_stable_offset
        self.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0 and is_leader and not data.records:
            self.replica_id = data.preferred_read_replica
            return Outcome.OTHER_REPLICA
        records = cast("memoryview | None", data.records)  # decoded, it is a view into the answer
        if not records:
            return self._judge_empty(is_throttled=response.throttle_time_ms > 0, is_leader=is_leader)
        return self._take(records, data)

    def _judge_code(self, *, is_leader: bool) -> Outcome:
        self._empty_count = 0
        if self.code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return Outcome.OUT_OF_RANGE if is_leader else Outcome.BACK_TO_LEADER
        if self.code in _STALE:
            return Outcome.REFRESH
        return Outcome.REFUSED

    def _judge_empty(self, *, is_throttled: bool, is_leader: bool) -> Outcome:
        limit = self.high_watermark
        if self.is_read_committed and self.last_stable_offset >= 0:
            limit = min(limit, self.last_stable_offset)
        if limit < self.end or is_throttled:
            self._empty_count = 0
            return Outcome.LATER if is_throttled else Outcome.AGAIN
        if not is_leader:
            return Outcome.BACK_TO_LEADER
        self._empty_count += 1
        return Outcome.AGAIN if self._empty_count < _EMPTY_ANSWERS_MIN else Outcome.LOCAL_CHECK

    def doubt_end(self) -> None:
        """Take note that the position is not in the local log: empty answers prove nothing."""
        self._empty_count = 0

    def _take(self, records: memoryview, data: PartitionData) -> Fetched | Outcome:
        walk = walk_batches(records, self.position, self.end)
        if not walk.stop:
            if walk.is_past_end:
                self._has_ended = True
                return Outcome.DONE
            if self.fetch_bytes == _BYTES_MAX:
                return Outcome.LATER
            # Before KIP-74, and on brokers that do not keep it, a batch may be larger than what was asked for.
            self.fetch_bytes = min(2 * self.fetch_bytes, _BYTES_MAX)
            return Outcome.AGAIN
        self._empty_count = 0
        if walk.next_offset == self.position and not walk.is_past_end:
            return Outcome.LATER  # batches that were read already: a broker that errs must not keep us busy
        self.position = walk.next_offset
        if walk.is_past_end:
            self._has_ended = True
        aborted: list[tuple[int, int]] = []
        if self.is_read_committed and data.aborted_transactions:
            aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions)
        return Fetched(
            records[: walk.stop],
            aborted,
            walk.next_offset,
            data.high_watermark,
            data.last_stable_offset,
            data.log_start_offset,
        )


def version_max(topic_id: uuid.UUID) -> int | None:
    """Return the newest version that a Fetch of this topic may have; None for any."""
    return _NAMES_VERSION_MAX if topic_id == ZERO_ID else None


def _partition_data(response: FetchResponse, partition: int) -> PartitionData | None:
    for topic in response.responses:
        for data in topic.partitions:
            if data.partition_index == partition:
                return data
    return None
