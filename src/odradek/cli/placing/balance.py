"""Pure core: a plan of which brokers shall have which partitions: what must move, then what evens the brokers out.

    plan = planned(brokers, partitions)             # brokers as equal as may be, with the fewest moves
    plan = planned(brokers, partitions, targets=..., is_evened=False)     # only what others must take over

In this order, each step keeping what those before it reached:

1. what stands where it may not goes to who has the least; partitions get as many replicas as asked for
2. racks: no second replica of a partition in a rack while another one has none
3. replicas: from who has the most to who has the least, until they differ by one at most
4. bytes: single replicas, or two in exchange, until who has the most is within a tenth of the mean
5. preferred leaders: the order of replicas, which moves no record

A replica that moves for step 3 is one whose size evens out the bytes, and whose topic is not less well spread by it.
Without racks step 3 takes just as many moves as there are replicas above the share of a broker, or below it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from .layout import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from odradek.kernel.types import TopicPartition

    from .layout import PlacedBroker, PlacedPartition

    _Excess: TypeAlias = Callable[[int], int]

TOLERANCE: Final = 0.1
"""So far from the mean, as a part of it, the bytes of a broker may be."""
SMALL_BYTES: Final = 64 * 1024 * 1024
"""Nothing is moved for fewer bytes than these."""
_NEIGHBOURS: Final = 4
"""So many replicas of about the right size are looked at for an exchange."""


def planned(
    brokers: Iterable[PlacedBroker],
    partitions: Iterable[PlacedPartition],
    *,
    targets: frozenset[int] | None = None,
    replicas_count: int | None = None,
    is_evened: bool = True,
    small_bytes: int = SMALL_BYTES,
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the partitions whose replicas change, or their order, with what they shall be.

    Args:
        brokers: All that are registered.
        partitions: Those that may be moved.
        targets: Who may have replicas in the end; all when None.
        replicas_count: How many replicas each partition shall have; as it has when None.
        is_evened: Whether more is moved than must be, so that brokers have about the same.
        small_bytes: Nothing is moved for fewer bytes than these.

    Raises:
        ConfigError: There are fewer brokers than replicas.
    """
    known = [*partitions]
    layout = Layout(brokers, known, targets)
    for each in sorted(known, key=lambda each: (-each.size_bytes, each.partition)):
        _settle(layout, each.partition, replicas_count or len(each.replicas))
    if is_evened and layout.gaining:
        for each in known:
            _spread_racks(layout, each.partition)
        _even_counts(layout)
        _even_bytes(layout, small_bytes)
        _even_leaders(layout)
    after = {each.partition: tuple(layout.replicas[each.partition]) for each in known}
    return {each.partition: after[each.partition] for each in known if after[each.partition] != each.replicas}


# ------------------------------------------------------------------------------------------------------ what must be


def _settle(layout: Layout, partition: TopicPartition, wanted_count: int) -> None:
    """Give a partition as many replicas as are wanted, all where they may be."""
    while len(layout.replicas[partition]) > wanted_count:
        layout.drop(partition, _dispensable(layout, partition))
    for old in [each for each in layout.replicas[partition] if not layout.may_stay(each)]:
        layout.replace(partition, old, layout.opening(partition, old))
    while len(layout.replicas[partition]) < wanted_count:
        layout.add(partition, layout.opening(partition))


def _dispensable(layout: Layout, partition: TopicPartition) -> int:
    """Return whose replica goes first: whose may not stay, whose rack is crowded, who has the most; leaders last."""
    replicas = layout.replicas[partition]
    return max(
        replicas,
        key=lambda each: (
            not layout.may_stay(each),
            each != replicas[0],
            layout.crowd(partition, each),
            layout.load(each, partition.topic),
        ),
    )


def _spread_racks(layout: Layout, partition: TopicPartition) -> None:
    """Move replicas out of racks that have more than others."""
    while True:
        crowded = [
            (layout.crowd(partition, old) - 1, layout.load(old, partition.topic), old)
            for old in layout.replicas[partition]
        ]
        for crowd, _load, old in sorted(crowded, reverse=True):
            # What stays in the rack without this one is more than the newcomer's rack has: it is less crowded after.
            roomier = [each for each in layout.openings(partition, old) if layout.crowd(partition, each) < crowd]
            if roomier:
                layout.replace(partition, old, min(roomier, key=lambda each: layout.load(each, partition.topic)))
                break
        else:
            return


# ------------------------------------------------------------------------------------------------------------- counts


def _even_counts(layout: Layout) -> None:
    while _move_one(layout):
        pass


def _move_one(layout: Layout) -> bool:
    """Move one replica from a broker that has at least two more than another; the largest difference first."""
    counts = sorted((len(layout.held[each]), each) for each in layout.gaining)
    pairs = [(more - less, giving, taking) for more, giving in counts for less, taking in counts if more - less > 1]
    for _difference, giving, taking in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        moved = _most_fitting(layout, giving, taking)
        if moved is not None:
            layout.replace(moved, giving, taking)
            return True
    return False


