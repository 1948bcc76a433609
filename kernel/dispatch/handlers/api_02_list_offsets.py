"""Shell: ListOffsets (key 2): the offset that a timestamp, or the beginning or the end of a partition, stands for.

Times are looked for inside the batch that the time index names. What cannot be found is no error: offset -1. Where the
log may have to wait for a disk, a worker thread brings what it needs into memory first; for a remote store it waits as
long as the request says, or `remote.list.offsets.request.timeout.ms`. A batch that is long to look through is looked
through on such a thread, too.

*Source:* KIP-79, KIP-320 (epochs), KIP-734 (max timestamp), KIP-405, KIP-1005 (tiers), KIP-1023, KIP-1075.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from ...classes import frozen
from ...contracts.api_handler import AS_TASK
from ...contracts.pieces import ListPieces
from ...contracts.storage import NO_LIMIT
from ...contracts.tiering import RecordsAreRemoteError
from ...errors import ErrorCode, KafkaError, StorageError
from ...machine.threads import Workers
from ...machine.turnstile import take_turn
from ...partitions.tier_offsets import NOTHING, earliest_local, earliest_pending_upload, latest_tiered
from ...partitions.timestamp_lookup import (
    TimestampOffset,
    find_in_batch,
    search_by_timestamp,
    search_max_timestamp,
)
from ...types import CONSUMER_REPLICA_ID, ISOLATION_LEVELS, NO_EPOCH, READ_COMMITTED
from ...wire.messages.api_02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ...wire.special_timestamps import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    FIRST_VERSIONS,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
)
from ..long_requests import left_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Set

    from ...contracts.api_handler import Answer, RequestContext
    from ...contracts.disk_work import DiskWork
    from ...contracts.storage import PartitionLog
    from ...machine.threads import Threads
    from ...partitions.replica import Replica
    from ...partitions.replicas import Replicas
    from ...partitions.timestamp_lookup import Search
    from ...types import IsolationLevel
    from ...wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest

    Wanted = tuple[str, int, int]
    """Topic, partition and timestamp."""
    Found = dict[Wanted, TimestampOffset | Exception | None]
    """What a request's searches for times found."""

FIRST_WITH_EPOCH: Final = 4
"""From which version on an answer tells the record's leader epoch."""
FIRST_WITH_NOT_AVAILABLE: Final = 5
"""From which version on clients know OFFSET_NOT_AVAILABLE."""
LOOKUP_THREADS: Final = 2
"""How many worker threads wait for disks at once."""
COLD_LOOKUP_THREADS: Final = 10
"""How many wait for remote stores, of all requests together: as many as read from them by Kafka's default."""
LOOKUPS_TOGETHER: Final = 8
"""How many of its partitions a request looks up at once: what is found is taken before a tier can have forgotten it."""
BRIEF_SEARCHES_MAX: Final = 10
"""How many batches a request has looked through at once; more are a task's."""
ITEMS_MAX: Final = 500
"""How many partitions are looked up at once: half a millisecond where ends are asked for, a few where times are."""
COLD_LOOKUPS_MAX: Final = 3
"""How often a remote store is asked for one time: a segment may turn out not to have it."""


@frozen
class _Asked:
    """What is the same for all partitions of a request.

    Attributes:
        isolation: What who asks sees of transactions; None: whatever is appended.
        version: The request's.
        found: What its searches for times found.
        is_late: Whether a remote store took longer than the request waits.
    """

    isolation: IsolationLevel | None
    version: int
    found: Found
    is_late: bool


