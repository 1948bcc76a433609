"""Pure core: balance first, then stickiness: the plan behind sticky, cooperative-sticky and uniform.

*Balance.* Members that may read the same topics differ by one partition at most. Where subscriptions differ, no other
plan gives the most loaded member less, nor, that being so, the next most loaded, and so on: loads cannot be evened
out further, not even by handing partitions on over several members.

*Stickiness.* As many partitions as balance allows stay where they were. With equal subscriptions exactly as many; with
different ones each repair takes the way that moves the fewest.

*Racks* (KIP-881). Where they count, members of equal subscriptions keep only what has a replica near them, as long as
it may find one: nearness goes before stickiness, balance before both. With different subscriptions nearness decides
where nothing else does.

How: all keep what they owned and may read; with equal subscriptions what is above a fair share is let go; what is free
goes to whoever has least; and with different subscriptions the loads are repaired::

    while somebody of the most loaded can hand a partition on - to another subscriber of its topic, who may hand on one
    of another topic, and so on - until it reaches somebody with at least two less: do so, on the cheapest way.
    When nobody can: those members, and all whom they reach, are done.

Kafka's own assignors look one hand-over ahead, so with different subscriptions they stop at 9, 10, 11 where 10, 10, 10
can be had.

*Source:* KIP-54 and KIP-341 for the goals; the repair is the search for cost-reducing paths of optimal semi-matchings
(Harvey, Ladner, Lovász, Tamir).
"""

from __future__ import annotations

from collections import defaultdict, deque
from heapq import heapify, heapreplace
from typing import TYPE_CHECKING

from odradek.kernel.api import define

from .claims import NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    Near: TypeAlias = Mapping[str, Sequence[frozenset[int]]]


def balance(
    members_count: int,
    subscribers: Mapping[str, Sequence[int]],
    owners: Mapping[str, Sequence[int]],
    near: Near | None = None,
) -> dict[str, list[int]]:
    """Return who shall read each partition, by topic and partition.

    Args:
        members_count: Members are the numbers below it; the order decides where nothing else does.
        subscribers: By topic, ascending, at least one.
        owners: By topic (the same) and partition: who had it, or `NOBODY`. Need not be a subscriber any more.
        near: By topic (the same) and partition: who has a replica in its rack, or no rack; None when racks count for
            nothing.
    """
    everybody = next(iter(subscribers.values()), ())
    is_homogeneous = all(len(some) == len(everybody) for some in subscribers.values()) and all(
        some == everybody for some in subscribers.values()
    )
    plan = _Plan.keeping(members_count, subscribers, owners, near if is_homogeneous else None)
    if is_homogeneous:
        plan.let_go_above_fair_share(everybody)
        if near is not None and everybody:
            plan.give_near(everybody, near)
            plan.give_back(everybody)
    plan.give_what_is_free(near)
    if not is_homogeneous:
        plan.repair()
    return plan.readers


