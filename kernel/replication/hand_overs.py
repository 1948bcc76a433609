"""Shell: leaders that were voted for hand over to the preferred replica, when they are asked to (ElectLeaders).

    a broker that is asked ── EndQuorumEpoch of the leader's epoch, naming the preferred ──> the leader's broker
    the leader resigns ── EndQuorumEpoch, as ever, the preferred first ──> voters ──> the preferred stands, and wins

The leader is asked by the message with which it would resign, so it knows in which epoch that was meant. It refuses
where the preferred replica lacks records, for then another one would be voted for. Who leads afterwards the voters
decide all the same: what is answered is who leads by the metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from ..errors import ErrorCode, KafkaError, error_code
from ..machine.turnstile import take_turn
from ..metadata.image import NO_LEADER
from ..peers.errors import ClientError
from ..types import id_text
from ..wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest, PartitionData, ReplicaInfo, TopicData
from .vote_channels import PURPOSE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from ..contracts.election import PartitionState
    from ..metadata.published_image import PublishedImage
    from ..wire.message import Message
    from .fetcher import BrokerRequests
    from .voted_topics import VotedTopics
    from .voting_replicas import VotingReplicas

PARTITIONS_PER_TURN: Final = 100
NOT_NEEDED: Final = "Leader election not needed for topic partition."
NOT_AVAILABLE: Final = "The preferred leader was not available."
NOBODY_LEADS: Final = "The replicas of this partition are choosing a leader."
UNHEARD: Final = "The leader of this partition does not answer."
BEHIND: Final = "The preferred replica has not caught up, or the leader has changed."
ANOTHER: Final = "Another replica was voted for."
LATE: Final = "The replicas of this partition have chosen no leader in time."


class Outcome(NamedTuple):
    """What became of one partition's election."""

    code: ErrorCode
    message: str | None = None


class _Place(NamedTuple):
    """A partition, and its state when it was asked for."""

    topic: str
    topic_id: UUID
    partition: int
    state: PartitionState


_UNAVAILABLE: Final = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE


