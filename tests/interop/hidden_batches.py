"""A broker whose log gets batches that no consumer sees anything of: control batches of ours, data batches left empty.

That is how delayed records wait: a control batch that holds them, the produced batch without them, and where that is
empty one more control batch, which says nothing.
"""

from __future__ import annotations

import contextlib
import struct
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.kernel.broker import Broker, read_broker_options
from odradek.kernel.partitions.append_check import NOT_NEEDED
from odradek.kernel.partitions.leading import AppendOrigin, append_as_leader
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.testing.broker_thread import BrokerThread

from .brokers import SETTINGS
from .records import FIRST_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.kernel.partitions.replica import Replica
    from odradek.kernel.purgatory.purgatory import Purgatory

MARKER_VALUE: Final = struct.Struct(">hi").pack(0, 0)
KEYS: Final = {
    "a commit marker": struct.pack(">hh", 0, ControlRecordType.COMMIT),
    "a type of its own": struct.pack(">hh", 0, 0x0DE1),
}
"""Form of the control batch to its record's key."""
PRODUCER_ID: Final = 8_000
ABORTING_ID: Final = 9_000


class HiddenLog:
    """Partition 0 of a topic, written from the thread of a test past the requests."""

    def __init__(self, thread: BrokerThread, broker: Broker, topic: str) -> None:
        self._thread = thread
        self._broker = broker
        self._topic = topic
        self._sequence = 0
        self._abort_sequence = 0
        self.visible_count = 0

    @property
    def _replica(self) -> Replica:
        return self._broker.parts.logs.replicas.get(self._topic, 0)

    @property
    def end_offset(self) -> int:
        """Where the log ends."""
        return self._replica.log.log_end_offset

    @property
    def fetches_count(self) -> int:
        """How many Fetch requests have asked for the topic."""
        return self._broker.parts.logs.replicas.topics[self._topic].counters.fetch_requests

    def is_awaited_at_end(self) -> bool:
        """Say whether a consumer's Fetch is parked: it has read all there is, and asks for what comes next."""
        fetches: Purgatory = self._broker.parts.requests.waiting.fetch
        return self._thread.call(lambda: bool(fetches.watchers.get(self._replica)))  # type: ignore[no-any-return]

    def append_hidden(self, count: int, *, key: bytes | None, size_bytes: int = 100) -> None:
        """Append control batches whose record has that key, unless None, an empty batch behind each, and its end."""
        for _ in range(count):
            batches = [] if key is None else [_control_batch(key, size_bytes)]
            batches += [_emptied_batch(self._sequence), _closing_batch()]
            self._sequence += 1
            self._thread.call(partial(self._append, batches, AppendOrigin.CLIENT))

    def append_aborted(self, *, key: bytes) -> None:
        """Append an aborted transaction of two hidden batches, and its marker."""
        batches = [_control_batch(key, 100)]
        for _ in range(2):
            batches.append(_emptied_batch(self._abort_sequence, ABORTING_ID))
            self._abort_sequence += 1
        batches.append(_closing_batch())
        self._thread.call(partial(self._append, batches, AppendOrigin.CLIENT))
        marker = build_control_batch(
            [EndTransactionMarker(ControlRecordType.ABORT, 0)],
            timestamp=FIRST_TIMESTAMP,
            producer_id=ABORTING_ID,
            producer_epoch=0,
        )
        self._thread.call(partial(self._append, [marker], AppendOrigin.COORDINATOR))

    def append_visible(self, value: bytes) -> None:
        """Append an ordinary record."""
        self.visible_count += 1
        builder = BatchBuilder()
        builder.append(None, value, timestamp=FIRST_TIMESTAMP)
        self._thread.call(partial(self._append, [builder.build()], AppendOrigin.CLIENT))

    def _append(self, batches: list[bytearray], origin: AppendOrigin) -> None:
        replica = self._replica
        for batch in batches:
            original = append_as_leader(
                replica, memoryview(batch), read_header(batch), 1, origin=origin, verified=NOT_NEEDED
            )
            assert original is None
        self._broker.parts.logs.writes.stage(replica)


def _control_batch(key: bytes, size_bytes: int) -> bytearray:
    builder = BatchBuilder(is_control=True)
    builder.append(key, MARKER_VALUE + bytes(range(256)) * (size_bytes // 256 + 1), timestamp=FIRST_TIMESTAMP)
    return builder.build()


def _closing_batch() -> bytearray:
    """Return what goes behind an empty batch: kafkajs stays where an answer ends with one, and asks again and again."""
    return build_control_batch([EndTransactionMarker(ControlRecordType.COMMIT, 0)], timestamp=FIRST_TIMESTAMP)


def _emptied_batch(sequence: int, transaction_of: int | None = None) -> bytearray:
    producer_id = PRODUCER_ID if transaction_of is None else transaction_of
    builder = BatchBuilder(
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=transaction_of is not None,
    )
    return builder.build(last_offset=0)


class HiddenBroker:
    """A broker in this process, and its address."""

    def __init__(self, thread: BrokerThread, broker: Broker) -> None:
        self._thread = thread
        self._broker = broker
        self._logs: dict[str, HiddenLog] = {}
        self.address = f"127.0.0.1:{thread.listeners[0].port}"

    def log_of(self, topic: str) -> HiddenLog:
        """Return partition 0 of a topic that was created."""
        if topic not in self._logs:
            self._logs[topic] = HiddenLog(self._thread, self._broker, topic)
        return self._logs[topic]


@contextlib.contextmanager
def hidden_broker(folder: Path) -> Iterator[HiddenBroker]:
    """Run a broker in this process, on a thread."""
    options = read_broker_options(
        config=None, environment={}, options=list(SETTINGS), listen=["127.0.0.1:0"], data_dir=folder
    )
    broker = Broker(options)
    thread = BrokerThread(broker)
    thread.start()
    try:
        yield HiddenBroker(thread, broker)
    finally:
        thread.stop(lambda: None)
