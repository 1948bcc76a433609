"""Runtimes of a toy coordinator over real replicas, as a broker drives them."""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import trio

from odradek.kernel.config.broker import BrokerConfig, Setting
from odradek.kernel.config.registry import Registry
from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig, StorageEngine
from odradek.kernel.contracts.storage_context import StorageContext
from odradek.kernel.contracts.transactions import TransactionMarker
from odradek.kernel.coordinator.runtime import Runtime
from odradek.kernel.coordinator.runtimes import CoordinatorRuntimes
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.clock import ManualClock
from odradek.kernel.machine.files import Files, OsFiles
from odradek.kernel.machine.ids import RandomIds
from odradek.kernel.machine.system.threads import SystemThreads
from odradek.kernel.partitions.append_check import NOT_NEEDED
from odradek.kernel.partitions.leading import AppendOrigin, append_as_leader, note_follower
from odradek.kernel.partitions.quiet_followers import FollowerFetch
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.partitions.topic_plan import TopicPlan
from odradek.kernel.purgatory.timing_wheel import TimingWheel
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.reader import read_records
from odradek.kernel.records.record import Record
from odradek.kernel.records.validation import ValidationRules
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.shard_harness import RecordingWaiter
from tests.partitions.local_replicas import make_replicas

from .toy import CounterCoordinator, CounterShard, Result

TOPIC = CounterCoordinator.topic
TOPIC_ID = uuid.uuid5(uuid.NAMESPACE_DNS, TOPIC)
PLAIN = LogConfig()
RULES = ValidationRules(max_message_bytes=2_000)


