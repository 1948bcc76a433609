"""Shell: what befalls several brokers: they crash, alone or at once, stand still, lose each other, tell wrong times.

A scenario says what comes when, and lets the replicas catch up in between.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from odradek.kernel.types import TopicPartition
from odradek.testing.faults import PowerLoss

from .faults import DOWN_NS_MAX, EVENTS, OPERATIONS, Crash, arm, kind_of, operations_on, outlast, when
from .oracle import PromiseBrokenError
from .seeds import between, is_chosen
from .world import MILLISECOND, SECOND, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from random import Random

    from odradek.kernel.broker import Broker
    from odradek.kernel.contracts.election import PartitionState

    from .cluster import BrokerHost, Cluster
    from .faults import Counted
    from .runs import Run

CONTROLLER: Final = 1
CATCH_UP_S_MAX: Final = 300
"""So long all replicas may take until they are in sync again."""
SETTINGS: Final = {
    "broker.session.timeout.ms": "9000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "10000",
}
"""Three brokers', of which any one may be lost."""
RATES: Final = (500, 900, 999, 1001, 1100, 2000)
"""How fast clocks go that go wrong, in thousandths."""
JUMP_EXPONENTS: Final = range(10, 26)
"""A wall clock is off by 2 ** n ms: nine hours at most, so that nothing is old enough to be deleted or forgotten."""
LOOK_S: Final = 0.02
SETTLED_S: Final = 16
"""Longer than `replica.lag.time.max.ms` and the time between two looks at it."""
ELECTION_S: Final = 10
"""So long after the end of who led, votes are given."""
VOTES: Final = operations_on("quorum-state", "quorum-state.tmp")
LONG_NS: Final = 12 * SECOND
"""After so long a broker that is not heard of leads no more."""