@define
class _Plan:
    """A plan that is being made.

    Attributes:
        subscribers: By topic, ascending.
        owners: By topic and partition: who had it.
        readers: By topic and partition: who shall have it.
        held: By member and topic, the partitions planned for it; the same as `readers`, the other way round.
        strangers: By member and topic, how many of these it did not have before.
        loads: By member, how many are planned for it.
    """

    subscribers: Mapping[str, Sequence[int]]
    owners: Mapping[str, Sequence[int]]
    readers: dict[str, list[int]]
    held: list[dict[str, set[int]]]
    strangers: list[dict[str, int]]
    loads: list[int]

    @classmethod
    def keeping(
        cls,
        members_count: int,
        subscribers: Mapping[str, Sequence[int]],
        owners: Mapping[str, Sequence[int]],
        near: Near | None,
    ) -> _Plan:
        """Return the plan in which all keep what they may still read and is near them, and the rest is free."""
        members = range(members_count)
        plan = cls(subscribers, owners, {}, [{} for _ in members], [{} for _ in members], [0] * members_count)
        for topic, readers in subscribers.items():
            allowed = set(readers)
            plan.readers[topic] = [NOBODY] * len(owners[topic])
            for partition, owner in enumerate(owners[topic]):
                if owner in allowed and (near is None or owner in near[topic][partition]):
                    plan.give(topic, partition, owner)
        return plan

    def give(self, topic: str, partition: int, member: int) -> None:
        """Plan a free partition for a member."""
        self.readers[topic][partition] = member
        self.held[member].setdefault(topic, set()).add(partition)
        self.loads[member] += 1
        self._count_stranger(topic, partition, member, 1)

    def take(self, topic: str, partition: int) -> None:
        """Make a partition free."""
        member = self.readers[topic][partition]
        self.readers[topic][partition] = NOBODY
        self.held[member][topic].remove(partition)
        self.loads[member] -= 1
        self._count_stranger(topic, partition, member, -1)

    def _count_stranger(self, topic: str, partition: int, member: int, change: int) -> None:
        if self.owners[topic][partition] != member:
            counts = self.strangers[member]
            counts[topic] = counts.get(topic, 0) + change

    def let_go_above_fair_share(self, everybody: Sequence[int]) -> None:
        """Take what members of equal subscriptions have above their share: of every topic the highest partitions."""
        if not everybody:
            return
        fair, larger_shares = divmod(sum(len(readers) for readers in self.readers.values()), len(everybody))
        for member in everybody:
            share = fair
            if self.loads[member] > fair and larger_shares:
                share += 1
                larger_shares -= 1
            if self.loads[member] > share:
                mine = sorted((p, topic) for topic, partitions in self.held[member].items() for p in partitions)
                for partition, topic in mine[share:]:
                    self.take(topic, partition)

    def give_near(self, everybody: Sequence[int], near: Near) -> None:
        """Give free partitions to who has a replica near and room for it, those with the least choice first."""
        room, readers_of_all = _Room.of(self, everybody), frozenset(everybody)
        choices = sorted(
            (len(near[topic][partition] & readers_of_all), topic, partition)
            for topic, readers in self.readers.items()
            for partition, member in enumerate(readers)
            if member == NOBODY
        )
        for _, topic, partition in choices:
            takers = [member for member in near[topic][partition] & readers_of_all if room.has(member)]
            if takers:
                taker = min(takers, key=lambda member: (self.loads[member], member))
                room.take(taker)
                self.give(topic, partition, taker)

    def give_back(self, everybody: Sequence[int]) -> None:
        """Give to who had them, and has room, what nobody could take who is nearer."""
        room = _Room.of(self, everybody)
        for topic, readers in self.readers.items():
            for partition, member in enumerate(readers):
                owner = self.owners[topic][partition]
                if member == NOBODY and owner in everybody and room.has(owner):
                    room.take(owner)
                    self.give(topic, partition, owner)

    def give_what_is_free(self, near: Near | None) -> None:
        """Give each free partition to the subscriber with the least, topics with the least choice first."""

        def choice(topic: str) -> tuple[float, int]:
            subscribers_count = len(self.subscribers[topic])
            return -len(self.readers[topic]) / subscribers_count, subscribers_count

        for topic in sorted(self.readers, key=choice):
            free = [partition for partition, member in enumerate(self.readers[topic]) if member == NOBODY]
            if free and near is not None:
                self._give_to_least(topic, free, near[topic])
            elif free:
                self._deal(topic, free)

    def _deal(self, topic: str, free: Sequence[int]) -> None:
        """Give free partitions one by one to those with the least."""
        least = [(self.loads[member], member) for member in self.subscribers[topic]]
        if len(least) == 1:
            self._give_all(topic, free, least[0][1])
            return
        heapify(least)
        shares: defaultdict[int, list[int]] = defaultdict(list)
        for partition in free:
            load, member = least[0]
            shares[member].append(partition)
            heapreplace(least, (load + 1, member))
        for member, partitions in shares.items():
            self._give_all(topic, partitions, member)

    def _give_all(self, topic: str, partitions: Sequence[int], member: int) -> None:
        """Plan free partitions of a topic for a member, as `give` does with one."""
        readers, owners = self.readers[topic], self.owners[topic]
        for partition in partitions:
            readers[partition] = member
        self.held[member].setdefault(topic, set()).update(partitions)
        self.loads[member] += len(partitions)
        strangers_count = len([partition for partition in partitions if owners[partition] != member])
        if strangers_count:
            counts = self.strangers[member]
            counts[topic] = counts.get(topic, 0) + strangers_count

    def _give_to_least(self, topic: str, free: Sequence[int], near: Sequence[frozenset[int]]) -> None:
        """Give partitions to those with the least, of whom rather to one who is near."""
        for partition in free:
            least = min(
                (self.loads[member], member not in near[partition], member) for member in self.subscribers[topic]
            )
            self.give(topic, partition, least[2])

    def repair(self) -> None:
        """Hand partitions on until loads cannot be evened out further."""
        rising = list(range(len(self.loads)))  # who may still take part
        while rising:
            top = max(map(self.loads.__getitem__, rising))
            if top < 2:
                return
            search = _Search(self, rising, top)
            end = search.nearest()
            if end is None:
                rising = [member for member in rising if member not in search.cost]
            elif len(way := search.way_to(end)) == 1:
                self.hand_on_much(*way[0][:2], set(rising))
            else:
                for giver, topic, taker in way:
                    self.hand_on(giver, topic, taker)

    def hand_on_much(self, giver: int, topic: str, rising: set[int]) -> None:
        """Hand on what the next searches would: while the giver has most, to all who have as little as the first."""
        next_load = max((self.loads[member] for member in rising if member != giver), default=0)
        is_free = bool(self.strangers[giver].get(topic))
        load = min(self.loads[member] for member in self.subscribers[topic] if member in rising)
        for taker in self.subscribers[topic]:
            if self.loads[taker] != load or taker not in rising:
                continue
            self.hand_on(giver, topic, taker)
            if self.loads[giver] <= max(next_load, load + 1) or not self.held[giver][topic]:
                return
            if is_free and not self.strangers[giver][topic]:
                return

    def hand_on(self, giver: int, topic: str, taker: int) -> None:
        """Move one partition."""
        partition = self.to_hand_on(giver, topic, taker)
        self.take(topic, partition)
        self.give(topic, partition, taker)

    def to_hand_on(self, giver: int, topic: str, taker: int) -> int:
        """Return the partition that is handed on best: the taker's own of before, else no one of the giver's own."""
        held, owners = self.held[giver][topic], self.owners[topic]
        if not self.strangers[giver].get(topic):
            return max(held)
        return max(held, key=lambda p: (owners[p] == taker, owners[p] != giver, p))


