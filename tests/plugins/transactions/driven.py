"""A shard of transactional ids in a harness, with markers that a test answers by hand."""

from __future__ import annotations

from typing import Any

from odradek.kernel.api import ErrorCode, KafkaError, ProducerIdentity, TopicPartition
from odradek.plugins.transactions.metadata import (
    TransactionMetadata,
    TransactionRecord,
    decode_record,
    encode_record,
)
from odradek.plugins.transactions.requests import (
    EndRequest,
    MarkersWanted,
    ShardSurroundings,
    TransactionCounters,
    TransactionSettings,
)
from odradek.plugins.transactions.shard import TransactionShard
from odradek.testing.shard_harness import RecordingWaiter, ShardHarness

SETTINGS = TransactionSettings(
    timeout_ms_max=900_000, abort_interval_ms=10_000, expiration_ms=604_800_000, expiration_interval_ms=3_600_000
)
FIRST_PRODUCER_ID = 1000


class Sender:
    """Takes markers off, for the test to answer."""

    def __init__(self, sent: list[MarkersWanted]) -> None:
        self._sent = sent

    def answer(self, response: Any) -> None:
        self._sent.append(response)

    def fail(self, error: KafkaError) -> None:
        raise AssertionError(f"markers are not carried off: {error}")


class DrivenShard:
    """The harness, the markers on their way, and requests by name.

    Attributes:
        version: The finalized `transaction.version`.
        sent: Markers that were sent and not answered.
        producer_ids: How many producer ids there are at hand.
    """

    def __init__(self, *, version: int = 2, settings: TransactionSettings = SETTINGS) -> None:
        self.version = version
        self.sent: list[MarkersWanted] = []
        self.producer_ids = 1 << 20
        self.counters = TransactionCounters()
        self._next_producer_id = FIRST_PRODUCER_ID
        surroundings = ShardSurroundings(settings, lambda: self.version, self._take_producer_id, self.counters)
        self.harness: ShardHarness[TransactionShard, TransactionRecord] = ShardHarness(
            lambda timers: TransactionShard(
                timers=timers, surroundings=surroundings, new_sender=lambda _: Sender(self.sent)
            ),
            encode=lambda record: encode_record(record, self.version),
            decode=decode_record,
            snapshot=lambda shard: dict(shard.ids),
        )

    def _take_producer_id(self) -> int:
        if not self.producer_ids:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self.producer_ids -= 1
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def metadata(self, transactional_id: str) -> TransactionMetadata:
        return self.harness.shard.ids[transactional_id]

    def init(
        self, transactional_id: str, *, timeout_ms: int = 60_000, expected: ProducerIdentity | None = None
    ) -> RecordingWaiter:
        return self.harness.run(
            lambda shard, now_ms: shard.init_producer_id(transactional_id, timeout_ms, expected, now_ms)
        )

    def add(
        self, transactional_id: str, producer: ProducerIdentity, *partitions: TopicPartition, version: int = 2
    ) -> RecordingWaiter:
        added = frozenset(partitions)
        return self.harness.run(
            lambda shard, now_ms: shard.add_partitions(transactional_id, producer, added, version, now_ms)
        )

    def verify(self, transactional_id: str, producer: ProducerIdentity, *partitions: TopicPartition) -> RecordingWaiter:
        return self.harness.run(lambda shard, _: shard.verify_partitions(transactional_id, producer, partitions))

    def end(
        self, transactional_id: str, producer: ProducerIdentity, *, is_commit: bool, version: int = 2
    ) -> RecordingWaiter:
        request = EndRequest(transactional_id, producer, is_commit, version)
        return self.harness.run(lambda shard, now_ms: shard.end(request, now_ms))

    def written(self, wanted: MarkersWanted, code: ErrorCode = ErrorCode.NONE) -> None:
        """Have every partition answer a marker with the same code."""
        self.answered(wanted, dict.fromkeys(wanted.partitions, code))

    def answered(self, wanted: MarkersWanted, codes: dict[TopicPartition, ErrorCode]) -> None:
        """Have partitions answer a marker."""
        if wanted in self.sent:
            self.sent.remove(wanted)
        waiter = self.harness.run(lambda shard, now_ms: shard.markers_answered(wanted, codes, now_ms))

        assert waiter.error is None

    def write_all(self) -> None:
        """Have every marker on its way written."""
        for wanted in list(self.sent):
            self.written(wanted)
