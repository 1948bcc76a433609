"""A tiered log without a broker: a real local log, a store in memory, and the passes called by hand."""

from __future__ import annotations

import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs
import trio

from odradek.kernel.api import (
    CleanupSettings,
    LogOffsets,
    RecordsAreRemoteError,
    RemoteStoreError,
    TierSettings,
    iterate_batches,
)
from odradek.kernel.contracts.coordinator import TopicView
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.plugins.storage_tiered.tier import TieredStorage
from odradek.testing.contracts.storage_base import NOW_MS, PARTITION, SMALL, fill, make_context, read_bytes
from odradek.testing.object_stores import MemoryObjectStore
from tests.machines import machine_with
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from odradek.kernel.api import ObjectStore, PartitionLog, StorageContext, StorageEngine
    from odradek.plugins.storage_tiered.log import TieredPartitionLog

EVERYTHING_LOCAL = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())
LITTLE_LOCAL = attrs.evolve(EVERYTHING_LOCAL, local_retention_bytes=1_500)
CLUSTER_ID = "the-cluster-in-the-house"


class HouseConfig:
    """The broker's configuration, as far as a tier asks."""

    def __init__(self, directory: Path, changes: Mapping[str, object]) -> None:
        self._values: dict[str, object] = {
            "log.dirs": (str(directory / "data"),),
            "log.dir": "",
            "controller.quorum.voters": (),
            "controller.quorum.bootstrap.servers": (),
            "odradek.tiered.store": "",
            "odradek.tiered.cache.dir": str(directory / "cache"),
            "odradek.tiered.cache.bytes": 1 << 20,
            "odradek.tiered.read.bytes": 700,
            "odradek.tiered.garbage.grace.ms": 3_600_000,
            "remote.log.index.file.cache.total.size.bytes": 1 << 20,
            "remote.log.reader.threads": 2,
            "remote.log.reader.max.pending.tasks": 100,
            "remote.log.manager.copy.max.bytes.per.second": (1 << 63) - 1,
            "remote.log.manager.copier.thread.pool.size": 2,
            "remote.log.manager.task.interval.ms": 30_000,
            "remote.log.manager.task.retry.backoff.ms": 500,
            "remote.log.manager.task.retry.backoff.max.ms": 30_000,
            "remote.log.manager.task.retry.jitter": 0.2,
            **changes,
        }

    def change(self, name: str, value: object) -> None:
        self._values[name] = value

    def get_int(self, name: str) -> int:
        return int(str(self._values[name]))

    def get_float(self, name: str) -> float:
        return float(str(self._values[name]))

    def get_bool(self, name: str) -> bool:
        return bool(self._values[name])

    def get_text(self, name: str) -> str:
        return str(self._values[name])

    def get_list(self, name: str) -> tuple[str, ...]:
        found = self._values[name]
        assert isinstance(found, tuple)
        return found


class HouseCluster:
    """The committed metadata: there is no topic, or the one of `PARTITION`."""

    has_topic = False
    configs: Mapping[str, str] = {"remote.storage.enable": "true"}

    def topic_by_id(self, topic_id: object) -> TopicView | None:
        return TopicView(PARTITION.topic, PARTITION.topic_id, 9, configs=self.configs) if self.has_topic else None

    def topic(self, name: str) -> TopicView | None:
        return self.topic_by_id(PARTITION.topic_id)

    def topic_names(self) -> list[str]:
        return [PARTITION.topic] if self.has_topic else []


