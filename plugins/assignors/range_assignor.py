"""Pure core: `range`: of each topic every member gets a run of neighbouring partitions.

So members that read several topics with the same number of partitions get the same numbers of each, which joins need
(co-partitioning). Where a topic does not divide evenly the first members get one partition more.

    10 partitions over 3 members:   0 1 2 3 | 4 5 6 | 7 8 9

*Racks* (KIP-881). Where members and replicas tell their racks, and not every partition is in every rack, partitions
are first given to members that have a replica in their rack, without giving up the balance or the co-partitioning;
the rest is given in runs. Kafka's group coordinator gives its assignors no racks.

Equals Kafka's RangeAssignor (the client's; the server's when there are no racks) partition for partition, so members of
any client may lead the group.

*Source:* Kafka's RangeAssignor; KIP-881.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import MemberAssignment, define

from .members import in_order, subscribers_by_topic

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from odradek.kernel.api import GroupMember, SubscribedTopic


class RangeAssignor:
    """The strategy `range`."""

    name = "range"
    is_cooperative = False
    is_server_side = True

    def assign(
        self, members: Sequence[GroupMember], topics: Mapping[str, SubscribedTopic]
    ) -> Mapping[str, MemberAssignment]:
        """Give each topic's partitions in runs to its subscribers, those with a replica at hand first."""
        ordered = in_order(members)
        rooms = [
            _TopicRoom.of(topic, topics[topic], subscribers)
            for topic, subscribers in subscribers_by_topic(ordered, topics).items()
        ]
        if any(room.needs_racks for room in rooms):
            _match_racks(rooms)
        given: dict[str, dict[str, list[int]]] = {member.member_id: {} for member in ordered}
        for room in rooms:
            room.give_runs()
            for member, partitions in zip(room.subscribers, room.given, strict=True):
                if partitions:
                    given[member.member_id][room.topic] = sorted(partitions)
        return {member_id: MemberAssignment(partitions) for member_id, partitions in given.items()}

    def subscription_user_data(
        self, topics: frozenset[str], previous: MemberAssignment | None, generation: int
    ) -> bytes | None:
        """Tell nothing: what a member owned does not count."""
        del topics, previous, generation
        return None


@define
class _TopicRoom:
    """One topic while its partitions are given out.

    Attributes:
        topic: Its name.
        subscribers: In order; `given` has their partitions at the same places.
        racks: By partition the racks of its replicas; empty when no subscriber tells its rack.
        needs_racks: Whether racks make a difference for this topic.
        free: Partitions not given yet, ascending: the keys.
        smaller_share: How many partitions each subscriber gets at least.
        larger_shares: How many subscribers may still get one more.
    """

    topic: str
    subscribers: Sequence[GroupMember]
    racks: Sequence[frozenset[str]]
    needs_racks: bool
    free: dict[int, None]
    smaller_share: int
    larger_shares: int
    given: list[list[int]]

    @classmethod
    def of(cls, topic: str, described: SubscribedTopic, subscribers: Sequence[GroupMember]) -> _TopicRoom:
        """Return a room in which nothing is given."""
        count = described.partitions_count
        asked = {member.rack for member in subscribers if member.rack}
        racks = (described.racks or [frozenset()] * count) if asked else ()
        everywhere = frozenset[str]().union(*racks)
        smaller, larger = divmod(count, len(subscribers))
        return cls(
            topic=topic,
            subscribers=subscribers,
            racks=racks,
            needs_racks=bool(asked & everywhere) and any(replicas != everywhere for replicas in racks),
            free=dict.fromkeys(range(count)),
            smaller_share=smaller,
            larger_shares=larger,
            given=[[] for _ in subscribers],
        )

    def is_near(self, place: int, partition: int) -> bool:
        """Return whether a subscriber has a replica in its rack, or does not care."""
        rack = self.subscribers[place].rack
        return not rack or rack in self.racks[partition]

    def space(self, place: int) -> int:
        """Return how many more partitions a subscriber may get."""
        return max(0, self.smaller_share + (self.larger_shares > 0) - len(self.given[place]))

    def give(self, place: int, partitions: Iterable[int]) -> None:
        """Give partitions to a subscriber."""
        mine = self.given[place]
        for partition in partitions:
            mine.append(partition)
            del self.free[partition]
        if len(mine) > self.smaller_share:
            self.larger_shares -= 1

    def give_near_runs(self) -> None:
        """Give every subscriber in turn the first partitions near it."""
        for place in range(len(self.subscribers)):
            near = [partition for partition in self.free if self.is_near(place, partition)][: self.space(place)]
            if near:
                self.give(place, near)

    def give_runs(self) -> None:
        """Give every subscriber in turn the first partitions that are left."""
        left = list(self.free)
        start = 0
        for place in range(len(self.subscribers)):
            run = left[start : start + self.space(place)]
            start += len(run)
            if run:
                self.give(place, run)


def _match_racks(rooms: Sequence[_TopicRoom]) -> None:
    """Give what can be given near; topics with equal subscribers and equal numbers of partitions go together."""
    together: dict[tuple[tuple[str, ...], int], list[_TopicRoom]] = {}
    for room in rooms:
        key = (tuple(member.member_id for member in room.subscribers), len(room.racks))
        together.setdefault(key, []).append(room)
    for (_members, partitions_count), group in together.items():
        if len(group) > 1:
            _match_together(group, partitions_count)
        elif group[0].needs_racks:
            group[0].give_near_runs()


def _match_together(rooms: Sequence[_TopicRoom], partitions_count: int) -> None:
    """Give each partition number, of all topics at once, to the first subscriber that has all of them near."""
    open_places = dict.fromkeys(range(len(rooms[0].subscribers)))
    for partition in range(partitions_count):
        for place in open_places:
            if all(room.space(place) and room.is_near(place, partition) for room in rooms):
                for room in rooms:
                    room.give(place, [partition])
                if not any(room.space(place) for room in rooms):
                    del open_places[place]
                break
