"""Shell: the scenario `disks`: what happens in `append`, on a disk that fails, fills up, is slow and rots."""

from __future__ import annotations

from typing import Final

import trio

from odradek.client.errors import BrokerError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition

from .append import QUIET_S, Append
from .disk_accidents import DiskAccidents
from .promises import DISK_TABLE, DiskAccident, Promise
from .reading import POLL_MS, POLLS_WITHOUT_RECORDS_MAX, text_of
from .record_load import TOPIC
from .runs import Scenario, main_of
from .world import SimulationError


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
        assert DISK_TABLE[DiskAccident.ROT] is Promise.PREFIX
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
            self._load.check_log(partition, log)

    async def _read(self, partition: int) -> tuple[list[tuple[int, str]], BrokerError | None]:
        """Return what a partition holds, up to its end or to what is broken, and how that was told."""
        place = TopicPartition(TOPIC, partition)
        log: list[tuple[int, str]] = []
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
                log += [(record.offset, text_of(record.value)) for record in records]
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
