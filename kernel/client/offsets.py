"""Shell: offsets of partitions by timestamp, asked of their leaders, again until all have answered.

*Source:* ListOffsets; `OffsetFetcher` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from ..errors import ErrorCode, error_code
from ..types import CONSUMER_REPLICA_ID, IsolationLevel, TopicPartition
from ..wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from .brokers import now_ms
from .errors import BrokerError, ClientError, ClientTimeoutError, ConnectionFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .backoff import Backoff
    from .brokers import Brokers

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


@attrs.frozen
class OffsetAndTimestamp:
    """An offset that was looked up.

    Attributes:
        offset: The offset; -1 where no record is as late as the timestamp asked for.
        timestamp: Of the record there; -1 for the special timestamps.
        leader_epoch: Of the record there; -1 when unknown.
    """

    offset: int
    timestamp: int
    leader_epoch: int


@attrs.define
class _Lookup:
    """One lookup: what is found, and what went wrong last."""

    brokers: Brokers
    isolation_level: IsolationLevel
    found: dict[TopicPartition, OffsetAndTimestamp] = attrs.field(factory=dict)
    fatal: ClientError | None = None
    last: ClientError | None = None

    async def ask(self, node_id: int, wanted: dict[TopicPartition, int], timeout_ms: int) -> None:
        """Ask one broker about the partitions that it leads."""
        topics: dict[str, ListOffsetsTopic] = {}
        for partition, timestamp in wanted.items():
            topic = topics.setdefault(partition.topic, ListOffsetsTopic(name=partition.topic, partitions=[]))
            info = self.brokers.cluster.partition(partition)
            topic.partitions.append(
                ListOffsetsPartition(
                    partition_index=partition.partition,
                    current_leader_epoch=-1 if info is None else info.leader_epoch,
                    timestamp=timestamp,
                )
            )
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=self.isolation_level,
            topics=list(topics.values()),
            timeout_ms=timeout_ms,
        )
        try:
            response: ListOffsetsResponse = await self.brokers.request(node_id, request)
        except ConnectionFailedError as error:
            self.last = error
            return
        except ClientError as error:
            self.fatal = error
            return
        for answered in response.topics:
            for item in answered.partitions:
                code = error_code(item.error_code)
                partition = TopicPartition(answered.name, item.partition_index)
                if code is ErrorCode.NONE:
                    self.found[partition] = OffsetAndTimestamp(item.offset, item.timestamp, item.leader_epoch)
                elif code.retriable:
                    self.last = BrokerError(code, f"{partition}: {code.text}")
                else:
                    self.fatal = BrokerError(code, f"{partition}: {code.text}")


async def list_offsets(
    brokers: Brokers,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    timeout_ms: int,
    backoff: Backoff,
) -> dict[TopicPartition, OffsetAndTimestamp]:
    """Look offsets up by timestamp.

    Args:
        brokers: The cluster.
        timestamps: Milliseconds since the Unix epoch, or one of the special ones above.
        isolation_level: Whether "latest" is the high watermark or the last stable offset.
        timeout_ms: For everything.
        backoff: Pauses between attempts.

    Raises:
        BrokerError: A partition cannot be looked up.
        ClientTimeoutError: Not all leaders answered in time.

    Cancelled, nothing is changed anywhere.
    """
    lookup = _Lookup(brokers, isolation_level)
    deadline_ms = now_ms() + timeout_ms
    brokers.want({partition.topic for partition in timestamps})
    attempts_count = 0
    while True:
        left = {partition: time for partition, time in timestamps.items() if partition not in lookup.found}
        if lookup.fatal is not None:
            raise lookup.fatal
        if not left:
            return lookup.found
        time_ms = now_ms()
        if time_ms >= deadline_ms:
            names = ", ".join(str(partition) for partition in left)
            raise ClientTimeoutError(f"no offsets of {names} within {timeout_ms} ms: {lookup.last or 'no leader'}")
        if attempts_count:
            brokers.request_update()
            with trio.move_on_after(min(backoff.pause_ms(attempts_count), deadline_ms - time_ms) / 1_000):
                await brokers.wait_changed()
        attempts_count += 1
        by_node: dict[int, dict[TopicPartition, int]] = {}
        for partition, timestamp in left.items():
            leader = brokers.cluster.leader_of(partition)
            if leader is not None:
                by_node.setdefault(leader, {})[partition] = timestamp
        with trio.move_on_at(deadline_ms / 1_000):
            async with trio.open_nursery() as nursery:
                for node_id, wanted in by_node.items():
                    nursery.start_soon(partial(lookup.ask, node_id, wanted, max(deadline_ms - now_ms(), 1)))
