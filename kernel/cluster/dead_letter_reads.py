"""Shell: fetches retry topics that other brokers lead, for the leader of their dead letters: `OtherLeaders`.

All that is wanted of one broker goes into one Fetch, which does not wait there: dead letters may be a moment late, and
a channel that waits would hold up what is wanted next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from ..errors import ErrorCode
from ..partitions.dead_letter_taking import SourceRead, read_of
from ..retry.dead_reader import AbortedRange
from ..types import TopicPartition
from ..wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from ..wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ..wire.special_timestamps import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Mapping, Sequence

    from ..partitions.dead_letter_taking import Wanted
    from ..types import Buffer
    from ..wire.message import Message
    from ..wire.messages.api_01_fetch import FetchResponse, PartitionData
    from .peer_batches import BrokerRequests

PURPOSE: Final = "dead letters"
READ_COMMITTED: Final = 1
NO_REPLICA: Final = -1
RESPONSE_BYTES_MAX: Final = (1 << 31) - 1


class DeadLetterReads:
    """Reads partitions that other brokers lead. Owned by the broker's task."""

    def __init__(self, brokers: BrokerRequests, timeout_ms: Callable[[], int]) -> None:
        """Make it.

        Args:
            brokers: The way to them.
            timeout_ms: Returns how long a request may take.
        """
        self._brokers = brokers
        self._timeout_ms = timeout_ms

    async def read(self, node_id: int, wanted: Sequence[Wanted]) -> Mapping[TopicPartition, SourceRead]:
        """See `OtherLeaders.read`.

        Raises:
            ClientError: It is not reached.
            KafkaError: UNSUPPORTED_VERSION.
        """
        found, outside = read_answer(wanted, await self._ask(node_id, fetch_of(wanted)))
        for each in outside:
            start_offset = await self._offset(node_id, each, EARLIEST_TIMESTAMP)
            end_offset = await self._offset(node_id, each, LATEST_TIMESTAMP)
            if start_offset is not None and end_offset is not None:
                found[each.partition] = SourceRead(moved_to=min(max(each.offset, start_offset), end_offset))
        return found

    async def _ask(self, node_id: int, request: Message) -> Any:
        return await self._brokers.request(node_id, request, timeout_ms=self._timeout_ms(), purpose=PURPOSE)

    async def _offset(self, node_id: int, wanted: Wanted, timestamp: int) -> int | None:
        """Return where a partition begins or ends; None where that is not to be had now."""
        topic, index = wanted.partition
        asked = ListOffsetsPartition(partition_index=index, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=NO_REPLICA,
            isolation_level=READ_COMMITTED,
            topics=[ListOffsetsTopic(name=topic, partitions=[asked])],
        )
        response = await self._ask(node_id, request)
        answer = response.topics[0].partitions[0]
        return None if answer.error_code else answer.offset


def fetch_of(wanted: Sequence[Wanted]) -> FetchRequest:
    """Return the Fetch that asks for all of it."""
    topics: dict[uuid.UUID, FetchTopic] = {}
    for each in wanted:
        topic = topics.get(each.topic_id)
        if topic is None:
            name = each.partition.topic
            topic = topics[each.topic_id] = FetchTopic(topic=name, topic_id=each.topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=each.partition.partition, fetch_offset=each.offset, partition_max_bytes=each.bytes_max
            )
        )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=min(sum(each.bytes_max for each in wanted), RESPONSE_BYTES_MAX),
        isolation_level=READ_COMMITTED,
        topics=list(topics.values()),
    )


def read_answer(
    wanted: Sequence[Wanted], response: FetchResponse
) -> tuple[dict[TopicPartition, SourceRead], list[Wanted]]:
    """Return what an answer has, by partition, and of which it has not the offset; what it refuses is left out.

    Raises:
        CorruptRecordsError: What it has are no batches.
    """
    by_id = {each.topic_id: each.partition.topic for each in wanted}
    by_partition = {each.partition: each for each in wanted}
    found: dict[TopicPartition, SourceRead] = {}
    outside: list[Wanted] = []
    for topic in response.responses:
        name = topic.topic or by_id.get(topic.topic_id, "")
        for data in topic.partitions:
            partition = TopicPartition(name, data.partition_index)
            asked = by_partition.get(partition)
            if asked is None:
                continue
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                outside.append(asked)
            elif (read := _read(data)) is not None:
                found[partition] = read
    return found, outside


def _read(data: PartitionData) -> SourceRead | None:
    if data.error_code or data.records is None:
        return None
    aborted = [AbortedRange(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
    return read_of(cast("Buffer", data.records), aborted, data.last_stable_offset)