class HandOvers:
    """Owned by the broker; any task may call. It keeps nothing from one call to the next.

    Attributes:
        topics: Whose replicas vote.
    """

    def __init__(
        self,
        broker_id: int,
        topics: VotedTopics,
        voting: VotingReplicas,
        brokers: BrokerRequests,
        published: PublishedImage,
    ) -> None:
        """Make it.

        Args:
            broker_id: This broker.
            topics: Whose replicas vote.
            voting: The elections of this broker.
            brokers: The way to other brokers.
            published: The newest metadata and configuration.
        """
        self._broker_id = broker_id
        self.topics = topics
        self._voting = voting
        self._brokers = brokers
        self._published = published

    def voted(self, wanted: Iterable[tuple[str, int]]) -> frozenset[tuple[str, int]]:
        """Return those of some partitions whose replicas vote."""
        return frozenset(each for each in wanted if self._find(*each) is not None)

    async def led_for_others(self, leader_id: int) -> list[tuple[str, int]]:
        """Return the partitions that a broker leads while their preferred replica is another one, which is alive."""
        found = []
        for number, (name, partition) in enumerate(self._all(), 1):
            if number % PARTITIONS_PER_TURN == 0:
                await take_turn()
            place = self._find(name, partition)
            if place is not None and place.state.leader == leader_id and _settled(place.state) is None:
                found.append((name, partition))
        return found

    async def elect(self, wanted: Iterable[tuple[str, int]] | None, timeout_ms: int) -> dict[tuple[str, int], Outcome]:
        """Have the preferred replicas lead, and return what became of each partition whose replicas vote.

        Of others, and of what there is not, nothing is returned. Cancelled: leaders that were asked may have resigned.

        Args:
            wanted: Topics and partitions; None: wherever another one leads, and then alone those are told.
            timeout_ms: How long it may take.
        """
        outcomes: dict[tuple[str, int], Outcome] = {}
        asked: dict[int, list[_Place]] = {}
        for number, (name, partition) in enumerate(self._all() if wanted is None else wanted, 1):
            if number % PARTITIONS_PER_TURN == 0:
                await take_turn()
            place = self._find(name, partition)
            if place is None:
                continue
            outcome = _settled(place.state)
            if outcome is None:
                asked.setdefault(place.state.leader, []).append(place)
            elif wanted is not None or outcome.code is not ErrorCode.ELECTION_NOT_NEEDED:
                outcomes[name, partition] = outcome
        with trio.move_on_after(max(timeout_ms, 0) / 1000):
            async with trio.open_nursery() as nursery:
                for leader_id, places in asked.items():
                    nursery.start_soon(self._hand_over, leader_id, places, outcomes)
        late = Outcome(ErrorCode.REQUEST_TIMED_OUT, LATE)
        for place in (place for places in asked.values() for place in places):
            outcomes.setdefault((place.topic, place.partition), late)
        return outcomes

    def _all(self) -> Iterable[tuple[str, int]]:
        for name in list(self.topics.names()):
            topic = self.topics.find(name)
            for partition in range(len(topic.partitions) if topic is not None else 0):
                yield name, partition

    def _find(self, name: str, partition: int) -> _Place | None:
        topic = self.topics.find(name)
        if topic is None or not 0 <= partition < len(topic.partitions):
            return None
        return _Place(name, topic.topic_id, partition, topic.partitions[partition])

    async def _hand_over(self, leader_id: int, places: list[_Place], outcomes: dict[tuple[str, int], Outcome]) -> None:
        """Ask one leader's broker, and wait until others lead where it has agreed."""
        codes = await self._ask(leader_id, places)
        handed = []
        for place in places:
            code = codes.get((place.topic_id, place.partition))
            if code is ErrorCode.NONE:
                handed.append(place)
            else:
                outcomes[place.topic, place.partition] = Outcome(_UNAVAILABLE, UNHEARD if code is None else BEHIND)
        while handed:
            changed = trio.Event()
            with self._published.telling(changed.set):
                handed = [place for place in handed if not self._is_over(place, outcomes)]
                if handed:
                    await changed.wait()

    async def _ask(self, leader_id: int, places: list[_Place]) -> dict[tuple[UUID, int], ErrorCode]:
        """Return what a leader's broker answers, by topic id and partition."""
        request = _request(places, self._published.image.cluster_id)
        try:
            answer = await self._request(leader_id, request)
        except (ClientError, KafkaError):
            return {}
        by_text = {id_text(place.topic_id): place.topic_id for place in places}
        return {
            (by_text[topic.topic_name], item.partition_index): error_code(item.error_code)
            for topic in answer.topics
            for item in topic.partitions
            if topic.topic_name in by_text
        }

    async def _request(self, leader_id: int, request: Message) -> Any:
        if leader_id == self._broker_id:
            return await self._voting.answer(request)
        timeout_ms = self._published.config.get_int("controller.quorum.request.timeout.ms")
        return await self._brokers.request(leader_id, request, timeout_ms=timeout_ms, purpose=PURPOSE)

    def _is_over(self, place: _Place, outcomes: dict[tuple[str, int], Outcome]) -> bool:
        """Take note of who leads now, and return whether that is decided."""
        now = self._find(place.topic, place.partition)
        if now is None:
            outcomes[place.topic, place.partition] = Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return True
        if now.state.leader == NO_LEADER or now.state.leader_epoch == place.state.leader_epoch:
            return False
        is_preferred = now.state.leader == place.state.replicas[0]
        outcomes[place.topic, place.partition] = (
            Outcome(ErrorCode.NONE) if is_preferred else Outcome(_UNAVAILABLE, ANOTHER)
        )
        return True


def _settled(state: PartitionState) -> Outcome | None:
    """Return why there is nothing to ask a leader for, None where there is."""
    preferred = state.replicas[0]
    if state.leader == preferred:
        return Outcome(ErrorCode.ELECTION_NOT_NEEDED, NOT_NEEDED)
    if state.leader == NO_LEADER:
        return Outcome(_UNAVAILABLE, NOBODY_LEADS)
    return None if preferred in state.isr else Outcome(_UNAVAILABLE, NOT_AVAILABLE)


def _request(places: list[_Place], cluster_id: str) -> EndQuorumEpochRequest:
    topics: dict[UUID, TopicData] = {}
    for place in places:
        preferred = place.state.replicas[0]
        item = PartitionData(
            partition_index=place.partition,
            leader_id=place.state.leader,
            leader_epoch=place.state.leader_epoch,
            preferred_successors=[preferred],
            preferred_candidates=[ReplicaInfo(candidate_id=preferred)],
        )
        topics.setdefault(place.topic_id, TopicData(topic_name=id_text(place.topic_id))).partitions.append(item)
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=list(topics.values()))
