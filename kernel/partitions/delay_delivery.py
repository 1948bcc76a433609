"""Shell: has delayed records appended when they are due, in every partition that is led here.

    due of the ledger ──> read what holds them ──> a note and a batch of ordinary records ──> appended together

The append is the note that they were delivered: a new leader whose log has it goes on behind it, one whose log has it
not delivers them itself, and in neither case is one seen twice. Nothing is awaited between looking and appending.

Delivered records have their due time as timestamp, for else what waited for long would be old when it comes.
"""

from __future__ import annotations

import heapq
import itertools
import logging
from typing import TYPE_CHECKING, Final

import trio

from ..classes import define
from ..contracts.services import Metric
from ..errors import KafkaError
from ..machine.turnstile import take_turn
from .delay_beginnings import DelayBeginnings
from .delay_carrying import DelayCarrying
from .leading import append_companion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..delay.ledger import DelayLedger
    from ..machine.clock import Clock
    from ..types import TopicIdPartition
    from .delay_batches import DeliveryMaker
    from .replica import Replica
    from .replicas import Replicas
    from .staged_writes import StagedWrites

log = logging.getLogger(__name__)

RECORDS_PER_BATCH: Final = 500
STALE_TIMES_MAX: Final = 64
"""So many times are kept, beside twice those that count, before those go for which an earlier one was said."""
PREPARED_AHEAD_MS: Final = 2_000
"""A follower is ready for what its leader delivers until it looks around again."""
LOOK_AROUND_S: Final = 1.0
"""So often all partitions are looked at: one may have come to be led here, and the wall clock may have jumped."""


@define
class DeliveryStatistics:
    """What was done since the start; lateness in milliseconds, of each batch's first record.

    Unreadable are control batches with delayed records, as often as one was met.
    """

    delivered_count: int = 0
    withdrawn_count: int = 0
    batches_count: int = 0
    lateness_ms_sum: int = 0
    unreadable_count: int = 0