class _Room:
    """Who may still get more of equal shares, some of which are larger by one."""

    def __init__(self, loads: Sequence[int], fair: int, larger_left: int) -> None:
        self._loads = loads
        self._fair = fair
        self._larger_left = larger_left

    @classmethod
    def of(cls, plan: _Plan, everybody: Sequence[int]) -> _Room:
        fair, larger = divmod(sum(map(len, plan.readers.values())), len(everybody))
        return cls(plan.loads, fair, larger - sum(plan.loads[member] > fair for member in everybody))

    def has(self, member: int) -> bool:
        """Return whether a member may get one more."""
        return self._loads[member] < self._fair or (self._loads[member] == self._fair and self._larger_left > 0)

    def take(self, member: int) -> None:
        """Take note that it is about to get it."""
        self._larger_left -= self._loads[member] == self._fair


class _Search:
    """The cheapest way from the most loaded to somebody who has at least two less.

    A breadth-first search in which a hand-over is free when the partition is not one that the giver had before, and
    else costs one move. Of several ways that cost the same it takes the one to the least loaded.
    """

    def __init__(self, plan: _Plan, rising: Collection[int], top: int) -> None:
        self._plan = plan
        self._enough = top - 2
        self._least = min(map(plan.loads.__getitem__, rising))
        self._open = set(rising)  # nobody else is reached
        self.cost = {member: 0 for member in rising if plan.loads[member] == top}
        self._came_by: dict[int, tuple[int, str]] = {}
        self._topic_cost: dict[str, int] = {}
        self._found: tuple[int, int, int] | None = None  # cost, load, member

    def nearest(self) -> int | None:
        """Return who is reached at the least cost; None when nobody is."""
        queue = deque((member, 0) for member in self.cost)
        while queue:
            member, cost = queue.popleft()
            if self._found is not None and (cost > self._found[0] or self._found[:2] == (cost, self._least)):
                break
            if cost == self.cost[member]:
                self._hand_on(member, cost, queue)
        return self._found[2] if self._found else None

    def way_to(self, end: int) -> list[tuple[int, str, int]]:
        """Return the hand-overs to somebody who was reached: giver, topic, taker."""
        way: list[tuple[int, str, int]] = []
        while end in self._came_by:
            giver, topic = self._came_by[end]
            way.append((giver, topic, end))
            end = giver
        return way

    def _hand_on(self, giver: int, cost: int, queue: deque[tuple[int, int]]) -> None:
        """Look whom a member reaches, for free and at a price."""
        strangers = self._plan.strangers[giver]
        for topic, partitions in self._plan.held[giver].items():
            if strangers.get(topic):
                self._reach(giver, topic, cost, queue.appendleft)
            elif partitions and (self._found is None or cost < self._found[0]):
                self._reach(giver, topic, cost + 1, queue.append)

    def _reach(self, giver: int, topic: str, cost: int, enqueue: Callable[[tuple[int, int]], None]) -> None:
        """Reach a topic's subscribers, and keep in mind who has least."""
        if cost >= self._topic_cost.get(topic, cost + 1):
            return
        self._topic_cost[topic] = cost
        loads, known = self._plan.loads, self.cost
        for taker in self._plan.subscribers[topic]:
            if taker in self._open and cost < known.get(taker, cost + 1):
                known[taker] = cost
                self._came_by[taker] = (giver, topic)
                enqueue((taker, cost))
                if loads[taker] <= self._enough:
                    candidate = (cost, loads[taker], taker)
                    self._found = candidate if self._found is None else min(self._found, candidate)
