"""Shell: a partition's log as it lies there, with what no consumer is shown, fetched by the admin client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from odradek.kernel.records.aborted import AbortedTransactions
from odradek.kernel.records.batch import iterate_batches
from odradek.kernel.types import IsolationLevel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.records.batch import BatchHeader
    from odradek.kernel.types import Buffer, TopicPartition

    from .cluster_calls import ClusterCalls

FETCH_BYTES: Final = 4 << 20
LAST_VERSION_WITH_NAMES: Final = 12


class LogPart(NamedTuple):
    """What one fetch has brought; the last batch may be cut off.

    Attributes:
        records: As they lie in the log.
        aborted: First offset and producer id of each transaction that reaches into them and was aborted, rising by
            offset; none for who reads what is not committed, too.
    """

    records: Buffer
    aborted: tuple[tuple[int, int], ...] = ()

    def batches(self) -> Iterator[tuple[int, BatchHeader, bool]]:
        """Iterate over whole batches: where each begins, its header, and whether consumers are shown its records."""
        aborted = AbortedTransactions(self.aborted)
        for position, header in iterate_batches(self.records):
            yield position, header, not aborted.hides(self.records, position, header)


class LogReader(Protocol):
    """Who reads a log.

    Attributes:
        next_offset: From where on it is to be fetched.
    """

    next_offset: int

    def read(self, part: LogPart) -> None:
        """Take what a fetch from `next_offset` on has brought; a batch that is cut off is to be fetched again."""
        ...


async def fetch_log(
    calls: ClusterCalls,
    partition: TopicPartition,
    offset: int,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> LogPart:
    """Return batches of a partition's log from an offset on; none where there are none, after half a second.

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
    found = answer.responses[0].partitions[0]
    aborted = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
    return LogPart(memoryview(found.records or b""), tuple(aborted))


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
        part = await fetch_log(calls, partition, reader.next_offset, isolation)
        if not part.records:
            return False
        reader.read(part)
        read_bytes += len(part.records)
        if bytes_max is not None and read_bytes >= bytes_max:
            return reader.next_offset >= end_offset
    return True
