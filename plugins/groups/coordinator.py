"""Pure core: the group coordinator, as the kernel's runtime drives it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from odradek.kernel.api import TopicKeys

from .counters import GroupCounters
from .handlers import group_handlers
from .metrics import group_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.kernel.api import (
        ApiHandler,
        AsyncApiHandler,
        BrokerHandle,
        Buffer,
        CoordinatorRuntime,
        CoordinatorTimers,
        KafkaError,
        MetadataChange,
        Metric,
        Transactions,
    )

    from .records import GroupRecord
    from .shard import GroupShard


class GroupCoordinator:
    """What the plugin gives to the kernel; see `Coordinator`. One for a broker.

    Shards, records and handlers are imported when they are first needed, not when a broker starts.

    Attributes:
        counters: What all shards count together.
    """

    name = "groups"
    key_type = 0
    topic = "__consumer_offsets"
    topic_settings = TopicKeys(
        partitions_key="offsets.topic.num.partitions",
        replication_factor_key="offsets.topic.replication.factor",
        configs={
            "cleanup.policy": "=compact",
            "compression.type": "=producer",
            "segment.bytes": "offsets.topic.segment.bytes",
        },
        compression_key="offsets.topic.compression.codec",
    )
    write_timeout_key = "offsets.commit.timeout.ms"
    load_buffer_key = "offsets.load.buffer.size"

    def __init__(self, broker: BrokerHandle) -> None:
        """Make the coordinator of a broker."""
        self._broker = broker
        self.counters = GroupCounters()

    def __repr__(self) -> str:
        return f"GroupCoordinator({self.counters!r})"

    def new_shard(self, partition: int, timers: CoordinatorTimers) -> GroupShard:
        """Return an empty shard."""
        from .shard import GroupShard

        return GroupShard(partition, broker=self._broker, timers=timers, counters=self.counters)

    def encode(self, record: GroupRecord) -> tuple[bytes, bytes | None]:
        """Return a record's key and value."""
        return self._codec[0](record)

    def decode(self, key: Buffer, value: Buffer | None) -> GroupRecord | None:
        """Return the record of a key and value, None for a type that is not known."""
        return self._codec[1](key, value)

    @cached_property
    def _codec(
        self,
    ) -> tuple[
        Callable[[GroupRecord], tuple[bytes, bytes | None]], Callable[[Buffer, Buffer | None], GroupRecord | None]
    ]:
        from .records import decode_record, encode_record

        return encode_record, decode_record

    def handlers(self, runtime: CoordinatorRuntime[GroupShard]) -> Sequence[ApiHandler | AsyncApiHandler]:
        """Return the handlers of the APIs of groups."""
        return group_handlers(runtime, self._broker)

    def metrics(self, runtime: CoordinatorRuntime[GroupShard]) -> Sequence[Metric]:
        """Return the metrics of groups."""
        return group_metrics(self.counters, runtime, self._broker)

    def metadata_changed(self, change: MetadataChange, runtime: CoordinatorRuntime[GroupShard]) -> None:
        """Have every shard follow a change."""
        runtime.submit_all(lambda shard, now_ms: shard.metadata_changed(change, now_ms), _Unheard())

    def transactions(self, runtime: CoordinatorRuntime[GroupShard]) -> Transactions | None:
        """Return None: this is not the coordinator of transactions."""
        return None


class _Unheard:
    """Nobody waits; what fails is tried by nobody, as in Kafka: a deleted topic's offsets expire in the end."""

    def answer(self, response: object) -> None:
        """Take the answers."""

    def fail(self, error: KafkaError) -> None:
        """Take the error."""
