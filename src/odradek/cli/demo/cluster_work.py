"""Shell: what the demo of a cluster does with this project's own client: load with an accident in it, and who leads."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import BrokerError, NewTopic, Producer
from odradek.kernel.errors import ErrorCode

from ..cluster_calls import reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from odradek.client import ClientError, RecordMetadata
    from odradek.client.cluster import PartitionInfo

    from .data import DemoRecord

SLICE_RECORDS: Final = 100
SLICE_S: Final = 0.01
"""So many records are sent in so much time: enough for the load to last while leaders move."""
LOOK_AGAIN_S: Final = 0.02
WAIT_S_MAX: Final = 60
"""The demo fails when what takes a second has not happened by then."""


@attrs.define
class LoadRun:
    """What became of records that were sent while something happened.

    Attributes:
        acknowledged: What was acknowledged, by partition and offset.
        times: By partition when records were acknowledged, in seconds on the run's clock, in order.
        began_s: When something happened.
        lasted_s: How long until the last record was acknowledged.
        failures: What could not be written, and why.
    """

    acknowledged: dict[tuple[int, int], DemoRecord] = attrs.field(factory=dict)
    times: dict[int, list[float]] = attrs.field(factory=dict)
    began_s: float = 0.0
    lasted_s: float = 0.0
    failures: list[ClientError] = attrs.field(factory=list)

    def note(self, record: DemoRecord, metadata: RecordMetadata | None, error: ClientError | None) -> None:
        """Take note of what became of a record."""
        if error is not None:
            self.failures.append(error)
        elif metadata is not None:
            self.acknowledged[metadata.partition, metadata.offset] = record
            self.times.setdefault(metadata.partition, []).append(trio.current_time())

    def longest_pause_s(self, partitions: Iterable[int]) -> float:
        """Return for how long at most none of these partitions' records was acknowledged after it happened."""
        return max(longest_pause(self.times.get(partition, ()), self.began_s) for partition in partitions)


def longest_pause(times: Iterable[float], began_s: float) -> float:
    """Return the longest time between two moments, those before `began_s` left out and it taken for one."""
    later = [began_s, *(time for time in times if time > began_s)]
    return max((after - before for before, after in itertools.pairwise(later)), default=0.0)


async def create_topic(bootstrap: str, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
    """Create the demo's topic."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        await calls.admin.create_topic(NewTopic(topic, partitions, replicas, configs))


async def partitions_of(bootstrap: str, topic: str) -> list[PartitionInfo]:
    """Return who leads each partition of a topic, and who is in sync, in order.

    The broker that is asked may not have heard of the topic yet: who made it asked another one.
    """
    with trio.fail_after(WAIT_S_MAX):
        async with reach({"bootstrap.servers": bootstrap}) as calls:
            while True:
                try:
                    found = (await calls.admin.describe_topic(topic)).partitions
                except BrokerError as error:
                    if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise
                    await trio.sleep(LOOK_AGAIN_S)
                else:
                    return [found[number] for number in sorted(found)]


async def controller_of(bootstrap: str) -> int:
    """Return which broker is the controller."""
    async with reach({"bootstrap.servers": bootstrap}) as calls:
        return (await calls.admin.describe_quorum()).leader_id


async def wait_until_in_sync(bootstrap: str, topic: str) -> bool:
    """Wait until all replicas of a topic are in sync; return whether they are."""
    with trio.move_on_after(WAIT_S_MAX):
        async with reach({"bootstrap.servers": bootstrap}) as calls:
            while True:
                found = (await calls.admin.describe_topic(topic)).partitions
                if all(len(each.isr) == len(each.replicas) for each in found.values()):
                    return True
                await trio.sleep(LOOK_AGAIN_S)
    return False


async def produce(
    bootstrap: str,
    topic: str,
    records: Sequence[DemoRecord],
    on_progress: Callable[[int], None],
    accident: Callable[[], None] | None,
) -> LoadRun:
    """Produce records at a steady rate, and have something happen after a quarter of them.

    Args:
        bootstrap: Where the cluster is.
        topic: The topic.
        records: What is sent.
        on_progress: Called with how many were acknowledged.
        accident: What happens; None for nothing, and then there is no hurry to hold back.
    """
    run = LoadRun()
    began_s = run.began_s = trio.current_time()
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number, record in enumerate(records):
            if accident is not None and number == len(records) // 4:
                run.began_s = trio.current_time()
                accident()
            if number % SLICE_RECORDS == 0:
                on_progress(len(run.acknowledged))
                await trio.sleep(SLICE_S if accident is not None else 0)
            await producer.enqueue(
                topic,
                record.value,
                key=record.key,
                timestamp=record.timestamp,
                on_delivery=partial(run.note, record),
            )
        await producer.flush()
    run.lasted_s = trio.current_time() - began_s
    return run
