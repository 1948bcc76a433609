"""Pure core: which brokers get the replicas of new partitions: strategies by the names that `odradek.placement` has.

`striped`, Kafka's own: leaders go round the racks, and inside a rack round its brokers; the other replicas of a
partition go to the next racks first, so that a rack holds a second replica only when every rack has one. Where the
rounds begin is random, and racks and brokers are shuffled after as many partitions as there are live brokers, so that
two brokers do not share all their partitions.

`simple`, for people who want to know beforehand: of n brokers, partition i begins on broker i mod n, and its replica j
is on broker (i + j) mod n.

With both a fenced broker never leads a new partition, and gets a replica only when there are too few live ones (in its
rack, with `striped`); one in controlled shutdown gets none, and an id that was taken and where nobody listens neither.

*Source:* the effect of KRaft's `StripedReplicaPlacer`; `ClusterControlManager.usableBrokers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ..classes import frozen
from ..errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    import random
    from collections.abc import Generator, Iterable, Mapping, Sequence

    from ..metadata.image import BrokerImage


@frozen
class PlacementRequest:
    """What is to be placed.

    Attributes:
        brokers: Those that may get replicas, by id; at least one of them lives, and they are enough.
        first_partition: The number of the first new partition, >= 0.
        partitions_count: How many, >= 0.
        replication_factor: How many replicas each, >= 1.
        random: Where rounds begin, and how they are shuffled.
    """

    brokers: Sequence[BrokerImage]
    first_partition: int
    partitions_count: int
    replication_factor: int
    random: random.Random


class Placement(Protocol):
    """A strategy; yields after each partition."""

    def __call__(self, request: PlacementRequest, /) -> Generator[None, None, list[list[int]]]:
        """Return the replicas of each new partition, the preferred leader first."""
        ...


def place_replicas(
    strategy: str,
    brokers: Iterable[BrokerImage],
    first_partition: int,
    partitions_count: int,
    replication_factor: int,
    random_source: random.Random,
) -> Generator[None, None, list[list[int]]]:
    """Return the replicas of each new partition, the preferred leader first; yields after each.

    Brokers in controlled shutdown get none, nor those all of whose log directories are cordoned (KIP-1066).

    Args:
        strategy: A name in `PLACEMENTS`.
        brokers: All registered ones.
        first_partition: The number of the first new partition, >= 0.
        partitions_count: How many partitions, >= 0.
        replication_factor: How many replicas each, >= 1.
        random_source: Where the rounds begin, and how they are shuffled.

    Raises:
        KafkaError: INVALID_REPLICATION_FACTOR: there are too few brokers, or no live one.
    """
    usable = sorted(
        (each for each in brokers if each.listeners and not each.in_controlled_shutdown and not each.is_cordoned),
        key=lambda broker: broker.broker_id,
    )
    _check(replication_factor, len(usable), sum(broker.is_live for broker in usable))
    request = PlacementRequest(usable, first_partition, partitions_count, replication_factor, random_source)
    return (yield from PLACEMENTS[strategy](request))


def _check(replication_factor: int, usable_count: int, live_count: int) -> None:
    if live_count == 0:
        reason = "All brokers are currently fenced, or have all their log directories cordoned."
    elif replication_factor > usable_count:
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{usable_count} broker(s) are registered or some brokers have all their log directories cordoned."
        )
    else:
        return
    raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


# ------------------------------------------------------------------------------------------------------------- simple


def place_simply(request: PlacementRequest) -> Generator[None, None, list[list[int]]]:
    """Place by the numbers of partitions; see the module."""
    live = [broker.broker_id for broker in request.brokers if broker.is_live]
    factor = request.replication_factor
    ring = live if len(live) >= factor else [broker.broker_id for broker in request.brokers]
    placed: list[list[int]] = []
    for partition in range(request.first_partition, request.first_partition + request.partitions_count):
        chosen = [ring[(partition + replica) % len(ring)] for replica in range(factor)]
        placed.append(_led_by_live(chosen, live, partition))
        yield
    return placed


def _led_by_live(replicas: list[int], live: Sequence[int], partition: int) -> list[int]:
    """Return the replicas with one that lives in front; where none does, one takes the first place."""
    first = next((replica for replica in replicas if replica in live), live[partition % len(live)])
    others = [replica for replica in replicas if replica != first]
    return [first, *others[: len(replicas) - 1]]


# ------------------------------------------------------------------------------------------------------------ striped


class _Ring:
    """Brokers that take turns: each partition begins one place further than the one before."""

    def __init__(self, members: list[int], random_source: random.Random) -> None:
        self._members = members
        self._start = random_source.randrange(len(members)) if members else 0
        self._taken = 0

    def begin(self) -> None:
        """Begin with the next partition."""
        if self._taken and self._members:
            self._start = (self._start + 1) % len(self._members)
        self._taken = 0

    def take(self) -> int | None:
        """Return the next broker for this partition, None when all have it."""
        if self._taken >= len(self._members):
            return None
        self._taken += 1
        return self._members[(self._start + self._taken - 1) % len(self._members)]

    def shuffle(self, random_source: random.Random) -> None:
        random_source.shuffle(self._members)


class _Rack:
    """The brokers of one rack: who lives comes first."""

    def __init__(self, members: Sequence[BrokerImage], random_source: random.Random) -> None:
        self.live = _Ring([broker.broker_id for broker in members if broker.is_live], random_source)
        self.fenced = _Ring([broker.broker_id for broker in members if not broker.is_live], random_source)

    def take(self) -> int | None:
        """Return the next broker for this partition, None when all have it."""
        broker_id = self.live.take()
        return self.fenced.take() if broker_id is None else broker_id


def place_in_stripes(request: PlacementRequest) -> Generator[None, None, list[list[int]]]:
    """Place in stripes over racks and brokers; see the module."""
    racks = _racks(request.brokers, request.random)
    live_count = sum(broker.is_live for broker in request.brokers)
    first = request.random.randrange(len(racks))
    placed: list[list[int]] = []
    for number in range(request.partitions_count):
        if live_count > 1 and number > 0 and number % live_count == 0:
            request.random.shuffle(racks)
            for rack in racks:
                rack.live.shuffle(request.random)
                rack.fenced.shuffle(request.random)
        placed.append(_place(racks, (first + number) % len(racks), request.replication_factor))
        yield
    return placed


def _racks(brokers: Sequence[BrokerImage], random_source: random.Random) -> list[_Rack]:
    """Return the racks by name, the one without a name first."""
    by_name: dict[str, list[BrokerImage]] = {}
    for broker in brokers:
        by_name.setdefault(broker.rack or "", []).append(broker)
    return [_Rack(members, random_source) for _, members in sorted(by_name.items())]


def _place(racks: list[_Rack], first: int, replication_factor: int) -> list[int]:
    """Place one partition, its round beginning at rack `first`."""
    for rack in racks:
        rack.live.begin()
        rack.fenced.begin()
    rounds = racks[first:] + racks[:first]
    leading, leader = next((rack, taken) for rack in rounds if (taken := rack.live.take()) is not None)
    replicas = [leader]
    # The leader's rack is left out of the first round: it gets a second replica when all others have one.
    waiting = [rack for rack in rounds if rack is not leading]
    while len(replicas) < replication_factor:
        for rack in waiting:
            taken = rack.take() if len(replicas) < replication_factor else None
            if taken is not None:
                replicas.append(taken)
        waiting = rounds
    return replicas


PLACEMENTS: Final[Mapping[str, Placement]] = {"striped": place_in_stripes, "simple": place_simply}
"""By name."""
