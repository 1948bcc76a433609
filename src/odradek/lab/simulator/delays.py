"""Shell: the scenario `delays`: records that are seen later, on three brokers that crash, stand still, lose each other.

Records have due times from a millisecond to some seconds ahead, others none; a consumer reads what is committed. In the
end each record that was acknowledged is seen once, never before it is due, in order, and nothing of what was aborted;
and no replica knows of anything that waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import trio

from odradek.client import NewTopic
from odradek.kernel.delay.headers import DELAYED_FROM, DELIVER_AT

from .delay_oracle import DelayOracle, Later, Seen
from .reading import read_on, read_records, text_of
from .runs import Run, Scenario, main_of
from .seeds import between, is_chosen
from .waiting_load import COMMITTED, WaitingLoad

if TYPE_CHECKING:
    from random import Random

    from odradek.client.admin import Admin
    from odradek.client.delivery import OnDelivery
    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer

TOPIC: Final = "later"
AHEAD_MS: Final = (2, 50, 2_000, 20_000)
"""What the longest delay of a turn is drawn from."""
QUIET_S: Final = 60 + max(AHEAD_MS) // 1000
"""After so long all is due, and what nobody ended has been aborted."""


class Delays(WaitingLoad[Later]):
    """One run of the scenario."""

    topics: ClassVar = (TOPIC,)

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._oracle = DelayOracle()
        super().__init__(run, nursery, self._oracle)

    async def _make_topics(self, admin: Admin) -> None:
        configs = {"odradek.delay.enable": "true", **self._of_topics}
        await admin.create_topic(NewTopic(TOPIC, self._plan.partitions, configs=configs))

    def _delivered_count(self) -> int:
        return self._oracle.delivered_count

    def _records(self, name: str, source: Random, transaction: str) -> list[Later]:
        now_ms = self._cluster.client_machine(name).clock.now_ms()
        ahead_ms = source.choice(AHEAD_MS)
        return [
            Later(
                f"{name}/{next(self._numbers)}",
                source.randrange(self._plan.partitions),
                now_ms + between(source, 1, ahead_ms) if is_chosen(source, 0.8) else 0,
                transaction,
            )
            for _ in range(1 + between(source, 0, 8))
        ]

    async def _enqueue(self, producer: Producer, record: Later, on_delivery: OnDelivery | None = None) -> None:
        headers = [(DELIVER_AT, b"%d" % record.due_ms)] if record.due_ms else []
        await producer.enqueue(
            TOPIC, record.value, partition=record.partition, headers=headers, on_delivery=on_delivery
        )

    async def _consume(self) -> None:
        clock = self._cluster.client_machine("consumer-1").clock

        def read(record: ConsumerRecord) -> None:
            self._oracle.read(record.partition, _seen(record), clock.now_ms())

        await read_on(self._cluster, "consumer-1", TOPIC, self._plan.partitions, COMMITTED, read)

    async def _check(self) -> None:
        """Read everything from the beginning, once all is due and what is underway has arrived."""
        await trio.sleep(QUIET_S)
        await self._accidents.wait_in_sync()
        _, found = await read_records(self._cluster, "reader", TOPIC, self._plan.partitions, COMMITTED)
        for partition, records in found.items():
            self._oracle.check_log(partition, [_seen(record) for record in records])
        self._check_nothing_waits()


def _seen(record: ConsumerRecord) -> Seen:
    origin = dict(record.headers).get(DELAYED_FROM)
    return Seen(
        record.offset,
        text_of(record.value),
        record.timestamp,
        None if origin is None else int(origin.partition(b":")[2]),
    )


DELAYS: Final = Scenario(
    "delays",
    "three brokers: records are seen later, once, never early, while brokers crash, stand still and lose each other",
    main_of(Delays),
    (
        "crashes of a leader while records wait",
        "process crashes",
        "pauses",
        "transactions, aborted",
        "transactions, committed",
    ),
)
