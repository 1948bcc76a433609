"""Shell: what the demo of tiered storage does with this project's own client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from odradek.client import Consumer, ResourceType
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.special_timestamps import EARLIEST_LOCAL_TIMESTAMP, LATEST_TIERED_TIMESTAMP

from ..cluster_calls import reach
from .data import DemoRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAUSE_S: Final = 0.05
WAIT_S_MAX: Final = 60
"""The demo fails when what takes a second has not happened by then."""
RECORDS_A_POLL: Final = 5_000


async def alter_topic(bootstrap: str, topic: str, changes: Mapping[str, str]) -> None:
    """Change a topic's settings."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        await calls.admin.alter_configs(ResourceType.TOPIC, topic, changes)


async def delete_topic(bootstrap: str, topic: str) -> None:
    """Delete a topic."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        await calls.admin.delete_topic(topic)


async def border(bootstrap: str, topic: str) -> tuple[int, int]:
    """Return the first offset of partition 0 that is on the broker's disk, and the last that is in the store."""
    partition = TopicPartition(topic, 0)
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        found = [
            (await calls.admin.list_offsets({partition: special}))[partition].offset
            for special in (EARLIEST_LOCAL_TIMESTAMP, LATEST_TIERED_TIMESTAMP)
        ]
    return found[0], found[1]


async def wait_until_local(bootstrap: str, topic: str, offset: int, on_progress: Callable[[int], None]) -> bool:
    """Wait until what is below `offset` has left the broker's disk; return whether it has."""
    with trio.move_on_after(WAIT_S_MAX):
        while True:
            first_local, _last_remote = await border(bootstrap, topic)
            on_progress(first_local)
            if first_local >= offset:
                return True
            await trio.sleep(PAUSE_S)
    return False


async def consume(bootstrap: str, topic: str, on_progress: Callable[[int], None]) -> list[DemoRecord]:
    """Read partition 0 from offset 0 to its end; compaction may have left gaps."""
    partition = TopicPartition(topic, 0)
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        end = (await calls.offsets([partition]))[partition].end
    read: list[DemoRecord] = []
    settings = {"bootstrap.servers": bootstrap, "max.poll.records": RECORDS_A_POLL}
    async with Consumer(settings) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        while await consumer.position(partition) < end:
            polled = await consumer.poll(timeout_ms=200)
            read += [DemoRecord(record.key or b"", record.value or b"", record.timestamp) for record in polled]
            on_progress(len(read))
    return read