class DelayDelivery:
    """The service. Owned by the broker's nursery; works between turns of the reactor, on the same thread.

    Attributes:
        beginnings: Gives replicas ledgers whose topics have begun to have delayed records.
        carrying: Carries forward what waits in segments that are to go.
        statistics: What was done.
    """

    def __init__(self, *, replicas: Replicas, writes: StagedWrites, clock: Clock) -> None:
        self.beginnings = DelayBeginnings(replicas)
        self.carrying = DelayCarrying(replicas=replicas, writes=writes, clock=clock)
        self._replicas = replicas
        self._writes = writes
        self._clock = clock
        self._watched: dict[DelayLedger, Replica] = {}
        self._times: list[tuple[int, int, DelayLedger]] = []
        self._numbers = itertools.count()
        self._noted: dict[DelayLedger, int] = {}
        self._woken = trio.Event()
        self._wakes_ms: int | None = None
        self._maker: DeliveryMaker | None = None
        self.statistics = DeliveryStatistics()

    def waiting_by_topic(self) -> dict[tuple[str, ...], float]:
        """Return how many records wait in partitions that are led here, by topic."""
        found: dict[tuple[str, ...], float] = {}
        for ledger, replica in self._watched.items():
            if replica.is_leader:
                topic = (replica.partition.topic,)
                found[topic] = found.get(topic, 0) + ledger.queue.waiting_count
        return found

    def watch(self, replica: Replica) -> None:
        """Deliver what is due in a replica that is in the table, as long as it is; look at it soon."""
        if replica.delays is not None:
            self._watched[replica.delays] = replica
            self.note_due(replica.delays, 0)

    def note_due(self, ledger: DelayLedger, due_ms: int) -> None:
        """Look at a ledger at a time; earlier where that was said before."""
        known_ms = self._noted.get(ledger)
        if known_ms is None or due_ms < known_ms:
            self._noted[ledger] = due_ms
            if len(self._times) > 2 * len(self._noted) + STALE_TIMES_MAX:
                kept = {noted: known for noted, known in self._noted.items() if noted is not ledger}
                self._times = [(known, next(self._numbers), noted) for noted, known in kept.items()]
                heapq.heapify(self._times)
            heapq.heappush(self._times, (due_ms, next(self._numbers), ledger))
            self._wake(due_ms)

    def note_unreadable(self, partition: TopicIdPartition, offset: int, error: Exception) -> None:
        """Take note that delayed records cannot be read: they are passed over, and all others are delivered."""
        self.statistics.unreadable_count += 1
        log.error("%s: delayed records at offset %d cannot be read, and are passed over: %s", partition, offset, error)

    def _wake(self, due_ms: int) -> None:
        if self._wakes_ms is None or due_ms < self._wakes_ms:
            self._woken.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver until cancelled; what is not delivered then waits."""
        task_status.started()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.beginnings.run, name="beginnings of delayed records")
            nursery.start_soon(self.carrying.run, name="delayed records that are carried forward")
            await self._deliver_for_ever()

    async def _deliver_for_ever(self) -> None:
        looked_s = -LOOK_AROUND_S
        while True:
            if trio.current_time() - looked_s >= LOOK_AROUND_S:
                looked_s = trio.current_time()
                self.look_around()
            for ledger in self.take_due():
                await take_turn()
                self.deliver(ledger)
            self._woken = trio.Event()
            self._wakes_ms = self._times[0][0] if self._times else None
            pause_s = LOOK_AROUND_S if self._watched else float("inf")
            if self._wakes_ms is not None:
                pause_s = min(pause_s, max(0, self._wakes_ms - self._clock.now_ms()) / 1000)
            with trio.move_on_after(pause_s):
                await self._woken.wait()
            self._wakes_ms = 0

    def look_around(self) -> None:
        """Look when something is due, or to be prepared, in every partition; forget those that are gone."""
        for ledger, replica in list(self._watched.items()):
            is_there = self._replicas.find(replica.partition.topic, replica.partition.partition) is replica
            if replica.delays is not ledger or not is_there:
                del self._watched[ledger]
                self._noted.pop(ledger, None)
            elif replica.offline_reason is None:
                try:
                    self._look_at(ledger, replica)
                except Exception as error:  # a plugin's: its partition pays, nobody else
                    self._replicas.fail(replica, error)

    def _look_at(self, ledger: DelayLedger, replica: Replica) -> None:
        due_ms = ledger.queue.next_due_ms()
        if due_ms is not None:
            self.note_due(ledger, due_ms if replica.is_leader else due_ms - PREPARED_AHEAD_MS)

    def _prepare(self, ledger: DelayLedger) -> None:
        """Have a follower's queue work for a moment towards what its leader will deliver, or has."""
        now_ms = self._clock.now_ms()
        if not ledger.queue.prepare(now_ms + PREPARED_AHEAD_MS):
            self.note_due(ledger, now_ms)

    def take_due(self) -> list[DelayLedger]:
        """Return the ledgers of which something may be due, or to be prepared; each is to be given to `deliver`."""
        now_ms = self._clock.now_ms()
        found = []
        while self._times and self._times[0][0] <= now_ms:
            due_ms, _, ledger = heapq.heappop(self._times)
            if self._noted.get(ledger) == due_ms:
                del self._noted[ledger]
                found.append(ledger)
        return found

    def deliver(self, ledger: DelayLedger) -> None:
        """Deliver a batch of what is due in a partition, or prepare a follower; others come before the next one."""
        replica = self._watched.get(ledger)
        if replica is None or not self._replicas.is_served(replica):
            return
        try:
            if not replica.is_leader:
                self._prepare(ledger)
                return
            has_more = self._deliver_some(replica, ledger)
            due_ms = ledger.queue.next_due_ms()
        except KafkaError:
            return  # it leads no more, or its disk failed, which was told
        except Exception as error:  # its disk's, or a plugin's: its partition pays, nobody else
            self._replicas.fail(replica, error)
            return
        now_ms = self._clock.now_ms()
        if has_more:
            self.note_due(ledger, now_ms)
        elif due_ms is not None:
            self.note_due(ledger, max(due_ms, now_ms + 1))

    def _deliver_some(self, replica: Replica, ledger: DelayLedger) -> bool:
        """Append one batch of what is due; return whether there may be more."""
        now_ms = self._clock.now_ms()
        if not ledger.queue.prepare(now_ms):
            return True
        due = ledger.queue.due(now_ms, RECORDS_PER_BATCH)
        if due and due[0].companion >= replica.appended_offset:
            self._writes.write_now((replica,))  # what holds it is still to be written, or flushed
        if not due or due[0].companion >= replica.appended_offset:
            return False
        if self._maker is None:
            from .delay_batches import DeliveryMaker  # a broker without delayed records does not pay for it

            self._maker = DeliveryMaker(self.note_unreadable)
        made = self._maker.make(replica, ledger, due)
        append_companion(replica, made.note, made.records)
        self._writes.stage(replica)
        statistics = self.statistics
        statistics.delivered_count += made.delivered_count
        statistics.withdrawn_count += made.withdrawn_count
        statistics.batches_count += 1
        statistics.lateness_ms_sum += now_ms - due[0].due_ms
        return True


def delay_metrics(delivery: DelayDelivery) -> list[tuple[str, Metric]]:
    """Return the metrics of delayed records, each with the name of who offers it."""
    counted = delivery.statistics
    rows: list[tuple[str, str, Callable[[], float]]] = [
        ("delivered", "Delayed records that were delivered.", lambda: counted.delivered_count),
        ("withdrawn", "Delayed records that were withdrawn, and whose time has come.", lambda: counted.withdrawn_count),
        ("deliveries", "Batches in which delayed records were delivered.", lambda: counted.batches_count),
        (
            "lateness_ms",
            "How late the first record of each delivery came, in milliseconds, all together.",
            lambda: counted.lateness_ms_sum,
        ),
        (
            "carried",
            "Records that were appended again, since the segment that they waited in was to go.",
            lambda: delivery.carrying.carried_count,
        ),
        ("unreadable", "Batches whose delayed records could not be read.", lambda: counted.unreadable_count),
    ]
    waiting = Metric(
        "odradek_delay_waiting",
        "Records that wait in partitions that are led here.",
        "gauge",
        delivery.waiting_by_topic,
        ("topic",),
    )
    return [
        ("delay", waiting),
        *[("delay", Metric(f"odradek_delay_{name}_total", text, "counter", _one(read))) for name, text, read in rows],
    ]


def _one(read: Callable[[], float]) -> Callable[[], Mapping[tuple[str, ...], float]]:
    return lambda: {(): read()}