def _most_fitting(layout: Layout, giving: int, taking: int) -> TopicPartition | None:
    """Return whose replica moves best: its topic is not crowded by it, bytes are evened out, it is small."""
    mean = _mean_bytes(layout)

    def cost(partition: TopicPartition) -> tuple[bool, int, int, TopicPartition]:
        size = layout.sizes[partition]
        crowds = layout.of_topic(giving, partition.topic) <= layout.of_topic(taking, partition.topic)
        uneven = abs(layout.size_bytes[giving] - size - mean) + abs(layout.size_bytes[taking] + size - mean)
        return crowds, uneven, size, partition

    able = (each for each in layout.held[giving] - layout.held[taking] if taking in layout.openings(each, giving))
    return min(able, key=cost, default=None)


def _mean_bytes(layout: Layout) -> int:
    """Return a whole number: with fractions, an exchange that changes nothing could seem to help a little."""
    return sum(layout.size_bytes[each] for each in layout.gaining) // len(layout.gaining)


# -------------------------------------------------------------------------------------------------------------- bytes


class _Exchange(NamedTuple):
    """One broker gives a replica, and takes a smaller one for it, or none."""

    gain: float
    given: TopicPartition
    taken: TopicPartition | None


def _even_bytes(layout: Layout, small_bytes: int) -> None:
    mean = _mean_bytes(layout)
    slack = max(int(mean * TOLERANCE), small_bytes)

    def excess(size_bytes: int) -> int:
        return max(abs(size_bytes - mean) - slack, 0)

    while _exchange_one(layout, excess):
        pass


def _exchange_one(layout: Layout, excess: _Excess) -> bool:
    """Make the exchange between two brokers that helps most, of the heaviest and the lightest that can; say if."""
    by_size = sorted((layout.size_bytes[each], each) for each in layout.gaining)
    pairs = [(heavy - light, giving, taking) for heavy, giving in by_size for light, taking in by_size if heavy > light]
    for difference, giving, taking in sorted(pairs, key=lambda pair: (-pair[0], pair[1:])):
        if not excess(layout.size_bytes[giving]) and not excess(layout.size_bytes[taking]):
            continue
        best = max(_exchanges(layout, giving, taking, difference, excess), default=None, key=lambda each: each.gain)
        if best is not None and best.gain > 0:
            layout.replace(best.given, giving, taking)
            if best.taken is not None:
                layout.replace(best.taken, taking, giving)
            return True
    return False


def _exchanges(layout: Layout, giving: int, taking: int, difference: int, excess: _Excess) -> Iterator[_Exchange]:
    """Yield what two brokers may exchange, with how much closer to the mean both come by it, for each replica moved."""
    heavy, light = layout.size_bytes[giving], layout.size_bytes[taking]
    before = excess(heavy) + excess(light)
    takes = sorted((layout.sizes[each], each) for each in layout.held[taking] - layout.held[giving])
    sizes = [size for size, _partition in takes]
    may_give = len(layout.held[giving]) > len(layout.held[taking])
    for given in sorted(layout.held[giving] - layout.held[taking]):
        if taking not in layout.openings(given, giving):
            continue
        size = layout.sizes[given]
        if may_give:
            yield _Exchange(before - excess(heavy - size) - excess(light + size), given, None)
        place = bisect_left(sizes, size - difference / 2)
        for taken_size, taken in takes[max(place - _NEIGHBOURS, 0) : place + _NEIGHBOURS]:
            if taken_size < size and giving in layout.openings(taken, taking):
                moved = size - taken_size
                yield _Exchange((before - excess(heavy - moved) - excess(light + moved)) / 2, given, taken)


# ------------------------------------------------------------------------------------------------------------ leaders


def _even_leaders(layout: Layout) -> None:
    """Let preferred leadership go from who has the most, over brokers between them, to who has the least."""
    able = {*layout.gaining}
    counts = Counter(dict.fromkeys(layout.gaining, 0))
    led: dict[int, dict[int, set[TopicPartition]]] = {broker_id: {} for broker_id in layout.gaining}

    def note(partition: TopicPartition, change: int) -> None:
        first, *others = layout.replicas[partition]
        if first in able:
            counts[first] += change
            for other in others:
                if other in able:
                    held = led[first].setdefault(other, set())
                    (held.add if change > 0 else held.discard)(partition)

    for partition in layout.replicas:
        note(partition, 1)
    while path := _shortest_way(counts, led):
        for giving, taking in pairwise(path):
            partition = min(led[giving][taking])
            note(partition, -1)
            layout.lead(partition, taking)
            note(partition, 1)


def _shortest_way(counts: Counter[int], led: dict[int, dict[int, set[TopicPartition]]]) -> Sequence[int]:
    """Return a way from a broker that leads much to one that leads at least two fewer; empty when there is none."""
    for start in sorted(counts, key=lambda each: (-counts[each], each)):
        came_from: dict[int, int] = {start: start}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            if counts[here] < counts[start] - 1:
                way = [here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            for there in sorted(each for each, held in led[here].items() if held and each not in came_from):
                came_from[there] = here
                waiting.append(there)
    return ()