class ListOffsetsHandler:
    """Answers ListOffsets. Owned by the reactor's task."""

    api_key = 2
    pieces = ListPieces(
        "topics.partitions", answers=["topics.partitions"], together="partition_index", items_max=ITEMS_MAX
    )

    def __init__(self, *, replicas: Replicas, cold_timeout_ms: Callable[[], int], threads: Threads) -> None:
        """Make the handler.

        Args:
            replicas: Where to look.
            cold_timeout_ms: `remote.list.offsets.request.timeout.ms`.
            threads: Who waits for disks, and looks through long batches.
        """
        self._replicas = replicas
        self._cold_timeout_ms = cold_timeout_ms
        self._workers = Workers(threads, LOOKUP_THREADS)
        self._cold_workers = Workers(threads, COLD_LOOKUP_THREADS)

    def handle(self, request: ListOffsetsRequest, context: RequestContext) -> Answer:
        """Look up every partition, unless a disk may have to be waited for."""
        wanted = list(self._wanted(request, context.api_version))
        if any(_has_to_wait(replica, key[2]) for key, replica in wanted):
            return AS_TASK
        found = _search_briefly(wanted)
        return AS_TASK if found is None else self._answer(request, context, found)

    async def handle_async(self, request: ListOffsetsRequest, context: RequestContext) -> Answer:
        """Look up every partition, a handful at once. If cancelled, nobody is answered."""
        timeout_ms = request.timeout_ms if request.timeout_ms > 0 else self._cold_timeout_ms()
        deadline_s = trio.current_time() + left_ms(timeout_ms, context) / 1000
        found: Found = {}
        wanted = self._wanted(request, context.api_version)

        async def look_up_in_turn() -> None:
            for key, replica in wanted:
                found[key] = await self._look_up(replica, key[2], deadline_s)

        async def look_up_all() -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(LOOKUPS_TOGETHER):
                    nursery.start_soon(look_up_in_turn)

        await context.wait_aside(look_up_all)
        return self._answer(request, context, found, is_late=trio.current_time() >= deadline_s)

    def _wanted(self, request: ListOffsetsRequest, version: int) -> Iterator[tuple[Wanted, Replica]]:
        """Return one after the other the times to be looked up, and where; what is wrong with one its answer tells."""
        for topic in request.topics:
            for part in topic.partitions:
                if part.timestamp < 0 and (part.timestamp != MAX_TIMESTAMP or version < FIRST_VERSIONS[MAX_TIMESTAMP]):
                    continue
                replica = self._replicas.find(topic.name, part.partition_index)
                if replica is not None and replica.offline_reason is None:
                    yield (topic.name, part.partition_index, part.timestamp), replica

    async def _look_up(self, replica: Replica, timestamp: int, deadline_s: float) -> TimestampOffset | Exception | None:
        """Have what one time needs brought into memory, and search for it before anything else comes there."""
        try:
            for _ in range(COLD_LOOKUPS_MAX):
                lookup = _begin_lookup(replica, timestamp)
                if lookup is None:
                    break
                if replica.tiered_log is None:
                    await self._workers.do(lookup)
                    break
                with trio.move_on_at(deadline_s):
                    await self._cold_workers.do(lookup, abandons=True)
            return await self._search(_search_for(replica, timestamp))
        except Exception as error:  # told in the partition's answer
            return error

    async def _search(self, search: Search) -> TimestampOffset | None:
        """Run a search, its long parts on a worker thread. If it is cancelled, what a thread does is waited for."""
        try:
            wanted = next(search)
            while True:
                if wanted.is_brief():
                    await take_turn()
                    wanted = search.send(find_in_batch(*wanted))
                else:
                    wanted = search.send(await self._workers.run_sync(find_in_batch, *wanted))
        except StopIteration as end:
            found: TimestampOffset | None = end.value
            return found

    def _answer(
        self, request: ListOffsetsRequest, context: RequestContext, found: Found, *, is_late: bool = False
    ) -> ListOffsetsResponse:
        isolation = ISOLATION_LEVELS.get(request.isolation_level)
        if isolation is None:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"isolation level {request.isolation_level}")
        if request.replica_id != CONSUMER_REPLICA_ID:
            isolation = None  # another broker sees whatever is appended, and so does who debugs
        asked = _Asked(isolation, context.api_version, found, is_late)
        tells_epoch, is_committed = asked.version >= FIRST_WITH_EPOCH, isolation == READ_COMMITTED
        topics = []
        for topic in request.topics:
            parts = {part.partition_index: part for part in topic.partitions}
            twice = _asked_twice(topic.partitions) if len(parts) < len(topic.partitions) else ()
            hosted = None if isolation is None or twice else self._replicas.topics.get(topic.name)
            replicas = {} if hosted is None else hosted.partitions
            answers = []
            for index, part in parts.items():
                # Consumers ask for the ends of thousands of partitions at once: that is looked up here, in few steps.
                replica = replicas.get(index) if part.timestamp == LATEST_TIMESTAMP else None
                end = None if replica is None else _known_end(replica, part.current_leader_epoch, is_committed)
                if replica is None or end is None:
                    answers.append(self._answer_one(topic.name, part, asked, is_twice=index in twice))
                    continue
                epoch = replica.leader_epoch if tells_epoch else NO_EPOCH
                answers.append(ListOffsetsPartitionResponse(partition_index=index, offset=end, leader_epoch=epoch))
            if answers:
                topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
        return ListOffsetsResponse(topics=topics)

    def _answer_one(
        self, topic: str, part: ListOffsetsPartition, asked: _Asked, *, is_twice: bool
    ) -> ListOffsetsPartitionResponse:
        index = part.partition_index
        try:
            found = self._find(topic, part, asked, is_twice=is_twice)
        except RecordsAreRemoteError as error:
            code = ErrorCode.REQUEST_TIMED_OUT if asked.is_late else error.code
            return ListOffsetsPartitionResponse(partition_index=index, error_code=code)
        except KafkaError as error:
            return ListOffsetsPartitionResponse(partition_index=index, error_code=error.code)
        except Exception as error:  # whatever a storage raises is its partition's matter alone
            self._replicas.note_failure(topic, index, error)
            return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return ListOffsetsPartitionResponse(
            partition_index=index,
            timestamp=found.timestamp,
            offset=found.offset,
            leader_epoch=found.leader_epoch if asked.version >= FIRST_WITH_EPOCH else NO_EPOCH,
        )

    def _find(self, topic: str, part: ListOffsetsPartition, asked: _Asked, *, is_twice: bool) -> TimestampOffset:
        if is_twice:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        isolation, version = asked.isolation, asked.version
        timestamp = part.timestamp
        if timestamp < 0 and version < FIRST_VERSIONS.get(timestamp, 1 << 15):
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        replica = self._replicas.get(topic, part.partition_index)
        replica.check_leader(part.current_leader_epoch)
        visible_end = replica.appended_offset if isolation is None else replica.visible_end(isolation)
        if timestamp == LATEST_TIMESTAMP:
            _check_end_is_known(replica, isolation, version)
            return TimestampOffset(-1, visible_end, replica.leader_epoch)
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            start_offset = replica.log.log_start_offset if timestamp == EARLIEST_TIMESTAMP else earliest_local(replica)
            epoch_of_none = NO_EPOCH if isolation is None else replica.leader_epoch  # a follower keeps what it hears
            return TimestampOffset(-1, start_offset, epoch_at(replica.log, start_offset, epoch_of_none))
        if timestamp == LATEST_TIERED_TIMESTAMP:
            return latest_tiered(replica, visible_end)
        if timestamp == EARLIEST_PENDING_UPLOAD_TIMESTAMP:
            return earliest_pending_upload(replica, visible_end)
        found = asked.found.get((topic, part.partition_index, timestamp))
        if isinstance(found, Exception):
            raise found
        if found is not None and found.offset < visible_end:
            return found
        _check_end_is_known(replica, isolation, version)
        return NOTHING

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


