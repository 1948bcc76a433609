"""Shell: ListOffsets (key 2): the offset that a timestamp, or the beginning or the end of a partition, stands for.

Times are looked for inside the batch that the time index names. What cannot be found is no error: offset -1. Where the
log may have to wait for a disk, a worker thread brings what it needs into memory first.

*Source:* KIP-79, KIP-207, KIP-320 (epochs), KIP-734 (max timestamp), KIP-405, KIP-1005 (tiers), KIP-1023.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from ...contracts.api_handler import AS_TASK
from ...contracts.storage import NO_LIMIT
from ...disk_threads import do_on_thread
from ...errors import ErrorCode, KafkaError, StorageError
from ...partitions.timestamp_lookup import TimestampOffset, find_by_timestamp, find_max_timestamp
from ...types import ISOLATION_LEVELS, NO_EPOCH, IsolationLevel
from ...wire.messages.api_02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.disk_work import DiskWork
    from ...partitions.replica import Replica
    from ...partitions.replica_manager import ReplicaManager
    from ...wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
FIRST_VERSIONS: Final = {
    LATEST: 1,
    EARLIEST: 1,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""From which version on a special timestamp is known."""
FIRST_WITH_EPOCH: Final = 4
"""From which version on an answer tells the record's leader epoch."""
LOOKUP_THREADS: Final = 2
"""How many worker threads wait for disks at once."""
NOTHING: Final = TimestampOffset(-1, -1, -1)


class ListOffsetsHandler:
    """Answers ListOffsets. Owned by the reactor's task."""

    api_key = 2

    def __init__(self, *, replicas: ReplicaManager) -> None:
        self._replicas = replicas
        self._limiter = trio.CapacityLimiter(LOOKUP_THREADS)

    def handle(self, request: ListOffsetsRequest, context: RequestContext) -> Answer:
        """Look up every partition, unless a disk may have to be waited for."""
        if next(self._lookups(request), None) is not None:
            return AS_TASK
        return self._answer(request, context)

    async def handle_async(self, request: ListOffsetsRequest, context: RequestContext) -> Answer:
        """Bring what is needed into memory, then look up every partition. If cancelled, nobody is answered."""
        for lookup in self._lookups(request):
            await do_on_thread(lookup, self._limiter)
        return self._answer(request, context)

    def _lookups(self, request: ListOffsetsRequest) -> Iterator[DiskWork]:
        """Begin one after the other the works that are to be done before the request is answered."""
        for topic in request.topics:
            for part in topic.partitions:
                if part.timestamp >= 0 or part.timestamp == MAX_TIMESTAMP:
                    timestamp = NO_LIMIT if part.timestamp == MAX_TIMESTAMP else part.timestamp
                    with suppress(KafkaError, StorageError):  # the answer tells it
                        log = self._replicas.get(topic.name, part.partition_index).log
                        lookup = log.begin_time_lookup(timestamp)
                        if lookup is not None:
                            yield lookup

    def _answer(self, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
        isolation = ISOLATION_LEVELS.get(request.isolation_level)
        if isolation is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level}")
        topics = []
        for topic in request.topics:
            counts = Counter(part.partition_index for part in topic.partitions)
            parts = {part.partition_index: part for part in topic.partitions}
            answers = []
            for index, part in parts.items():
                try:
                    found = self._find(topic.name, part, isolation, context.api_version, counts[index])
                except KafkaError as error:
                    answers.append(ListOffsetsPartitionResponse(partition_index=index, error_code=error.code))
                except StorageError:
                    answers.append(
                        ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
                    )
                else:
                    answers.append(
                        ListOffsetsPartitionResponse(
                            partition_index=index,
                            timestamp=found.timestamp,
                            offset=found.offset,
                            leader_epoch=found.leader_epoch if context.api_version >= FIRST_WITH_EPOCH else NO_EPOCH,
                        )
                    )
            if answers:
                topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return ListOffsetsResponse(topics=topics)

    def _find(
        self, topic: str, part: ListOffsetsPartition, isolation: IsolationLevel, version: int, times_asked: int
    ) -> TimestampOffset:
        if times_asked > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        replica = self._replicas.get(topic, part.partition_index)
        replica.check_leader(part.current_leader_epoch)
        timestamp = part.timestamp
        if timestamp < 0 and version < FIRST_VERSIONS.get(timestamp, 1 << 15):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if timestamp == LATEST:
            return TimestampOffset(-1, replica.visible_end(isolation), replica.leader_epoch)
        if timestamp in (EARLIEST, EARLIEST_LOCAL):
            start_offset = replica.log.log_start_offset
            return TimestampOffset(-1, start_offset, epoch_at(replica, start_offset))
        if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
            return NOTHING
        return self._find_record(replica, timestamp, isolation)

    @staticmethod
    def _find_record(replica: Replica, timestamp: int, isolation: IsolationLevel) -> TimestampOffset:
        """Return the record that a time means, as far as the client may see."""
        if timestamp == MAX_TIMESTAMP:
            found = find_max_timestamp(replica.log)
        else:
            found = find_by_timestamp(replica.log, timestamp, replica.log.log_start_offset)
        if found is None or found.offset >= replica.visible_end(isolation):
            return NOTHING
        return found

    def error_response(
        self, request: ListOffsetsRequest, context: RequestContext, code: ErrorCode, detail: str
    ) -> Answer:
        """Return the response that gives every partition this error."""
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(partition_index=part.partition_index, error_code=code)
                        for part in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


def epoch_at(replica: Replica, offset: int) -> int:
    """Return the leader epoch of the record at `offset`, of the current leader when there is none."""
    epoch = replica.leader_epoch
    for entry_epoch, start_offset in replica.log.epoch_entries():
        if start_offset > offset:
            break
        epoch = entry_epoch
    return epoch
