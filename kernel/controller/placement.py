"""Pure core: which brokers get the replicas of new partitions.

Leaders go round the racks, and inside a rack round its brokers; the other replicas of a partition go to the next racks
first, so that a rack holds a second replica only when every rack has one. A fenced broker never leads a new partition
and gets a replica only when its rack has no live one left. Where the round begins is random, and the order is shuffled
after as many partitions as there are live brokers, so that two brokers do not share all their partitions.

*Source:* the effect of KRaft's `StripedReplicaPlacer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import random
    from collections.abc import Generator, Iterable

    from ..metadata.image import BrokerImage


class _Rack:
    """The brokers of one rack, and how far the round has come."""

    def __init__(self, live: list[int], fenced: list[int], start: int) -> None:
        self.live = live
        self.fenced = fenced
        self._turn = start

    def order(self) -> list[int]:
        """Return the rack's brokers as this partition meets them: live ones first."""
        return _rotated(self.live, self._turn) + _rotated(self.fenced, self._turn)

    def next_turn(self) -> None:
        self._turn += 1

    def shuffle(self, random_source: random.Random) -> None:
        random_source.shuffle(self.live)
        random_source.shuffle(self.fenced)


def _rotated(brokers: list[int], turn: int) -> list[int]:
    start = turn % len(brokers) if brokers else 0
    return brokers[start:] + brokers[:start]


def place_replicas(
    brokers: Iterable[BrokerImage], partitions_count: int, replication_factor: int, random_source: random.Random
) -> Generator[None, None, list[list[int]]]:
    """Return the replicas of each new partition, the preferred leader first; yields after each.

    Args:
        brokers: All registered ones.
        partitions_count: How many partitions, >= 0.
        replication_factor: How many replicas each, >= 1.
        random_source: Where the rounds begin, and how they are shuffled.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR: there are too few brokers, or no live one.
    """
    registered = sorted(brokers, key=lambda broker: broker.broker_id)
    live_count = sum(broker.is_live for broker in registered)
    _check(replication_factor, len(registered), live_count)
    racks = _racks(registered, random_source)
    placed: list[list[int]] = []
    for number in range(partitions_count):
        if live_count > 1 and number > 0 and number % live_count == 0:
            random_source.shuffle(racks)
            for rack in racks:
                rack.shuffle(random_source)
        placed.append(_place(racks, number % len(racks), replication_factor))
        yield
    return placed


def _check(replication_factor: int, registered_count: int, live_count: int) -> None:
    if live_count == 0:
        reason = "All brokers are currently fenced or have all their log directories cordoned."
    elif replication_factor > registered_count:
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{registered_count} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    else:
        return
    raise KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replication_factor} time(s): {reason}",
    )


def _racks(brokers: list[BrokerImage], random_source: random.Random) -> list[_Rack]:
    by_name: dict[str, list[BrokerImage]] = {}
    for broker in brokers:
        by_name.setdefault(broker.rack or "", []).append(broker)
    return [
        _Rack(
            [broker.broker_id for broker in members if broker.is_live],
            [broker.broker_id for broker in members if not broker.is_live],
            random_source.randrange(len(members)),
        )
        for _, members in sorted(by_name.items())
    ]


def _place(racks: list[_Rack], first: int, replication_factor: int) -> list[int]:
    """Place one partition, its round beginning at rack `first`."""
    rounds = racks[first:] + racks[:first]
    leading = next(rack for rack in rounds if rack.live)
    orders = [(rack, rack.order()) for rack in rounds]
    for rack in rounds:
        rack.next_turn()
    # The leader's rack comes last: it gets a second replica when all others have one.
    waiting = [order for rack, order in orders if rack is not leading]
    own = next(order for rack, order in orders if rack is leading)
    replicas = [own.pop(0)]
    waiting.append(own)
    while len(replicas) < replication_factor:
        for order in waiting:
            if order and len(replicas) < replication_factor:
                replicas.append(order.pop(0))
    return replicas
