"""Shell: the task that sends a producer's batches, and decides what becomes of each answer.

One task looks, whenever something happened, for partitions that have something to send and brokers that may take it,
and queues the requests itself, so that they leave in order; what becomes of a request it is told as the answer is read.

*Source:* `Sender` of Kafka 4.3.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import attrs
import trio

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.backoff import Backoff
from odradek.kernel.peers.errors import ClientError, ConnectionFailedError, UnsupportedVersionError
from odradek.kernel.types import NO_SEQUENCE, ZERO_ID, TopicPartition
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse

from .brokers import now_ms
from .cluster import LEADER_MOVED, Node
from .errors import BrokerError, ClientClosedError, ClientTimeoutError
from .sequences import UNKNOWN_FATE, Sequences

if TYPE_CHECKING:
    import random
    import uuid

    from odradek.kernel.peers.connection import Connection, Pending

    from .accumulator import Accumulator, ProducerBatch
    from .brokers import Brokers
    from .producer_settings import ProducerSettings
    from .transactions.machine import TransactionMachine

_log = logging.getLogger(__name__)

_VERSION_WITHOUT_IDS: Final = 12
"""The last version of Produce that names topics."""
_VERSION_OF_TRANSACTIONS_1: Final = 11
"""The last version of Produce whose batches must be of partitions that were added to the transaction before."""
_NO_TRANSACTION_TIMEOUT_MS: Final = 2**31 - 1
_STALE_METADATA: Final = LEADER_MOVED | {ErrorCode.KAFKA_STORAGE_ERROR}
"""After these a partition may have another leader: also where the disk of the one it had failed."""


@attrs.define
class SenderCounts:
    """What a sender did so far."""

    requests_count: int = 0
    batches_count: int = 0
    records_count: int = 0
    bytes_count: int = 0
    retries_count: int = 0
    failed_batches_count: int = 0


class Sender:
    """Sends what is in the accumulator; `run` is the one task that owns it.

    Attributes:
        counts: What it did so far.
        sequences: Those of its producer; None where it is not idempotent.
        is_turn_due: Whether a batch was begun or filled since it looked last.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        brokers: Brokers,
        accumulator: Accumulator,
        random_source: random.Random,
        transaction: TransactionMachine | None = None,
    ) -> None:
        self.counts = SenderCounts()
        self.sequences = Sequences(restarts=transaction is None) if settings.is_idempotent else None
        self.is_turn_due = False
        self._transaction = transaction
        self._settings = settings
        self._brokers = brokers
        self._accumulator = accumulator
        self._backoff = Backoff(
            settings.connection.retry_backoff_ms, settings.connection.retry_backoff_max_ms, random_source
        )
        self._news = trio.Event()
        self._released = trio.Event()
        self._in_flight: dict[int, int] = {}
        self._connecting: set[int] = set()
        self._on_wire: dict[tuple[int, ...], ProducerBatch] = {}
        self._wire_is_silent = trio.Event()
        self._is_asking_id = False
        self._guarantees_order = settings.in_flight_max == 1
        self._resting: dict[TopicPartition, int] = {}
        """Partitions with batches that pause before they are sent again, and the epoch in which they failed."""
        brokers.on_change(self._metadata_changed)

    def wake(self) -> None:
        """Have the sender look again."""
        self._news.set()

    def batch_changed(self) -> None:
        """Have the sender look at a batch that was begun or is full; its turn is due until it has done so."""
        self.is_turn_due = True
        self._news.set()

    def _metadata_changed(self) -> None:
        """Let what pauses go to a leader that was not tried yet, at once."""
        for partition, epoch in list(self._resting.items()):
            info = self._brokers.cluster.partition(partition)
            if info is None or (info.leader_epoch > epoch and info.has_leader):
                del self._resting[partition]
                self._accumulator.hasten(partition)
        self.wake()

    async def wait_released(self) -> None:
        """Wait until some batch came to its end, and so gave memory back."""
        await self._released.wait()

    async def wait_silent(self) -> None:
        """Wait until no request is on the wire: what expired there may still arrive. At most `request.timeout.ms`."""
        while self._on_wire:
            await self._wire_is_silent.wait()

    async def run(self) -> None:
        """Send until cancelled; then every unfinished batch ends with `ClientClosedError`."""
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    self._news = trio.Event()
                    next_ms = self._turn(nursery)
                    with trio.move_on_at(next_ms / 1_000):
                        await self._news.wait()
        finally:
            for batch in self._accumulator.unfinished:
                self._end(batch, ClientClosedError("the producer was closed before the record was acknowledged"))

    # Sending.

    def _turn(self, nursery: trio.Nursery) -> float:
        """Send all that can be sent now; return when to look again."""
        self.is_turn_due = False
        time_ms = now_ms()
        self._expire(time_ms)
        self._tidy_sequences(nursery)
        while True:
            ready = self._accumulator.ready(time_ms, self._brokers.cluster.leader_of)
            if ready.leaderless:
                self._brokers.want(sorted(ready.leaderless))  # also where metadata.max.idle.ms has had one forgotten
                self._brokers.request_update()
            sent_count = sum(self._send_to(node_id, ready.nodes[node_id], nursery) for node_id in ready.nodes)
            if not sent_count:
                break
        deadline_ms = self._accumulator.oldest_created_ms() + self._settings.delivery_timeout_ms
        for batch in self._on_wire.values():
            if not batch.is_done:
                deadline_ms = min(deadline_ms, batch.created_ms + self._settings.delivery_timeout_ms)
        return min(ready.next_ms, deadline_ms + 1)

    def _tidy_sequences(self, nursery: trio.Nursery) -> None:
        """Drop what a failed transaction leaves behind, begin broken chains again, get a producer id."""
        if self._transaction is not None:
            if self._transaction.drops_batches:
                for batch in self._accumulator.take_all():
                    self._give_up(batch, self._transaction.reason_to_drop)
        elif self.sequences is not None:
            self.sequences.restart_broken()
            if not self.sequences.has_producer_id and self._accumulator.has_unfinished and not self._is_asking_id:
                self._is_asking_id = True
                nursery.start_soon(self._ask_producer_id)

    def _send_to(self, node_id: int, partitions: list[TopicPartition], nursery: trio.Nursery) -> bool:
        """Send one request to a broker, if it may take one; return whether it was sent."""
        if self._in_flight.get(node_id, 0) >= self._settings.in_flight_max:
            return False
        connection = self._brokers.connection_to(node_id)
        if connection is None:
            if node_id not in self._connecting:
                self._connecting.add(node_id)
                nursery.start_soon(self._connect, node_id)
            return False
        batches = self._accumulator.drain(
            partitions, self._settings.request_size_bytes_max, self._may_send, self._on_drained
        )
        if not batches:
            return False
        try:
            pending = self._queue(connection, batches)
        except (UnsupportedVersionError, ConnectionFailedError) as error:
            for batch in batches:
                self._on_failure(batch, error, was_sent=False)
            return False
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        pending.on_done = partial(self._on_done, node_id, batches)
        return True

    def _may_send(self, batch: ProducerBatch) -> bool:
        if self._transaction is not None and not self._transaction.may_send(batch.partition):
            return False
        return self.sequences is None or self.sequences.may_send(batch)

    def _on_drained(self, batch: ProducerBatch) -> None:
        if self._transaction is not None:
            batch.set_transactional()
        if self.sequences is not None:
            self.sequences.assign(batch)
        if self._guarantees_order:
            self._accumulator.muted.add(batch.partition)
        batch.is_on_wire = True
        self._on_wire[batch.ordinal] = batch
        if batch.attempts_count:
            self.counts.retries_count += 1

    def _queue(self, connection: Connection, batches: list[ProducerBatch]) -> Pending:
        """Queue the request with these batches; nothing of it is awaited, so that requests keep their order."""
        topics: dict[str, TopicProduceData] = {}
        cluster = self._brokers.cluster
        version = connection.version_of(ProduceRequest)
        transactional_id = None
        if self._transaction is not None:
            transactional_id = self._transaction.transactional_id
            if not self._transaction.is_v2:
                version = min(version, _VERSION_OF_TRANSACTIONS_1)
        for batch in batches:
            data = batch.encode()
            name = batch.partition.topic
            topic = topics.get(name)
            if topic is None:
                topic_id = cluster.topic_id(name)
                if topic_id == ZERO_ID:
                    version = min(version, _VERSION_WITHOUT_IDS)
                topic = topics[name] = TopicProduceData(name=name, topic_id=topic_id, partition_data=[])
            topic.partition_data.append(PartitionProduceData(index=batch.partition.partition, records=data))
            self.counts.bytes_count += len(data)
        timeout_ms = self._settings.connection.request_timeout_ms
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=self._settings.acks,
            timeout_ms=timeout_ms,
            topic_data=list(topics.values()),
        )
        self.counts.requests_count += 1
        self.counts.batches_count += len(batches)
        return connection.queue(request, version, timeout_ms=timeout_ms, is_answered=self._settings.acks != 0)

    async def _connect(self, node_id: int) -> None:
        try:
            await self._brokers.connect(node_id)
        except ClientError as error:
            _log.debug("no connection to broker %d: %s", node_id, error)
            self._brokers.request_update()
        finally:
            self._connecting.discard(node_id)
            self.wake()

    # Answers.

    def _on_done(self, node_id: int, batches: list[ProducerBatch], pending: Pending) -> None:
        """Decide about each batch of a request; called in the order of the answers."""
        self._in_flight[node_id] -= 1
        for batch in batches:
            self._accumulator.muted.discard(batch.partition)
        if pending.error is None:
            self._on_response(batches, cast("ProduceResponse | None", pending.response))
        else:
            self._brokers.doubt_leaders(batch.partition for batch in batches)
            for batch in batches:
                self._on_failure(batch, pending.error, was_sent=True)
        if self._accumulator.has_unfinished:
            self.wake()

    def _on_response(self, batches: list[ProducerBatch], response: ProduceResponse | None) -> None:
        if response is None:  # acks=0: written is all that will ever be known
            for batch in batches:
                self._succeed(batch, -1, -1)
            return
        cluster = self._brokers.cluster
        cluster.add_nodes(
            Node(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) for endpoint in response.node_endpoints
        )
        answers: dict[tuple[str | uuid.UUID, int], PartitionProduceResponse] = {}
        for topic in response.responses:
            for answer in topic.partition_responses:
                answers[topic.name or topic.topic_id, answer.index] = answer
        for batch in batches:
            topic_name, number = batch.partition
            found = answers.get((topic_name, number)) or answers.get((cluster.topic_id(topic_name), number))
            if found is None:
                self._on_failure(batch, ConnectionFailedError("the answer lacks this partition"), was_sent=True)
            else:
                self._on_answer(batch, found)

    def _on_answer(self, batch: ProducerBatch, answer: PartitionProduceResponse) -> None:
        code = error_code(answer.error_code)
        # Broker and client agree that a duplicate was appended; where, only some brokers still know.
        if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            self._succeed(batch, answer.base_offset, answer.log_append_time_ms)
            return
        self._left_wire(batch)
        if code is ErrorCode.MESSAGE_TOO_LARGE and batch.records_count > 1 and not batch.is_done:
            parts = self._accumulator.split(batch)
            if self.sequences is not None:
                self.sequences.split(batch, parts)
            return
        batch.is_fate_unknown = batch.is_fate_unknown or code in UNKNOWN_FATE
        pause_ms = None
        if code in _STALE_METADATA:
            leader = answer.current_leader
            if leader is not None and self._brokers.cluster.set_leader(
                batch.partition, leader.leader_id, leader.leader_epoch
            ):
                pause_ms = 0  # the answer says who to turn to: no reason to wait
                self._brokers.request_update()
            else:
                self._brokers.doubt_leaders((batch.partition,))
        may_retry = code.retriable if self.sequences is None else self.sequences.may_retry(batch, code)
        detail = f"{batch.partition}: {answer.error_message or code.text}"
        self._retry_or_fail(batch, BrokerError(code, detail), may_retry=may_retry, pause_ms=pause_ms)

    def _on_failure(self, batch: ProducerBatch, error: ClientError, *, was_sent: bool) -> None:
        """Decide about a batch without an answer."""
        self._left_wire(batch)
        if not was_sent:
            batch.attempts_count -= 1
            self._accumulator.muted.discard(batch.partition)
        batch.is_fate_unknown = batch.is_fate_unknown or was_sent
        self._retry_or_fail(batch, error, may_retry=error.retriable)

    def _left_wire(self, batch: ProducerBatch) -> None:
        batch.is_on_wire = False
        self._on_wire.pop(batch.ordinal, None)
        if not self._on_wire:
            self._wire_is_silent.set()
            self._wire_is_silent = trio.Event()

    def _retry_or_fail(
        self, batch: ProducerBatch, error: ClientError, *, may_retry: bool, pause_ms: int | None = None
    ) -> None:
        time_ms = now_ms()
        if self._transaction is not None and self._transaction.drops_batches:
            may_retry = False
        is_in_time = time_ms < batch.created_ms + self._settings.delivery_timeout_ms
        if may_retry and is_in_time and not batch.is_done and batch.attempts_count <= self._settings.retries:
            pause = self._backoff.pause_ms(batch.attempts_count) if pause_ms is None else pause_ms
            if pause and (info := self._brokers.cluster.partition(batch.partition)) is not None:
                self._resting[batch.partition] = info.leader_epoch
            self._accumulator.requeue(batch, time_ms + pause)
            _log.debug("%r is sent again in %d ms: %s", batch, pause, error)
            return
        self._give_up(batch, error)

    def _give_up(self, batch: ProducerBatch, error: ClientError) -> None:
        self._fail_transaction(batch, error)
        if self.sequences is not None:
            self.sequences.fail(batch, is_fate_known=not batch.is_fate_unknown)
        if not batch.is_done:
            self._end(batch, error)

    def _succeed(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        self._left_wire(batch)
        if self.sequences is not None:
            self.sequences.acknowledge(batch)
        if not batch.is_done:
            batch.base_offset = base_offset
            batch.log_append_time_ms = log_append_time_ms
            self.counts.records_count += batch.records_count
            self._end(batch, None)

    def _expire(self, time_ms: int) -> None:
        """Give up what is older than `delivery.timeout.ms`, waiting or on the wire."""
        before_ms = time_ms - self._settings.delivery_timeout_ms
        for batch in self._accumulator.take_expired(before_ms):
            self._give_up(batch, self._expired(batch))
        for batch in self._on_wire.values():
            if batch.created_ms < before_ms and not batch.is_done:
                error = self._expired(batch)
                # Before it ends: who waits for the last record commits the moment that it is done.
                self._fail_transaction(batch, error)
                self._end(batch, error)

    def _fail_transaction(self, batch: ProducerBatch, error: ClientError) -> None:
        """Have the transaction of a batch not commit; it knows of one that is done, and may be the next one by now."""
        if self._transaction is not None and not batch.is_done:
            self._transaction.batch_failed(error, was_numbered=batch.base_sequence != NO_SEQUENCE)

    def _expired(self, batch: ProducerBatch) -> ClientTimeoutError:
        fate = "it may have been appended" if batch.is_fate_unknown or batch.is_on_wire else "it was not appended"
        return ClientTimeoutError(
            f"{batch.partition}: not acknowledged within delivery.timeout.ms={self._settings.delivery_timeout_ms} "
            f"after {batch.attempts_count} attempts; {fate}"
        )

    def _end(self, batch: ProducerBatch, error: ClientError | None) -> None:
        if error is not None:
            batch.error = error
            self.counts.failed_batches_count += 1
        self._accumulator.release(batch)
        self._released.set()
        self._released = trio.Event()
        batch.finish()

    # The producer id.

    async def _ask_producer_id(self) -> None:
        """Get a producer id, however long it takes; fatal errors end everything that waits for one."""
        assert self.sequences is not None
        failures_count = 0
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TRANSACTION_TIMEOUT_MS)
        try:
            while not self.sequences.has_producer_id:
                error: ClientError
                try:
                    response: InitProducerIdResponse = await self._brokers.request_any(request)
                    if not response.error_code:
                        self.sequences.set_producer_id(response.producer_id, response.producer_epoch)
                        return
                    code = error_code(response.error_code)
                    error = BrokerError(code, f"InitProducerId: {code.text}")
                except (ConnectionFailedError, UnsupportedVersionError) as failure:
                    error = failure
                if not error.retriable:
                    for batch in self._accumulator.take_all():
                        self._give_up(batch, error)
                    return
                failures_count += 1
                await trio.sleep(self._backoff.pause_ms(failures_count) / 1_000)
        finally:
            self._is_asking_id = False
            self.wake()