class World:
    """A broker's replicas, wheel and clock, and the runtimes of a toy coordinator; a test plays everything else."""

    def __init__(
        self,
        directory: Path | None = None,
        *,
        files: Files | None = None,
        settings: Mapping[str, str] | None = None,
        coordinators: Iterable[CounterCoordinator] | None = None,
        log_config: LogConfig = PLAIN,
    ) -> None:
        self.clock = ManualClock()
        self.wheel = TimingWheel(now_ms=self.clock.monotonic_ms())
        self.coordinator = CounterCoordinator()
        static = {key: Setting(text, "test") for key, text in (settings or {}).items()}
        self.config = BrokerConfig(Registry.of(), static=static)
        self.log_config = log_config
        self.turns_wanted = 0
        context = StorageContext(
            log_dirs=[str(directory)] if directory else ["memory"],
            node_id=1,
            cluster_id="",
            settings={},
            now_ms=self.clock.now_ms,
            monotonic_ms=self.clock.monotonic_ms,
            random=random.Random(0),
            new_id=RandomIds(random.Random(0)).new_id,
            files=files or OsFiles(),
            threads=SystemThreads(),
        )
        engine: StorageEngine = SegmentEngine(context) if directory else MemoryEngine(context)
        self.replicas, self.lifecycle, self.writes = make_replicas(
            self.clock,
            {"it": engine},
            config=lambda: self.config,
            on_progress=self._progressed,
            on_staged=self._want_turn,
            on_leader_changed=lambda partition, _id, _epoch: self.runtimes.leader_changed(partition),
        )
        offered = [self.coordinator] if coordinators is None else list(coordinators)
        self.runtimes = CoordinatorRuntimes(
            [(f"plugin{number}", each) for number, each in enumerate(offered)],
            replicas=self.replicas,
            writes=self.writes,
            clock=self.clock,
            threads=SystemThreads(),
            wheel=self.wheel,
            config=lambda: self.config,
            topic_partitions=lambda name: len(self.replicas.topics[name].partitions) if self.has(name) else None,
            elections={},
            want_turn=self._want_turn,
        )
        self.lifecycle.start()

    def _progressed(self, replicas: Collection[Replica]) -> None:
        for replica in replicas:
            self.runtimes.progressed(replica)

    def _want_turn(self) -> None:
        self.turns_wanted += 1

    def has(self, name: str) -> bool:
        return name in self.replicas.topics

    @property
    def runtime(self) -> Runtime:
        return self.runtimes.by_topic[TOPIC]

    # ------------------------------------------------------------------------------------------- what a broker does

    def open(
        self,
        partitions: int = 1,
        *,
        leader: int = 1,
        epoch: int = 0,
        partition_epoch: int = 0,
        isr: tuple[int, ...] = (1,),
        replicas: tuple[int, ...] = (1,),
        min_insync_replicas: int = 1,
    ) -> None:
        """Take what metadata says of the coordinator's topic."""
        plan = TopicPlan(
            storage="it",
            election="isr",
            stages=(),
            log_config=self.log_config,
            settings=TopicSettings(rules=RULES, min_insync_replicas=min_insync_replicas),
            values={},
        )
        state = PartitionState(
            leader=leader, leader_epoch=epoch, partition_epoch=partition_epoch, replicas=replicas, isr=isr
        )
        self.lifecycle.open_topic(TOPIC, TOPIC_ID, plan, dict.fromkeys(range(partitions), state))

    def replica(self, partition: int = 0) -> Replica:
        return self.replicas.topics[TOPIC].partitions[partition]

    def turn(self) -> None:
        """End a turn of the reactor."""
        self.runtimes.turn_ended()
        self.writes.write_staged()

    def follower_has(self, offset: int, partition: int = 0) -> None:
        """Let broker 2 have everything below an offset."""
        replica = self.replica(partition)
        note_follower(replica, FollowerFetch(2, 10, offset, 0, self.clock.monotonic_ms()))
        self.replicas.progressed((replica,))

    def advance(self, duration_ms: int) -> None:
        """Let time pass, millisecond by millisecond as far as something is due, each followed by a turn."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        while (due_ms := self.wheel.next_expiry_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(due_ms - self.clock.monotonic_ms(), 0))
            for entry in self.wheel.advance(self.clock.monotonic_ms()):
                entry.expire()
            self.turn()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def load(self) -> None:
        """Run the loader until nothing loads."""

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(self.runtimes.loader.run)
                while self.runtimes.loader.is_busy:
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()

        trio.run(main)

    def reload(self, partition: int = 0) -> CounterShard:
        """Have a partition's shard loaded anew, as after a change of leaders and back; return the old one."""
        old, place = self.shard(partition), self.runtime.places[partition]
        place.leave()
        place.check()
        self.load()
        return old

    def append(self, batch: bytearray, partition: int = 0) -> None:
        """Put a batch of somebody else's making into the log."""
        replica = self.replica(partition)
        append_as_leader(
            replica, memoryview(batch), read_header(batch), 1, origin=AppendOrigin.COORDINATOR, verified=NOT_NEEDED
        )
        self.writes.stage(replica)
        self.writes.write_staged()

    def close(self) -> None:
        self.lifecycle.close()

    # ------------------------------------------------------------------------------------------------ what clients do

    def submit(self, operation: Any, partition: int = 0, **options: Any) -> RecordingWaiter:
        waiter = RecordingWaiter()
        self.runtime.submit(partition, operation, waiter, **options)
        return waiter

    def add(self, name: str, amount: int, partition: int = 0, **options: Any) -> RecordingWaiter:
        def operation(shard: CounterShard, _now_ms: int) -> Result:
            return shard.add(name, amount, **{key: options[key] for key in ("times", "is_atomic") if key in options})

        more = {key: options[key] for key in ("producer", "verified") if key in options}
        return self.submit(operation, partition, **more)

    def read(self, name: str, partition: int = 0) -> RecordingWaiter:
        return self.submit(lambda shard, _now_ms: shard.read(name), partition)

    def wait(self, name: str, least: int, partition: int = 0) -> RecordingWaiter:
        waiter = RecordingWaiter()
        self.runtime.submit(partition, lambda shard, _now_ms: shard.wait(name, least, waiter), waiter)
        return waiter

    def end_transaction(self, producer_id: int, epoch: int, *, is_commit: bool, partition: int = 0) -> list[ErrorCode]:
        codes: list[ErrorCode] = []
        marker = TransactionMarker(producer_id, epoch, 0, 0, is_commit, ())
        self.runtime.write_marker(partition, marker, codes.append)
        return codes

    def shard(self, partition: int = 0) -> CounterShard:
        found: CounterShard = dict(self.runtime.shards())[partition]
        return found

    def log(self, partition: int = 0) -> bytes:
        """Return all bytes of a partition's log."""
        log = self.replica(partition).log
        offset, found = log.log_start_offset, b""
        while offset < log.log_end_offset:
            read = log.read(offset, 1 << 30)
            data = read.data if isinstance(read.data, (bytes, memoryview)) else read.data.read()
            found += bytes(data)
            offset = read.next_offset
        return found

    def records(self, partition: int = 0) -> list[Record]:
        return list(read_records(self.log(partition)))
