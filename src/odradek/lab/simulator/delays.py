"""Shell: the scenario `delays`: records that are seen later, on three brokers that crash, stand still, lose each other.

Producers, one of them in transactions, send records with due times from a millisecond to some seconds ahead, and others
without; a consumer reads what is committed. The next accident comes when every replica has caught up. Then each record
that was acknowledged is seen once, never before it is due, in order, and nothing of what was aborted; and in the end
no replica knows of anything that waits. Settings of delays, as `odradek.delay.queue`, are set on the topic.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.client import NewTopic
from odradek.client.errors import TransactionAbortableError
from odradek.kernel.delay.headers import DELAYED_FROM, DELIVER_AT
from odradek.kernel.peers.errors import ClientError

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .committing import commit
from .delay_oracle import DelayOracle, Later, Seen
from .oracle import PromiseBrokenError
from .pace import Pace
from .promises import losses_of, votes_in
from .reading import read_on, read_records, text_of
from .runs import Run, Scenario, main_of
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from random import Random

    from odradek.client.delivery import OnDelivery, RecordMetadata
    from odradek.client.fetched_records import ConsumerRecord
    from odradek.client.producer import Producer
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost

TOPIC: Final = "later"
DELAY_KEYS: Final = "odradek.delay."
COMMITTED: Final = {"isolation.level": "read_committed"}
TURNS_MIN: Final = 15
"""How often each producer sends at least once the accidents are over."""
HASTE: Final = 60
"""So many turns after an accident has begun or ended producers take their time."""
LOOK_S: Final = 0.001
"""So often somebody looks whether records are on their way: then an accident may come."""
AHEAD_MS: Final = (2, 50, 2_000, 20_000)
"""What the longest delay of a turn is drawn from."""
QUIET_S: Final = 60 + max(AHEAD_MS) // 1000
"""After so long all is due, and what nobody ended has been aborted."""


@attrs.frozen
class Plan:
    """What was drawn for a run."""

    partitions: int
    accidents: int
    far_ns: int
    pause_ns_max: int
    is_flushed: bool

    @classmethod
    def drawn(cls, source: Random) -> Plan:
        """Draw one."""
        return cls(
            partitions=1 + source.randrange(2),
            accidents=1 + source.randrange(3),
            far_ns=source.choice((MILLISECOND, 20 * MILLISECOND)),
            pause_ns_max=source.choice((100 * MILLISECOND, 300 * MILLISECOND, SECOND)),
            is_flushed=is_chosen(source, 0.3),
        )


class Delays:
    """One run of the scenario."""

    def __init__(self, run: Run, nursery: trio.Nursery) -> None:
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._oracle = DelayOracle()
        self._cluster = Cluster(run.world, nursery)
        own = {"log.flush.interval.messages": "1"} if plan.is_flushed else {}
        of_topic, of_brokers = _split(run.settings)
        self._topic_configs = {"odradek.delay.enable": "true", **of_topic}
        self._cluster.add_brokers(3, {**SETTINGS, **own, **of_brokers})
        self._cluster.set_apart(self._faults.choice([*self._cluster.brokers]), plan.far_ns)
        self._accidents = ClusterAccidents(run, self._cluster, self._faults, {TOPIC}, self._on_crash)
        self._pace = Pace(HASTE, plan.pause_ns_max)
        self._numbers = itertools.count()
        self._are_accidents_over = False

    async def run(self) -> None:
        """Let everything happen, then check."""
        await self._cluster.start()
        async with self._cluster.admin("admin") as admin:
            await admin.create_topic(NewTopic(TOPIC, self._plan.partitions, configs=self._topic_configs))
        await self._accidents.wait_in_sync()
        async with trio.open_nursery() as readers:
            readers.start_soon(self._consume)
            async with trio.open_nursery() as writers:
                writers.start_soon(self._produce, "producer-1", self._send)
                writers.start_soon(self._produce, "producer-2", self._transact)
                writers.start_soon(self._have_accidents)
            await self._check()
            readers.cancel_scope.cancel()
        self._run.count("acknowledged", self._oracle.acknowledged_count)
        self._run.count("delivered", self._oracle.delivered_count)
        self._run.require("accidents", "acknowledged", "delivered")
        await self._cluster.stop()

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        accidents = self._accidents
        for _ in range(self._plan.accidents):
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            befall = self._faults.choice((accidents.crash, self._crash_several, accidents.cut, accidents.pause))
            self._pace.hurry()
            while not self._oracle.open_count:  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(LOOK_S)
            await befall()
            self._pace.hurry()
            self._run.count("accidents")
            await accidents.wait_in_sync()
        self._are_accidents_over = True

    async def _crash_several(self) -> None:
        losses = losses_of(2, is_flushed=self._plan.is_flushed, votes=votes_in(self._run.settings))
        await self._accidents.crash_several(losses.deaths_max, losses.power_losses_max)

    def _on_crash(self, victim: BrokerHost, _style: PowerLoss | None) -> None:
        if victim.leads({TOPIC}):
            self._run.count("crashes of a leader")
            if _waiting_count(victim):
                self._run.count("crashes of a leader while records wait")

    # -- producers ---------------------------------------------------------------------------------------------------

    async def _produce(self, name: str, send: Callable[[Producer, str, Random], Awaitable[None]]) -> None:
        settings: dict[str, object] = {
            "delivery.timeout.ms": 60_000,
            "enable.idempotence": True,
            "linger.ms": 0,
            "request.timeout.ms": 5_000,
        }
        if send == self._transact:
            settings |= {"transactional.id": name, "transaction.timeout.ms": 20_000, "max.block.ms": 60_000}
        source = self._run.world.seeds.stream(WORKLOAD, name)
        turns = 0
        while True:
            try:
                async with self._cluster.producer(name, settings) as producer:
                    while not (self._are_accidents_over and turns >= TURNS_MIN):
                        turns += self._are_accidents_over
                        await send(producer, name, source)
                        await trio.sleep(between(source, MICROSECOND, self._pace.pause_ns_max()) / SECOND)
                    return
            except ClientError as error:
                self._run.count("producers that gave up")
                self._run.world.note("gave up", name, type(error).__name__)
                await trio.sleep(0.1)

    def _records(self, name: str, source: Random, transaction: str = "") -> list[Later]:
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

    async def _send(self, producer: Producer, name: str, source: Random) -> None:
        for record in self._records(name, source):
            self._oracle.sent(record)
            try:
                await self._enqueue(producer, record, self._on_delivery(record))
            except ClientError:
                self._oracle.given_up([record])
                raise

    def _on_delivery(self, record: Later) -> OnDelivery:
        def told(metadata: RecordMetadata | None, _error: ClientError | None) -> None:
            (self._oracle.given_up if metadata is None else self._oracle.acknowledged)([record])

        return told

    async def _transact(self, producer: Producer, name: str, source: Random) -> None:
        """Make one transaction; raises when nobody knows what became of it."""
        records = self._records(name, source, f"{name}/{next(self._numbers)}")
        for record in records:
            self._oracle.sent(record)
        ended = self._oracle.given_up
        try:
            await producer.begin_transaction()
            for record in records:
                await self._enqueue(producer, record)
            if is_chosen(source, 0.2):
                await producer.abort_transaction()
                ended = self._oracle.aborted
                self._run.count("transactions, aborted")
            else:
                await commit(producer)
                ended = self._oracle.acknowledged
                self._run.count("transactions, committed")
        except TransactionAbortableError:
            await producer.abort_transaction()
            ended = self._oracle.aborted
        finally:
            ended(records)

    # -- readers -----------------------------------------------------------------------------------------------------

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
        for host in self._cluster.brokers.values():
            if count := _waiting_count(host):
                raise PromiseBrokenError("over", f"{host.host.name} says that {count} records wait, and all were due")


def _split(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what is set of the topic's delays, and what of brokers: the former have no default there."""
    of_topic = {key: value for key, value in settings.items() if key.startswith(DELAY_KEYS)}
    return of_topic, {key: value for key, value in settings.items() if key not in of_topic}


def _seen(record: ConsumerRecord) -> Seen:
    origin = dict(record.headers).get(DELAYED_FROM)
    return Seen(
        record.offset,
        text_of(record.value),
        record.timestamp,
        None if origin is None else int(origin.partition(b":")[2]),
    )


def _waiting_count(host: BrokerHost) -> int:
    """Return how many records wait in all replicas of a broker that lives."""
    assert host.broker is not None, "it lives"
    ledgers = [
        replica.delays
        for replica in host.broker.parts.logs.replicas
        if replica.topic_partition.topic == TOPIC and replica.delays is not None
    ]
    return sum(ledger.queue.waiting_count + ledger.open_count for ledger in ledgers)


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
