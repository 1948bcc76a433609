"""Shell: a partition's log as it lies there, with what no consumer is shown, fetched by the admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.kernel.types import IsolationLevel

if TYPE_CHECKING:
    from odradek.kernel.types import Buffer, TopicPartition

    from .cluster_calls import ClusterCalls

FETCH_BYTES: Final = 4 << 20
LAST_VERSION_WITH_NAMES: Final = 12


class LogReader(Protocol):
    """Who reads a log.

    Attributes:
        next_offset: From where on it is to be fetched.
    """

    next_offset: int

    def read(self, records: Buffer) -> None:
        """Take what a fetch from `next_offset` on has brought; a batch that is cut off is to be fetched again."""
        ...


async def fetch_log(
    calls: ClusterCalls,
    partition: TopicPartition,
    offset: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> memoryview:
    """Return batches of a partition's log from an offset on; empty where there are none, after half a second.

    Raises:
        BrokerError: The partition cannot be read.
    """
    from odradek.client.admin_calls import check_item
    from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic

    def check(answer: Any) -> None:
        check_item(answer.responses[0].partitions[0].error_code, str(partition))

    admin = calls.admin
    await admin.know((partition,))
    wanted = FetchPartition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=isolation,
        topics=[FetchTopic(topic=partition.topic, partitions=[wanted])],
    )
    answer = await admin.call(request, check, node_of=admin.leader(partition), version_max=LAST_VERSION_WITH_NAMES)
    return memoryview(answer.responses[0].partitions[0].records or b"")


async def read_log(
    calls: ClusterCalls,
    partition: TopicPartition,
    reader: LogReader,
    end_offset: int,
    *,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    bytes_max: int | None = None,
) -> bool:
    """Read a partition's log up to an offset, or until so much was read; return whether its end was reached.

    Raises:
        BrokerError: The partition cannot be read.
    """
    read_bytes = 0
    while reader.next_offset < end_offset:
        records = await fetch_log(calls, partition, reader.next_offset, isolation)
        if not records:
            return False
        reader.read(records)
        read_bytes += len(records)
        if bytes_max is not None and read_bytes >= bytes_max:
            return reader.next_offset >= end_offset
    return True
