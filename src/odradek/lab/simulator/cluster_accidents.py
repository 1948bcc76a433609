"""Shell: what befalls several brokers, one at a time: they crash, and lose each other; the controller's broker stays.

A scenario says what comes when, and lets the replicas catch up in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.kernel.types import TopicPartition

from .faults import DOWN_NS_MAX, Crash, arm, kind_of, outlast
from .seeds import between, is_chosen
from .world import MILLISECOND, SECOND, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from random import Random

    from odradek.testing.faults import PowerLoss

    from .cluster import BrokerHost, Cluster
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
    ) -> None:
        """Be ready for them.

        Args:
            run: Where they are counted.
            cluster: Where they happen.
            source: Where they are drawn from.
            topics: Those that must be there before anything is in sync.
            on_crash: Told of each crash, as it happens: whose, and what its loss of power leaves.
            has_power_losses: Whether machines may lose their power, or only processes die.
        """
        self._run = run
        self._cluster = cluster
        self._random = source
        self._topics = topics
        self._on_crash = on_crash
        self._has_power_losses = has_power_losses

    async def crash(self) -> None:
        """Crash a broker, and start it anew; return when it serves."""
        brokers = self._cluster.brokers
        victim = brokers[self._random.choice([number for number in brokers if number != CONTROLLER])]
        crash = Crash.drawn(self._random)
        if not self._has_power_losses:
            crash = attrs.evolve(crash, style=None)

        def crashed(style: PowerLoss | None) -> None:
            self._run.count("crashes")
            self._run.count(kind_of(style))
            self._on_crash(victim, style)

        await outlast(arm(self._cluster.world, victim, crash, crashed), victim, crash)
        victim.start()
        await victim.wait_serving()

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
            while self._behind():  # noqa: ASYNC110 - the world tells nobody what happens in it
                await trio.sleep(0.1)
            return
        what = {str(place): self._replicas(place) for place in self._behind()}
        raise SimulationError(f"the replicas are not in sync after {CATCH_UP_S_MAX} s: {what}")

    def _behind(self) -> list[TopicPartition]:
        """Return what is not in sync; the first partition of a topic that is not there yet."""
        controller = self._cluster.brokers[CONTROLLER].broker
        assert controller is not None, "the controller's broker stays"
        topics = controller.parts.published.image.topics_by_name
        missing = [TopicPartition(name, 0) for name in self._topics if name not in topics]
        return missing + [
            TopicPartition(topic.name, number)
            for topic in topics.values()
            for number, state in enumerate(topic.partitions)
            if len(state.isr) < len(self._cluster.brokers)
        ]

    def _replicas(self, place: TopicPartition) -> list[object]:
        return [
            host.broker.parts.logs.replicas.find(*place) if host.broker is not None else None
            for host in self._cluster.brokers.values()
        ]
