"""Pure core: which broker has which replicas, while a plan is made: who has how many, how large, in which rack.

The rule of racks is that of Kafka's placer: a rack gets a second replica of a partition only when every rack that
could has one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.types import TopicPartition


@attrs.frozen
class PlacedBroker:
    """A broker.

    Attributes:
        broker_id: Its id.
        rack: Where it stands; None when nobody said.
        may_gain: Whether it may get replicas: it lives, and is not cordoned. Who may not keeps what it has.
    """

    broker_id: int
    rack: str | None = None
    may_gain: bool = True


@attrs.frozen
class PlacedPartition:
    """A partition as it is.

    Attributes:
        partition: Which.
        replicas: The brokers that have it, the preferred leader first.
        size_bytes: Of one replica.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]
    size_bytes: int = 0


class Layout:
    """Who has what; changed by a plan as it is made. Invariant: no broker has two replicas of a partition."""

    def __init__(
        self, brokers: Iterable[PlacedBroker], partitions: Iterable[PlacedPartition], targets: frozenset[int] | None
    ) -> None:
        """Begin with what is so.

        Args:
            brokers: All that are registered.
            partitions: Those that may be moved.
            targets: Who may have replicas in the end; who is none of them loses all that it has. All when None.
        """
        known = {each.broker_id: each for each in brokers}
        self._racks = {broker_id: each.rack or "" for broker_id, each in known.items()}
        self._targets = targets
        self.gaining = sorted(
            each.broker_id for each in known.values() if each.may_gain and self.may_stay(each.broker_id)
        )
        self.replicas = {each.partition: [*each.replicas] for each in partitions}
        self.sizes = {each.partition: each.size_bytes for each in partitions}
        self.held: dict[int, set[TopicPartition]] = {broker_id: set() for broker_id in known}
        self.size_bytes: Counter[int] = Counter()
        self._of_topic: Counter[tuple[int, str]] = Counter()
        for partition, replicas in self.replicas.items():
            for broker_id in replicas:
                self._note(partition, broker_id, 1)

    def may_stay(self, broker_id: int) -> bool:
        """Whether a broker may keep what it has."""
        return self._targets is None or broker_id in self._targets

    def of_topic(self, broker_id: int, topic: str) -> int:
        """Return how many replicas of a topic a broker has."""
        return self._of_topic[broker_id, topic]

    def _note(self, partition: TopicPartition, broker_id: int, change: int) -> None:
        held = self.held.setdefault(broker_id, set())
        (held.add if change > 0 else held.discard)(partition)
        self.size_bytes[broker_id] += change * self.sizes[partition]
        self._of_topic[broker_id, partition.topic] += change

    def replace(self, partition: TopicPartition, old: int, new: int) -> None:
        """Let a broker have a replica in another one's stead, and in its place in the list."""
        replicas = self.replicas[partition]
        assert new not in replicas
        replicas[replicas.index(old)] = new
        self._note(partition, old, -1)
        self._note(partition, new, 1)

    def add(self, partition: TopicPartition, new: int) -> None:
        """Give a broker a replica, the last one of the list."""
        assert new not in self.replicas[partition]
        self.replicas[partition].append(new)
        self._note(partition, new, 1)

    def drop(self, partition: TopicPartition, old: int) -> None:
        """Take a broker's replica away."""
        self.replicas[partition].remove(old)
        self._note(partition, old, -1)

    def lead(self, partition: TopicPartition, new: int) -> None:
        """Put a replica first; who was first takes its place."""
        replicas = self.replicas[partition]
        place = replicas.index(new)
        replicas[0], replicas[place] = replicas[place], replicas[0]

    # Racks.

    def crowd(self, partition: TopicPartition, broker_id: int) -> int:
        """Return how many replicas of a partition are in a broker's rack."""
        rack = self.rack(broker_id)
        return sum(self.rack(each) == rack for each in self.replicas[partition])

    def rack(self, broker_id: int) -> str:
        """Return a broker's rack; empty when nobody said."""
        return self._racks.get(broker_id, "")

    def openings(self, partition: TopicPartition, losing: int | None = None) -> list[int]:
        """Return the brokers that may get a replica of a partition without a rack having more than it should.

        Args:
            partition: Which.
            losing: Who loses its replica to the newcomer; None where it is one more.
        """
        staying = [each for each in self.replicas[partition] if each != losing]
        crowds = Counter(self.rack(each) for each in staying)
        free = [each for each in self.gaining if each not in staying and each != losing]
        racks = {self.rack(each) for each in free}
        if losing is not None and self.may_stay(losing):
            racks.add(self.rack(losing))
        least = min((crowds[rack] for rack in racks), default=0)
        return [each for each in free if crowds[self.rack(each)] == least]

    def opening(self, partition: TopicPartition, losing: int | None = None) -> int:
        """Return the broker of `openings` that has the least.

        Raises:
            ConfigError: There is none.
        """
        found = self.openings(partition, losing)
        if not found:
            hint = "add a broker, or have fewer replicas: odradek reassign generate --replicas N"
            raise ConfigError(f"there is no broker left for another replica of {partition}", hint=hint)
        return min(found, key=lambda each: self.load(each, partition.topic))

    def load(self, broker_id: int, topic: str) -> tuple[int, int, int, int]:
        """Return how much a broker has, for comparing: replicas, those of a topic, bytes."""
        return len(self.held[broker_id]), self.of_topic(broker_id, topic), self.size_bytes[broker_id], broker_id