class ClusterAccidents:
    """Life: made; then each as often as you like, one after the other."""

    def __init__(
        self,
        run: Run,
        cluster: Cluster,
        source: Random,
        topics: Collection[str],
        on_crash: Callable[[BrokerHost, PowerLoss | None], None],
        *,
        has_power_losses: bool = True,
        spared: Collection[int] = (CONTROLLER,),
        all_topics: bool = True,
    ) -> None:
        """Be ready for them.

        Args:
            run: Where they are counted.
            cluster: Where they happen.
            source: Where they are drawn from.
            topics: Those that must be there before anything is in sync.
            on_crash: Told of each crash, as it happens: whose, and what its loss of power leaves.
            has_power_losses: Whether machines may lose their power, or only processes die.
            spared: Nodes that no crash befalls alone: the only one that has the controller.
            all_topics: Whether other topics than these are waited for, too: where none comes or goes meanwhile.
        """
        self._run = run
        self._cluster = cluster
        self._random = source
        self._topics = topics
        self._spared = spared
        self._all_topics = all_topics
        self._on_crash = on_crash
        self._has_power_losses = has_power_losses

    async def crash(self, victim: BrokerHost | None = None, *, replaces_disk: bool = False) -> None:
        """Crash a broker, any if none is named, and start it anew, on a new disk perhaps; return when it serves."""
        brokers = self._cluster.brokers
        victim = victim or brokers[self._random.choice([number for number in brokers if number not in self._spared])]
        crash = self._draw_crash()

        await outlast(arm(self._cluster.world, victim, crash, partial(self._crashed, victim)), victim, crash)
        if replaces_disk:
            victim.host.disk.replace()
        victim.start()
        await victim.wait_serving()

    async def crash_in_election(self, leader: BrokerHost, victim: BrokerHost) -> None:
        """Crash who leads a quorum, and somebody in the middle of the vote that follows; return when all serve.

        Args:
            leader: Who crashes first; it is soon there again, mostly.
            victim: Who crashes then as it keeps a vote, or another word of its quorum; the same one perhaps.
        """
        source = self._random
        first, then = self._draw_crash(), self._draw_crash((VOTES,))
        first = attrs.evolve(first, down_ns=between(source, MILLISECOND, SECOND))
        if is_chosen(source, 0.5):
            then = attrs.evolve(then, down_ns=between(source, MILLISECOND, SECOND))

        def crashed_then(style: PowerLoss | None) -> None:
            self._run.count("crashes in an election")
            self._crashed(victim, style)

        happened, has_fallen = arm(self._cluster.world, victim, then, crashed_then), trio.Event()
        self._crashed(leader, first.style)
        leader.crash(first.style)
        has_fallen.set()
        await outlast(has_fallen, leader, first)
        leader.start()
        with trio.move_on_after(ELECTION_S):
            await happened.wait()
        if happened.is_set():
            await outlast(happened, victim, then)
            victim.start()
        victim.host.disk.before_operation = lambda _path: None
        for broker in (leader, victim):
            await broker.wait_serving()

    def _crashed(self, victim: BrokerHost, style: PowerLoss | None) -> None:
        self._run.count("crashes")
        self._run.count(kind_of(style))
        self._on_crash(victim, style)

    def _draw_crash(self, choices: Sequence[Counted] = (EVENTS, OPERATIONS)) -> Crash:
        crash = Crash.drawn(self._random, choices)
        return crash if self._has_power_losses else attrs.evolve(crash, style=None)

    async def crash_several(self, deaths_max: int, power_losses_max: int) -> None:
        """Crash brokers at once, the controller's perhaps among them, and start each anew; return when all serve.

        Args:
            deaths_max: How many may die, >= 1.
            power_losses_max: How many may lose their power when all are in sync, >= 1. Where some partition has nobody
                else in sync at that moment, since one that stood still has just been told of, only one does.
        """
        source = self._random
        crash = self._draw_crash()
        victims = [*self._cluster.brokers.values()]
        source.shuffle(victims)
        count_max = deaths_max if crash.style is None else power_losses_max
        del victims[count_max if is_chosen(source, 0.7) else min(2, count_max) :]

        def crashed(style: PowerLoss | None) -> None:
            is_too_much = style is not None and power_losses_max < len(self._cluster.brokers)
            fall = victims[:1] if is_too_much and not self._leave_one_in_sync(victims) else victims
            self._run.count("crashes")
            self._run.count(f"{len(fall)} brokers at once: {kind_of(style)}")
            for victim in fall:
                self._on_crash(victim, style)
            for victim in fall[1:]:
                victim.crash(style)

        happened = arm(self._cluster.world, victims[0], crash, crashed)
        async with trio.open_nursery() as nursery:
            for victim in victims:
                own = attrs.evolve(crash, down_ns=between(source, MILLISECOND, DOWN_NS_MAX))
                nursery.start_soon(self._come_back, happened, victim, own)

    async def lose_power_while_others_are_away(self, while_one_max: int, while_two_max: int) -> None:
        """Let one broker or two stand still, and meanwhile others lose their power at once; return when all serve.

        Args:
            while_one_max: How many lose it at most while one stands still, >= 1.
            while_two_max: How many while two do; 0 if not even one may.
        """
        source = self._random
        followers = [broker for number, broker in self._cluster.brokers.items() if number != CONTROLLER]
        source.shuffle(followers)
        is_one = not while_two_max or is_chosen(source, 0.5)
        away = followers[: 1 if is_one else 2]
        victims = [broker for broker in self._cluster.brokers.values() if broker not in away]
        source.shuffle(victims)
        victims_max = while_one_max if is_one else while_two_max
        del victims[victims_max if is_chosen(source, 0.7) else 1 :]
        crash = attrs.evolve(Crash.drawn(source), style=source.choice([*PowerLoss]))
        happened = trio.Event()
        self._run.count("pauses", len(away))
        for broker in away:
            broker.pause()
        await trio.sleep(between(source, MILLISECOND, 2 * LONG_NS) / SECOND)
        self._run.count(f"power losses of {len(victims)} while {len(away)} stood still")
        for victim in victims:
            self._run.count("crashes")
            self._on_crash(victim, crash.style)
            victim.crash(crash.style)
        happened.set()
        async with trio.open_nursery() as nursery:
            for victim in victims:
                own = attrs.evolve(crash, down_ns=between(source, MILLISECOND, DOWN_NS_MAX))
                nursery.start_soon(self._come_back, happened, victim, own)
            for broker in away:
                await trio.sleep(between(source, MILLISECOND, DOWN_NS_MAX) / SECOND)
                broker.resume()

    async def _come_back(self, happened: trio.Event, victim: BrokerHost, crash: Crash) -> None:
        await happened.wait()
        if victim.broker is not None:
            return  # it was spared
        await outlast(happened, victim, crash)
        victim.start()
        await victim.wait_serving()

    async def pause(self) -> None:
        """Let a broker stand still in the middle of anything, as SIGSTOP does, and go on after a while."""
        source, brokers = self._random, [*self._cluster.brokers.values()]
        leaders = [broker for broker in brokers if broker.leads(self._topics)]
        victim = source.choice(leaders if is_chosen(source, 0.6) and leaders else brokers)
        moment = Crash.drawn(source)
        shortest_ns = source.choice((MILLISECOND, LONG_NS))

        def pause() -> None:
            self._run.count("pauses")
            if victim.leads(self._topics):
                self._run.count("pauses of a leader")
            victim.pause()

        await when(self._cluster.world, victim, moment.counted, moment.after, pause).wait()
        await trio.sleep(between(source, shortest_ns, 2 * DOWN_NS_MAX) / SECOND)
        victim.resume()

    async def skew(self) -> None:
        """Let one broker's clocks go wrong, and see that nobody minds; half of them stay wrong.

        Raises:
            PromiseBrokenError: A replica is in sync no more, or a broker fenced.
        """
        await self._wait_settled()
        source = self._random
        number = source.choice((CONTROLLER, *self._cluster.brokers))
        clock = self._cluster.brokers[number].host.clock
        rate, sign = source.choice(RATES), source.choice((-1, 1))
        clock.go_at(rate)
        clock.skew_ms = sign << source.choice(JUMP_EXPONENTS)
        self._run.count("clocks gone wrong")
        self._run.world.note("clocks", number, rate, clock.skew_ms)
        with trio.move_on_after(between(source, MILLISECOND, 2 * DOWN_NS_MAX) / SECOND):
            while True:
                await trio.sleep(LOOK_S)
                behind = self._behind()
                if behind:
                    what = f"the clocks of broker {number} are off by {clock.skew_ms} ms and go at {rate} / 1000"
                    raise PromiseBrokenError("calm", f"{what}, and {behind[0]} is not in sync everywhere")
        if is_chosen(source, 0.5):
            clock.go_at(1000)
            clock.skew_ms = 0

    async def cut(self) -> None:
        """Cut what one broker sends to another, or both ways, for a while."""
        network, source = self._cluster.network, self._random
        hosts = [broker.host.host for broker in self._cluster.brokers.values()]
        source.shuffle(hosts)
        one, other = hosts[:2]
        ways = [(one, other), (other, one)] if is_chosen(source, 0.5) else [(one, other)]
        self._run.count("cuts")
        for way in ways:
            network.cut(*way)
        await trio.sleep(between(source, MILLISECOND, 2 * DOWN_NS_MAX) / SECOND)
        for way in ways:
            network.heal(*way)

    async def wait_in_sync(self) -> None:
        """Wait until every replica of every partition is in sync.

        Raises:
            SimulationError: They take too long.
        """
        with trio.move_on_after(CATCH_UP_S_MAX):
            while self._behind(has_caught_up=True):  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(0.1)
            return
        what = {str(place): self._replicas(place) for place in self._behind(has_caught_up=True)}
        raise SimulationError(f"the replicas are not in sync after {CATCH_UP_S_MAX} s: {what}")

    async def _wait_settled(self) -> None:
        """Wait until what happened before has no consequences any more: who lagged behind has been told of, or not."""
        while True:
            await self.wait_in_sync()
            with trio.move_on_after(SETTLED_S) as passed:
                while not self._behind():  # noqa: ASYNC110 - the world tells nobody what happens in it
                    await trio.sleep(LOOK_S)
            if passed.cancelled_caught:
                return

    def _behind(self, *, has_caught_up: bool = False) -> list[TopicPartition]:
        """Return what is not in sync, or not known to all yet; the first partition of a topic that is not there.

        Args:
            has_caught_up: Whether those that vote have to have all that is committed at this moment; of them the
                in-sync set says no more than who lives.
        """
        topics = self._best_informed().parts.published.image.topics_by_name
        missing = [TopicPartition(name, 0) for name in self._topics if name not in topics]
        return missing + [
            TopicPartition(topic.name, number)
            for topic in topics.values()
            if self._all_topics or topic.name in self._topics
            for number, state in enumerate(topic.partitions)
            if self._is_behind(TopicPartition(topic.name, number), state, has_caught_up=has_caught_up)
        ]

    def _is_behind(self, place: TopicPartition, state: PartitionState, *, has_caught_up: bool) -> bool:
        replicas = [each for each in self._replicas(place) if each is not None]
        if len(state.isr) < len(self._cluster.brokers) or len(replicas) < len(self._cluster.brokers):
            return True
        return has_caught_up and replicas[0].voting is not None and not _have_caught_up(replicas, state)

    def _leave_one_in_sync(self, victims: Sequence[BrokerHost]) -> bool:
        """Return whether every partition has a replica in sync beside these: what is acknowledged is there, too.

        Also once the controller has taken what a leader has asked for, while it stood still itself, perhaps.
        """
        numbers = {number for number, host in self._cluster.brokers.items() if host in victims}
        topics = [
            topic
            for name, topic in self._best_informed().parts.published.image.topics_by_name.items()
            if self._all_topics or name in self._topics
        ]
        sets = [state.isr for topic in topics for state in topic.partitions]
        for place in (
            TopicPartition(topic.name, number) for topic in topics for number in range(len(topic.partitions))
        ):
            leaders = [each for each in self._replicas(place) if each is not None and each.is_leader]
            sets += [asked for each in leaders if (asked := getattr(each.election, "asked_isr", ()))]
        return not any(numbers.issuperset(isr) for isr in sets)

    def _best_informed(self) -> Broker:
        """Return the broker with the newest metadata."""
        living = (host.broker for host in self._cluster.brokers.values() if host.broker is not None)
        return max(living, key=lambda broker: broker.parts.published.image.offset)

    def _replicas(self, place: TopicPartition) -> list[Any]:
        return [
            host.broker.parts.logs.replicas.find(*place) if host.broker is not None else None
            for host in self._cluster.brokers.values()
        ]


def _have_caught_up(replicas: Sequence[Any], state: PartitionState) -> bool:
    """Say whether replicas that vote follow the leader that the metadata names, and have what is committed."""
    leader = next((each for each in replicas if each.is_leader and each.leader_epoch == state.leader_epoch), None)
    return leader is not None and all(
        each.leader_epoch == leader.leader_epoch and each.log.log_end_offset >= leader.high_watermark
        for each in replicas
    )
