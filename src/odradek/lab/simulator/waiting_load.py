"""Shell: what scenarios of records that wait have in common: producers, and three brokers to which accidents happen.

Producers, one of them in transactions, send records that wait, and somebody reads what comes. The next accident comes
when every replica has caught up. In the end all is due, and what must be true is checked. Settings of delays, as
`odradek.delay.queue`, are set on the topics in which records wait.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final, Generic, Protocol, TypeVar

import attrs
import trio

from odradek.client.errors import TransactionAbortableError
from odradek.kernel.peers.errors import ClientError

from .cluster import Cluster
from .cluster_accidents import SETTINGS, ClusterAccidents
from .committing import commit
from .oracle import PromiseBrokenError
from .pace import Pace
from .promises import losses_of, votes_in
from .seeds import FAULTS, WORKLOAD, between, is_chosen
from .world import MICROSECOND, MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from random import Random

    from odradek.client.admin import Admin
    from odradek.client.delivery import OnDelivery, RecordMetadata
    from odradek.client.producer import Producer
    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost
    from .runs import Run

R = TypeVar("R")
Told = TypeVar("Told", contravariant=True)

DELAY_KEYS: Final = "odradek.delay."
COMMITTED: Final = {"isolation.level": "read_committed"}
TURNS_MIN: Final = 15
"""How often each producer sends at least once the accidents are over."""
HASTE: Final = 60
"""So many turns after an accident has begun or ended producers take their time."""
LOOK_S: Final = 0.001
"""So often somebody looks whether records are on their way: then an accident may come."""


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


class Fates(Protocol[Told]):
    """Who is told what becomes of records, and says later whether that may be.

    Attributes:
        acknowledged_count: How many records were acknowledged, or committed.
        open_count: How many were sent and have no fate yet.
    """

    acknowledged_count: int
    open_count: int

    def sent(self, record: Told, /) -> None:
        """Note that a record is on its way."""
        ...

    def given_up(self, records: Iterable[Told], /) -> None:
        """Note that nobody knows what became of records."""
        ...

    def acknowledged(self, records: Iterable[Told], /) -> None:
        """Note that records were acknowledged, or their transaction committed."""
        ...

    def aborted(self, records: Iterable[Told], /) -> None:
        """Note that the transaction of records was aborted."""
        ...


class WaitingLoad(ABC, Generic[R]):
    """One run of a scenario.

    Attributes:
        topics: Those in which records wait, or come from there.
    """

    topics: ClassVar[tuple[str, ...]]

    def __init__(self, run: Run, nursery: trio.Nursery, fates: Fates[R]) -> None:
        """Be ready for it; `fates` is told of all that is sent."""
        self._run = run
        self._faults = run.world.seeds.stream(FAULTS, "brokers")
        self._plan = plan = Plan.drawn(run.world.seeds.stream(WORKLOAD))
        run.world.note("plan", *attrs.astuple(plan))
        self._fates = fates
        self._cluster = Cluster(run.world, nursery)
        own = {"log.flush.interval.messages": "1"} if plan.is_flushed else {}
        self._of_topics, of_brokers = _split(run.settings)
        self._cluster.add_brokers(3, {**SETTINGS, **own, **of_brokers})
        self._cluster.set_apart(self._faults.choice([*self._cluster.brokers]), plan.far_ns)
        self._accidents = ClusterAccidents(run, self._cluster, self._faults, {*self.topics}, self._on_crash)
        self._pace = Pace(HASTE, plan.pause_ns_max)
        self._numbers = itertools.count()
        self._are_accidents_over = False

    async def run(self) -> None:
        """Let everything happen, then check."""
        await self._cluster.start()
        async with self._cluster.admin("admin") as admin:
            await self._make_topics(admin)
        await self._accidents.wait_in_sync()
        async with trio.open_nursery() as readers:
            readers.start_soon(self._consume)
            async with trio.open_nursery() as writers:
                writers.start_soon(self._produce, "producer-1", self._send)
                writers.start_soon(self._produce, "producer-2", self._transact)
                writers.start_soon(self._have_accidents)
            await self._check()
            readers.cancel_scope.cancel()
        self._run.count("acknowledged", self._fates.acknowledged_count)
        self._run.count("delivered", self._delivered_count())
        self._run.require("accidents", "acknowledged", "delivered")
        await self._cluster.stop()

    # -- accidents ---------------------------------------------------------------------------------------------------

    async def _have_accidents(self) -> None:
        accidents = self._accidents
        for _ in range(self._plan.accidents):
            await trio.sleep(between(self._faults, MILLISECOND, 5 * SECOND) / SECOND)
            befall = self._faults.choice((accidents.crash, self._crash_several, accidents.cut, accidents.pause))
            self._pace.hurry()
            while not self._fates.open_count:  # noqa: ASYNC110 - the world tells nobody what happens in it
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
        if victim.leads(self.topics):
            self._run.count("crashes of a leader")
            if self._waiting_count(victim):
                self._run.count("crashes of a leader while records wait")

    # -- producers ---------------------------------------------------------------------------------------------------

    async def _produce(self, name: str, send: Callable[[Producer, str, Random], Awaitable[None]]) -> None:
        settings = producer_settings(name if send == self._transact else "")
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

    async def _send(self, producer: Producer, name: str, source: Random) -> None:
        for record in self._records(name, source, ""):
            self._fates.sent(record)
            try:
                await self._enqueue(producer, record, self._on_delivery(record))
            except ClientError:
                self._fates.given_up([record])
                raise

    def _on_delivery(self, record: R) -> OnDelivery:
        def told(metadata: RecordMetadata | None, _error: ClientError | None) -> None:
            (self._fates.given_up if metadata is None else self._fates.acknowledged)([record])

        return told

    async def _transact(self, producer: Producer, name: str, source: Random) -> None:
        """Make one transaction; raises when nobody knows what became of it."""
        await self._transact_all(producer, self._records(name, source, f"{name}/{next(self._numbers)}"), source)

    async def _transact_all(self, producer: Producer, records: list[R], source: Random) -> bool:
        """Send records in one transaction; return whether it was committed, raise when nobody knows."""
        for record in records:
            self._fates.sent(record)
        ended = self._fates.given_up
        try:
            await producer.begin_transaction()
            for record in records:
                await self._enqueue(producer, record)
            if is_chosen(source, 0.2):
                await producer.abort_transaction()
                ended = self._fates.aborted
                self._run.count("transactions, aborted")
                return False
            await commit(producer)
            ended = self._fates.acknowledged
            self._run.count("transactions, committed")
        except TransactionAbortableError:
            await producer.abort_transaction()
            ended = self._fates.aborted
            return False
        else:
            return True
        finally:
            ended(records)

    # -- what a scenario has of its own ------------------------------------------------------------------------------

    @abstractmethod
    async def _make_topics(self, admin: Admin) -> None:
        """Make its topics."""

    @abstractmethod
    def _records(self, name: str, source: Random, transaction: str) -> list[R]:
        """Draw what a producer sends at once, of a transaction, or of none where that is empty."""

    @abstractmethod
    async def _enqueue(self, producer: Producer, record: R, on_delivery: OnDelivery | None = None) -> None:
        """Have a record sent."""

    @abstractmethod
    async def _consume(self) -> None:
        """Read what comes, until cancelled."""

    @abstractmethod
    async def _check(self) -> None:
        """Check everything, all writers being through; takes until all is due."""

    @abstractmethod
    def _delivered_count(self) -> int:
        """Return how many records were read that had waited."""

    def _check_nothing_waits(self) -> None:
        """See that no replica knows of anything that waits.

        Raises:
            PromiseBrokenError: One does.
        """
        for host in self._cluster.brokers.values():
            if count := self._waiting_count(host):
                raise PromiseBrokenError("over", f"{host.host.name} says that {count} records wait, and all were due")

    def _waiting_count(self, host: BrokerHost) -> int:
        """Return how many records wait in all replicas of a broker that lives."""
        assert host.broker is not None, "it lives"
        ledgers = [
            replica.delays
            for replica in host.broker.parts.logs.replicas
            if replica.topic_partition.topic in self.topics and replica.delays is not None
        ]
        return sum(ledger.queue.waiting_count + ledger.open_count for ledger in ledgers)


def _split(settings: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what is set of the topics' delays, and what of brokers: the former have no default there."""
    of_topics = {key: value for key, value in settings.items() if key.startswith(DELAY_KEYS)}
    return of_topics, {key: value for key, value in settings.items() if key not in of_topics}


def producer_settings(transactional_id: str) -> dict[str, object]:
    """Return how a producer is set, in transactions or, with no id, without."""
    settings: dict[str, object] = {
        "delivery.timeout.ms": 60_000,
        "enable.idempotence": True,
        "linger.ms": 0,
        "request.timeout.ms": 5_000,
    }
    if transactional_id:
        settings |= {
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 20_000,
            "max.block.ms": 60_000,
        }
    return settings
