"""Shell: offsets of partitions by timestamp, asked of their leaders, again until all have answered.

*Source:* ListOffsets; `OffsetFetcher` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs
import trio

from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError
from odradek.kernel.types import IsolationLevel, TopicPartition
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsRequest, ListOffsetsResponse

from .brokers import now_ms
from .errors import BrokerError, ClientTimeoutError
from .offset_lists import OffsetAndTimestamp, check_version, list_offsets_request, listed_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.kernel.peers.backoff import Backoff

    from .brokers import Brokers


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
        infos = {partition: self.brokers.cluster.partition(partition) for partition in wanted}
        epochs = {partition: info.leader_epoch for partition, info in infos.items() if info is not None}
        request = list_offsets_request(wanted, epochs, isolation_level=self.isolation_level, timeout_ms=timeout_ms)
        try:
            connection = await self.brokers.connect(node_id)
            check_version(connection.version_of(ListOffsetsRequest), request, f"broker {node_id}")
            response: ListOffsetsResponse = await self.brokers.request(node_id, request)
        except ConnectionFailedError as error:
            self.last = error
            return
        except ClientError as error:
            self.fatal = error
            return
        for partition, code, listed in listed_offsets(response):
            if code is ErrorCode.NONE:
                self.found[partition] = listed
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
        timestamps: Milliseconds since the Unix epoch, or one of the special ones in `kernel.wire.special_timestamps`.
        isolation_level: Whether "latest" is the high watermark or the last stable offset.
        timeout_ms: For everything.
        backoff: Pauses between attempts.

    Raises:
        BrokerError: A partition cannot be looked up.
        UnsupportedVersionError: A leader is too old for a special timestamp.
        ClientTimeoutError: Not all leaders answered in time.

    Cancelled, nothing is changed anywhere.
    """
    lookup = _Lookup(brokers, isolation_level)
    deadline_ms = now_ms() + timeout_ms
    brokers.want({partition.topic: None for partition in timestamps})
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
