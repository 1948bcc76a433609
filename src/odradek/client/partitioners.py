"""Pure core: which partition a record goes to.

| record | built-in choice |
| --- | --- |
| names its partition | that one |
| has a key | murmur2 of the key's bytes, the same in every Java client, so that equal keys meet |
| has none, or `partitioner.ignore.keys` | one partition for a batch's worth of bytes, then another (KIP-794) |

A partitioner of one's own has one method, `partition`, as `Partitioner` shows; it sees every record that names no
partition, with or without a key.

*Source:* `BuiltInPartitioner`, `Utils.murmur2`; KIP-480, KIP-794.

.. versionadded:: 0.1
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import attrs

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from odradek.kernel.types import Buffer

    from .cluster import Cluster, TopicInfo

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF


@runtime_checkable
class Partitioner(Protocol):
    """What `partitioner.class` takes."""

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int:
        """Return the number of a partition of the topic.

        Args:
            topic: The topic; `cluster.topics[topic]` describes it.
            key: As given to `send`.
            key_bytes: Serialized.
            value: As given to `send`.
            value_bytes: Serialized.
            cluster: What the client knows of its cluster.
        """
        ...


def murmur2(data: Buffer) -> int:
    """Return the 32-bit murmur2 hash with the seed that Kafka's Java clients use, as an unsigned number."""
    length = len(data)
    words = length // 4
    result = _SEED ^ length
    for word in struct.unpack_from(f"<{words}I", data):
        mixed = word * _M & _MASK
        mixed = (mixed ^ mixed >> 24) * _M & _MASK
        result = result * _M & _MASK ^ mixed
    if length & 3:
        result = (result ^ int.from_bytes(data[words * 4 :], "little")) * _M & _MASK
    result = (result ^ result >> 13) * _M & _MASK
    return result ^ result >> 15


def partition_for_key(key_bytes: Buffer, partitions_count: int) -> int:
    """Return the partition of a key among so many (> 0), as every Java client chooses it."""
    return (murmur2(key_bytes) & _POSITIVE) % partitions_count


@attrs.define
class RoundRobinPartitioner:
    """Every record to the next partition that has a leader, keys or not (`RoundRobinPartitioner`)."""

    _next: dict[str, int] = attrs.field(factory=dict, init=False)

    def partition(
        self,
        topic: str,
        key: Any,
        key_bytes: bytes | None,
        value: Any,
        value_bytes: bytes | None,
        cluster: Cluster,
    ) -> int:
        """Return the partition after the last one."""
        del key, key_bytes, value, value_bytes
        info = cluster.topics[topic]
        choices: Sequence[int] = info.available or tuple(info.partitions)
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        return choices[turn % len(choices)]


@attrs.define
class _Sticky:
    """The partition that a topic's records without a key go to at the moment."""

    partition: int
    produced_bytes: int = 0


@attrs.define
class StickyPartitioner:
    """Keeps to one partition until a batch's worth of bytes went there, then picks another at random.

    With adaptive choice, a partition's chance falls with the number of batches that wait for it, so slow brokers get
    less; without, all partitions with a leader have the same chance.

    Attributes:
        batch_size_bytes: How much is a batch's worth.
        is_adaptive: Whether queues count.
        random_source: Where choices come from.
    """

    batch_size_bytes: int
    is_adaptive: bool
    random_source: random.Random
    _current: dict[str, _Sticky] = attrs.field(factory=dict, init=False)

    def choose(self, topic: TopicInfo, queue_sizes: Mapping[int, int], excluded: frozenset[int] = frozenset()) -> int:
        """Return the topic's present partition, choosing one if there is none or it lost its leader.

        Args:
            topic: The topic, with at least one partition.
            queue_sizes: Batches that wait, by partition; absent is none.
            excluded: Partitions whose broker takes nothing at present: passed over while there are others.
        """
        sticky = self._current.get(topic.name)
        if sticky is None:
            sticky = self._current[topic.name] = _Sticky(self._pick(topic, queue_sizes, excluded))
        elif sticky.partition not in topic.partitions:
            sticky.partition = self._pick(topic, queue_sizes, excluded)
        return sticky.partition

    def appended(
        self,
        topic: TopicInfo,
        size_bytes: int,
        *,
        ends_batch: bool,
        queue_sizes: Mapping[int, int],
        excluded: frozenset[int] = frozenset(),
    ) -> None:
        """Take note of a record that went to the present partition.

        Args:
            topic: Its topic.
            size_bytes: Its size.
            ends_batch: Whether the batch that it went to is full: changing then splits no batch.
            queue_sizes: As for `choose`.
            excluded: As for `choose`.
        """
        sticky = self._current.get(topic.name)
        if sticky is None:
            return
        sticky.produced_bytes += size_bytes
        is_due = sticky.produced_bytes >= self.batch_size_bytes
        if (is_due and ends_batch) or sticky.produced_bytes >= 2 * self.batch_size_bytes:
            sticky.partition = self._pick(topic, queue_sizes, excluded)
            sticky.produced_bytes = 0

    def _pick(self, topic: TopicInfo, queue_sizes: Mapping[int, int], excluded: frozenset[int]) -> int:
        choices: Sequence[int] = topic.available or tuple(topic.partitions)
        choices = [number for number in choices if number not in excluded] or choices
        if len(choices) == 1:
            return choices[0]
        if not self.is_adaptive or not queue_sizes:
            return choices[self.random_source.randrange(len(choices))]
        sizes = [queue_sizes.get(number, 0) for number in choices]
        longest = max(sizes) + 1
        sums = list(accumulate(longest - size for size in sizes))
        return choices[bisect_right(sums, self.random_source.randrange(sums[-1]))]