def _search_briefly(wanted: Iterable[tuple[Wanted, Replica]]) -> Found | None:
    """Run all searches of a request; return None when that would take long."""
    found: Found = {}
    searches_left = BRIEF_SEARCHES_MAX
    for key, replica in wanted:
        search = _search_for(replica, key[2])
        try:
            step = next(search)
            while searches_left and step.is_brief():
                searches_left -= 1
                step = search.send(find_in_batch(*step))
        except StopIteration as end:
            found[key] = end.value
        except Exception as error:  # told in the partition's answer
            found[key] = error
        else:
            return None
    return found


def _begin_lookup(replica: Replica, timestamp: int) -> DiskWork | None:
    """Begin what is to be done before a time is looked for, None when all is at hand."""
    return replica.log.begin_time_lookup(NO_LIMIT if timestamp == MAX_TIMESTAMP else timestamp)


def _has_to_wait(replica: Replica, timestamp: int) -> bool:
    with suppress(KafkaError, StorageError):  # the answer tells it
        return _begin_lookup(replica, timestamp) is not None
    return False


def _search_for(replica: Replica, timestamp: int) -> Search:
    log = replica.log
    if timestamp == MAX_TIMESTAMP:
        return search_max_timestamp(log)
    return search_by_timestamp(log, timestamp, log.log_start_offset)


def _asked_twice(parts: Iterable[ListOffsetsPartition]) -> Set[int]:
    counts = Counter(part.partition_index for part in parts)
    return {index for index, count in counts.items() if count > 1}


def _known_end(replica: Replica, current_leader_epoch: int, is_committed: bool) -> int | None:
    """Return where what a consumer may see ends, None if there is anything to be said against telling it. Hot.

    What that is `Replica.check_leader` and `_check_end_is_known` say, when it is asked for once more.
    """
    end = replica.high_watermark
    if not replica.is_leader or replica.offline_reason is not None or end < replica.epoch_begin:
        return None
    if current_leader_epoch != NO_EPOCH and current_leader_epoch != replica.leader_epoch:
        return None
    return replica.last_stable_offset if is_committed else end


def _check_end_is_known(replica: Replica, isolation: IsolationLevel | None, version: int) -> None:
    """See that a leader knows what is committed: a new one may know less than clients have seen (KIP-207).

    Raises:
        KafkaError: It does not yet, and a client asks.
    """
    if isolation is not None and replica.high_watermark < replica.epoch_begin:
        is_new = version >= FIRST_WITH_NOT_AVAILABLE
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if is_new else ErrorCode.LEADER_NOT_AVAILABLE)


def epoch_at(log: PartitionLog, offset: int, epoch: int) -> int:
    """Return the leader epoch of the record at `offset`; `epoch` when the log does not know it."""
    for entry_epoch, start_offset in log.epoch_entries():
        if start_offset > offset:
            break
        epoch = entry_epoch
    return epoch
