"""Shell: the scenario `disks`: what happens in `append`, on a disk that fails, fills up, is slow and rots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from odradek.client.errors import BrokerError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition

from .append import QUIET_S, Append
from .disk_accidents import DiskAccidents
from .oracle import PromiseBrokenError
from .promises import DISK_TABLE, DiskAccident, Promise
from .reading import POLL_MS, POLLS_WITHOUT_RECORDS_MAX, text_of
from .record_load import TOPIC
from .runs import Scenario, main_of
from .seeds import WORKLOAD
from .world import SimulationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.client.fetched_records import ConsumerRecord

LOOK_UPS: Final = 10
"""How many records of each partition are looked up in the end."""


class Disks(Append):
    """One run of the scenario."""

    accidents = ("accidents of the disk",)

    def new_accidents(self) -> DiskAccidents:
        """See `Append`."""
        return DiskAccidents(
            self._run,
            self._cluster,
            self._broker,
            topic=TOPIC,
            count=self._plan.crashes,
            on_end=self._ended,
            on_rot=self._rotted,
        )

    def _ended(self, is_stopped: bool) -> None:
        if is_stopped:
            self._oracle.stopped()
        self._oracle.died(self._run.world.now_ns)

    def _rotted(self, partition: int, offset: int) -> None:
        assert DISK_TABLE[DiskAccident.ROT] is DISK_TABLE[DiskAccident.ROT_OF_HEADER] is Promise.PREFIX
        self._oracle.rotted(partition, offset)

    async def consume(self) -> None:
        """See `Append`: goes on elsewhere when it meets a batch that rotted."""
        try:
            await super().consume()
        except BrokerError as error:
            self._check_is_rot(error)
            self._run.count("rot met by the consumer")

    async def check(self) -> None:
        """See `Append`: each partition up to where it is broken, if it is."""
        await trio.sleep(QUIET_S)
        for partition in range(self._plan.partitions):
            log, error = await self._read(partition)
            if error is not None:
                self._check_is_rot(error)
                self._run.count("rot met at the end")
            self._load.check_log(partition, [(record.offset, text_of(record.value)) for record in log])
            if error is None and log:
                await self._look_up(partition, log)

    async def _look_up(self, partition: int, log: Sequence[ConsumerRecord]) -> None:
        """See that records are found by offset and by time where they stand in a whole log."""
        place, source = TopicPartition(TOPIC, partition), self._run.world.seeds.stream(WORKLOAD, "look-ups")
        async with self._cluster.consumer("reader", {"max.poll.records": 1}) as consumer:
            consumer.assign([place])
            for record in [source.choice(log) for _ in range(LOOK_UPS)]:
                consumer.seek(place, record.offset)
                found = await consumer.poll(timeout_ms=POLL_MS * POLLS_WITHOUT_RECORDS_MAX)
                offsets = [each.offset for each in found]
                if offsets != [record.offset]:
                    raise PromiseBrokenError("found", f"{place} has at offset {record.offset} the offsets {offsets}")
                first = next(each.offset for each in log if each.timestamp >= record.timestamp)
                told = (await consumer.offsets_for_times({place: record.timestamp}))[place]
                if told is None or told.offset != first:
                    raise PromiseBrokenError("found", f"{place} has at time {record.timestamp} {told}, not {first}")
                self._run.count("look-ups")

    async def _read(self, partition: int) -> tuple[list[ConsumerRecord], BrokerError | None]:
        """Return what a partition holds, up to its end or to what is broken, and how that was told."""
        place = TopicPartition(TOPIC, partition)
        log: list[ConsumerRecord] = []
        async with self._cluster.consumer("reader", {"auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([place])
            end = (await consumer.end_offsets([place]))[place]
            polls_without_records = 0
            while await consumer.position(place) < end:
                try:
                    records = await consumer.poll(timeout_ms=POLL_MS)
                except BrokerError as error:
                    return log, error
                polls_without_records = 0 if records else polls_without_records + 1
                if polls_without_records == POLLS_WITHOUT_RECORDS_MAX:
                    raise SimulationError(f"{place} is not read to its end: {end}, and nothing more comes")
                log += records
        return log, None

    def _check_is_rot(self, error: BrokerError) -> None:
        if error.code is not ErrorCode.CORRUPT_MESSAGE or not self._oracle.has_rot:
            raise error


DISKS: Final = Scenario(
    "disks",
    "producers and a consumer, while their broker's disk fails, fills up, is slow and rots",
    main_of(Disks),
    ("brokers that ended by a disk", "rot met at the end", *(f"disk: {each.value}" for each in DiskAccident)),
)