class House:
    """One broker's tiered log of one partition. Life: made, `running` around reads and passes, `close` or not."""

    def __init__(
        self,
        directory: Path,
        store: ObjectStore | None = None,
        *,
        settings: TierSettings = LITTLE_LOCAL,
        epoch: int = 1,
        engine: Callable[[StorageContext], StorageEngine] = SegmentEngine,
        clock: ManualClock | None = None,
        changes: Mapping[str, object] | None = None,
    ) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.store = store or MemoryObjectStore()
        self.node_id = 1
        self.cluster_id = CLUSTER_ID
        self.clock = clock or ManualClock(NOW_MS)
        self.random = random.Random(7)
        self.ids = RandomIds(random.Random(str(directory) + str(epoch) + str(len(list(directory.iterdir())))))
        self.files = OsFiles()
        self.machine = machine_with(clock=self.clock, random=self.random, ids=self.ids, files=self.files)
        self.config = HouseConfig(directory, changes or {})
        self.cluster: Any = HouseCluster()
        self.last_stable_offset: int | None = None
        self.may_leave: Callable[[int], int | None] = lambda below: None
        self.epoch = epoch
        self.tier = TieredStorage(self, store=self.store)  # type: ignore[arg-type] # as far as it is asked
        self.engine = engine(make_context(directory, files=self.files))
        self.engine.start()
        self.inner: PartitionLog = self.engine.open_log(PARTITION, SMALL)
        self.log: TieredPartitionLog = self.tier.wrap(self.inner, settings)
        self._is_on = True
        self.tier.note_leader(PARTITION, 1, epoch)

    def switch_off(self) -> None:
        """Have the topic be tiered no more, as the kernel does."""
        self.inner = self.log.unwrap()
        self._is_on = False
        self.tier.switch_off(PARTITION)

    def switch_on(self) -> None:
        """Have it be tiered again: what is there may be sent."""
        self.inner.roll()
        self.inner.write_sidecar(self.inner.active_base_offset, "snapshot", b"state of producers")
        self.inner.flush()
        self.engine.checkpoint({})
        self.log = self.tier.wrap(self.inner, self.log.settings, is_new=True)
        self._is_on = True

    def offsets(self, topic: str, partition: int) -> LogOffsets | None:
        served = self.log if self._is_on else self.inner
        end = served.log_end_offset
        stable = end if self.last_stable_offset is None else self.last_stable_offset
        return LogOffsets(served.log_start_offset, stable, end, end)

    def may_leave_disk(self, topic: str, partition: int, below: int) -> int | None:
        return self.may_leave(below)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Have cold reads work."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.tier.cold_reads.run)
            yield
            nursery.cancel_scope.cancel()

    def fill(self, count: int, *, epoch: int | None = None) -> list[bytes]:
        """Append batches, flush them, and keep the producers' state, as a broker does now and then."""
        end = self.log.log_end_offset
        used = self.epoch if epoch is None else epoch
        self.log.assign_epoch(used, end)
        written = fill(self.log, end, end + count, epoch=used)
        self.flush()
        return written

    def flush(self) -> None:
        """Make everything durable and known to be, with the producers' state where the active segment begins."""
        self.log.flush()
        self.log.write_sidecar(self.log.active_base_offset, "snapshot", b"state of producers")
        self.engine.checkpoint({})

    async def visit(self) -> None:
        """Do what a visit does, without its patience."""
        if self.log.manifest is not None or self.tier.passes.has_due(self.log):
            await self.tier.passes.take_over(self.log, self.epoch)
            await self.tier.passes.run(self.log, self.epoch, lambda: True)

    async def visit_anyhow(self) -> RemoteStoreError | None:
        """Do the same; return what the store had against it."""
        try:
            await self.visit()
        except RemoteStoreError as error:
            return error
        return None

    async def bring(self, offset: int) -> None:
        """Have records brought near."""
        is_there = trio.Event()
        self.log.begin_cold_read(offset, 4_096, is_there.set)
        assert not is_there.is_set(), "nobody is called before the call returns"
        with trio.fail_after(PATIENCE_S):
            await is_there.wait()

    async def read_all(self, max_bytes: int = 500) -> list[bytes]:
        """Read every batch from the log start on, as a consumer does."""
        batches: list[bytes] = []
        offset = self.log.log_start_offset
        while offset < self.log.log_end_offset:
            try:
                read = self.log.read(offset, max_bytes, at_least_one=True)
            except RecordsAreRemoteError:
                await self.bring(offset)
                continue
            data = read_bytes(read)
            batches += [data[at : at + header.length_bytes] for at, header in iterate_batches(data)]
            assert read.next_offset > offset
            offset = read.next_offset
        return batches

    def close(self) -> None:
        self.log.close()
        self.engine.close({})

    def reopened(self) -> House:
        """Close this one and return the broker that starts after it."""
        self.close()
        return House(self.directory, self.store, settings=self.log.settings, epoch=self.epoch, clock=self.clock)
