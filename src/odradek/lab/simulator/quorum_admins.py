"""Shell: what admins do in a run of `quorum`: topics are made, changed, widened and deleted; voters come and go.

Each is a client that is made anew now and then.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import trio

from odradek.client import NewTopic
from odradek.client.admin_values import ResourceType
from odradek.client.errors import BrokerError
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.errors import ClientError

from .cluster import CONTROLLER_PORT
from .metadata_oracle import SeenTopic
from .seeds import WORKLOAD, between, is_chosen
from .world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from random import Random
    from uuid import UUID

    from odradek.client.admin import Admin
    from odradek.kernel.broker import Broker

    from .cluster import Cluster
    from .metadata_oracle import MetadataOracle
    from .quorum_oracle import QuorumOracle, Voter
    from .quorum_watch import QuorumWatch
    from .runs import Run

SETTING: Final = "retention.ms"
SETTING_UNIT: Final = 1 << 40
"""So that nothing is deleted for it."""
LOOK_S: Final = 0.005
AGAIN_S: Final = 1.0
"""So long after a change of the voters that was not made it is asked for again."""


class QuorumAdmins:
    """Everybody who administers a run's cluster."""

    def __init__(
        self, run: Run, cluster: Cluster, watch: QuorumWatch, quorum: QuorumOracle, oracle: MetadataOracle
    ) -> None:
        """Be ready.

        Args:
            run: Where it is counted.
            cluster: Which.
            watch: Of its nodes.
            quorum: Knows who votes.
            oracle: Told of what is asked and answered of topics.
        """
        self._run, self._cluster, self._watch, self._quorum, self._oracle = run, cluster, watch, quorum, oracle
        self._names = itertools.count(1)

    # -- topics ------------------------------------------------------------------------------------------------------

    async def make(self, topic: str, partitions: int) -> None:
        """Make a topic.

        Raises:
            ClientError: Nobody has answered that it is there.
        """
        async with self._cluster.admin("admin") as admin:
            await self._make(admin, topic, partitions)

    async def make_next(self) -> None:
        """Make a topic that nobody else has to do with.

        Raises:
            ClientError: Nobody has answered that it is there.
        """
        await self.make(f"p{next(self._names)}", 1)

    async def administer(self, name: str, turns: Iterator[int]) -> None:
        """Ask for one thing after the other, each time of a topic of its own.

        Args:
            name: Who asks.
            turns: After each turn it pauses for so many nanoseconds at most.
        """
        source = self._run.world.seeds.stream(WORKLOAD, name)
        is_over = False
        while not is_over:
            async with self._cluster.admin(name) as admin:
                is_over = await self._ask_on(admin, name, turns, source)

    async def _ask_on(self, admin: Admin, name: str, turns: Iterator[int], source: Random) -> bool:
        """Ask by one client, until it is time for another one; return whether there are no more turns."""
        for pause_ns_max in turns:
            try:
                await self._ask(admin, f"t{next(self._names)}", source)
            except ClientError as error:
                self._run.count("not answered")
                self._run.world.note("not answered", name, type(error).__name__)
            await trio.sleep(between(source, MILLISECOND, pause_ns_max) / SECOND)
            if is_chosen(source, 0.3):
                return False
        return True

    async def _make(self, admin: Admin, topic: str, partitions: int) -> None:
        self._oracle.creation_asked(topic, partitions)
        topic_id: UUID | None = None
        try:
            topic_id = (await admin.create_topic(NewTopic(topic, partitions))).topic_id
        except BrokerError as error:
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            self._run.count("made by a try that was not answered")  # nobody else gives such names
            topic_id = self._id_of(topic)
        self._oracle.created(topic, topic_id)

    async def _ask(self, admin: Admin, topic: str, source: Random) -> None:
        oracle, partitions = self._oracle, 1 + source.randrange(2)
        await self._make(admin, topic, partitions)
        for number in range(1, 1 + source.randrange(3)):
            oracle.setting_asked(topic, number)
            await admin.alter_configs(ResourceType.TOPIC, topic, {SETTING: str(number * SETTING_UNIT)})
            oracle.setting_answered(topic)
        if is_chosen(source, 0.3):
            oracle.growth_asked(topic, partitions + 1)
            await admin.create_partitions(topic, partitions + 1)
            oracle.grown(topic)
        if is_chosen(source, 0.5):
            oracle.deletion_asked(topic)
            await admin.delete_topic(topic)
            oracle.deleted(topic)

    def _id_of(self, topic: str) -> UUID | None:
        """Return the id of a topic that is there, as a node knows it; None where none that serves knows of it yet."""
        for host in self._cluster.brokers.values():
            if host.broker is not None and host.broker.is_serving:
                found = host.broker.parts.published.image.topics_by_name.get(topic)
                if found is not None:
                    return found.topic_id
        return None

    # -- voters ------------------------------------------------------------------------------------------------------

    async def remove_voter(self, voter: Voter) -> None:
        """Have somebody vote no more, however often that has to be asked for."""

        async def remove(admin: Admin) -> None:
            await admin.remove_raft_voter(voter.node_id, voter.directory_id)

        await self._operate(remove, lambda: self._votes(voter) is False)
        self._run.count("voters removed")

    async def add_voter(self, node_id: int) -> None:
        """Have a node vote from the directory that it has, however often that has to be asked for."""

        async def add(admin: Admin) -> None:
            voter = self._watch.voter(node_id)
            if voter is not None:
                listener = ("CONTROLLER", f"broker-{node_id}", CONTROLLER_PORT)
                await admin.add_raft_voter(node_id, voter.directory_id, [listener])

        await self._operate(add, lambda: self._votes(self._watch.voter(node_id)) is True)
        self._run.count("voters added")

    def _votes(self, voter: Voter | None) -> bool | None:
        """Return whether somebody votes, None where that is not known."""
        voters = self._quorum.voters
        return None if voters is None or voter is None else voter in voters

    async def _operate(self, change: Callable[[Admin], Awaitable[None]], is_done: Callable[[], bool]) -> None:
        while not is_done():
            async with self._cluster.admin("operator") as admin:
                try:
                    await change(admin)
                except ClientError as error:
                    self._run.count("changes of voters, not answered or refused")
                    self._run.world.note("voters not changed", type(error).__name__)
                else:
                    return
            with trio.move_on_after(AGAIN_S):
                while not is_done():  # noqa: ASYNC110 - the world tells nobody what happens in it
                    await trio.sleep(LOOK_S)


def topics_of(broker: Broker) -> dict[str, SeenTopic]:
    """Return the topics as a node's metadata has them."""
    image = broker.parts.published.image
    found = {}
    for topic in image.topics_by_name.values():
        setting = int(image.topic_config(topic.name).get(SETTING, "0")) // SETTING_UNIT
        found[topic.name] = SeenTopic(topic.topic_id, len(topic.partitions), setting)
    return found
