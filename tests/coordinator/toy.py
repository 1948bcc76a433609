"""A coordinator of counters: the smallest one that uses everything, for tests of the harness and the runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from odradek.kernel.contracts.api_handler import ApiHandler, AsyncApiHandler
from odradek.kernel.contracts.coordinator import (
    NO_PRODUCER,
    PARKED,
    CoordinatorResult,
    CoordinatorRuntime,
    CoordinatorTimers,
    MetadataChange,
    ProducerIdentity,
    TopicKeys,
    Waiter,
)
from odradek.kernel.contracts.services import Metric
from odradek.kernel.contracts.transactions import Transactions
from odradek.kernel.errors import CorruptionError, ErrorCode, KafkaError
from odradek.kernel.types import Buffer


@attrs.frozen
class Added:
    """So much was added to a counter; 0 of a tombstone removes it."""

    name: str
    amount: int


Result = CoordinatorResult[Added, Any]


class CounterShard:
    """Counters by name; additions of a transaction count once it commits."""

    def __init__(self, timers: CoordinatorTimers) -> None:
        self.timers = timers
        self.counters: dict[str, int] = {}
        self.pending: dict[int, list[Added]] = {}
        self.waiting: list[tuple[str, int, Waiter]] = []
        self.offsets: list[int] = []
        self.loaded_at_ms: int | None = None
        self.is_unloaded = False

    def snapshot(self) -> object:
        return dict(self.counters), {key: list(records) for key, records in self.pending.items()}

    def replay(self, record: Added, offset: int, producer: ProducerIdentity) -> None:
        assert not self.is_unloaded
        self.offsets.append(offset)
        if producer == NO_PRODUCER:
            self.counters[record.name] = self.counters.get(record.name, 0) + record.amount
        else:
            self.pending.setdefault(producer.producer_id, []).append(record)

    def replay_marker(self, producer: ProducerIdentity, *, is_commit: bool) -> None:
        for record in self.pending.pop(producer.producer_id, []):
            if is_commit:
                self.counters[record.name] = self.counters.get(record.name, 0) + record.amount

    def loaded(self, now_ms: int) -> None:
        self.loaded_at_ms = now_ms

    def unloaded(self) -> None:
        self.is_unloaded = True

    # ------------------------------------------------------------------------------------------------------ operations

    def add(self, name: str, amount: int, *, times: int = 1, is_atomic: bool = True) -> Result:
        """Add, answer with the new value, and answer whoever waited for it."""
        if amount < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        value = self.counters.get(name, 0) + amount * times
        ready = [entry for entry in self.waiting if entry[0] == name and entry[1] <= value]
        self.waiting = [entry for entry in self.waiting if entry not in ready]
        answers = [(waiter, value) for _name, _least, waiter in ready]
        return CoordinatorResult([Added(name, amount)] * times, value, answers, is_atomic=is_atomic)

    def read(self, name: str) -> Result:
        """Answer with a counter's value."""
        return CoordinatorResult([], self.counters.get(name, 0))

    def wait(self, name: str, least: int, waiter: Waiter) -> Result:
        """Answer once a counter has reached a value."""
        self.waiting.append((name, least, waiter))
        return CoordinatorResult([], PARKED)

    def add_later(self, name: str, amount: int, delay_ms: int) -> Result:
        """Add when a time has passed."""
        self.timers.schedule((name,), delay_ms, lambda _now_ms: self.add(name, amount))
        return CoordinatorResult([], None)

    def fail(self) -> Result:
        """Have a bug."""
        raise ZeroDivisionError


class CounterCoordinator:
    """Gives shards of counters."""

    name = "counters"
    key_type = 9
    topic = "__counters"
    topic_settings = TopicKeys(
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        {"cleanup.policy": "=compact", "segment.bytes": "offsets.topic.segment.bytes"},
        compression_key="offsets.topic.compression.codec",
    )
    write_timeout_key = "offsets.commit.timeout.ms"
    load_buffer_key = "offsets.load.buffer.size"

    def __init__(self) -> None:
        self.made: list[CounterShard] = []
        self.changes: list[MetadataChange] = []

    def new_shard(self, partition: int, timers: CoordinatorTimers) -> CounterShard:
        shard = CounterShard(timers)
        self.made.append(shard)
        return shard

    def encode(self, record: Added) -> tuple[bytes, bytes | None]:
        return b"add " + record.name.encode(), b"%d" % record.amount

    def decode(self, key: Buffer, value: Buffer | None) -> Added | None:
        kind, _, name = bytes(key).partition(b" ")
        if kind == b"later":
            return None
        if kind != b"add" or value is None:
            raise CorruptionError("no counter")
        return Added(name.decode(), int(bytes(value)))

    def handlers(self, runtime: CoordinatorRuntime[CounterShard]) -> Sequence[ApiHandler | AsyncApiHandler]:
        return ()

    def metrics(self, runtime: CoordinatorRuntime[CounterShard]) -> Sequence[Metric]:
        return ()

    def metadata_changed(self, change: MetadataChange, runtime: CoordinatorRuntime[CounterShard]) -> None:
        self.changes.append(change)

    def transactions(self, runtime: CoordinatorRuntime[CounterShard]) -> Transactions | None:
        return None
