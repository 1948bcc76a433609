"""Pure core: one number for all that an assignment depends on in the topics that a group reads.

A group remembers the number; when the metadata has changed and the number with it, the group is assigned anew. A topic
that does not exist counts for nothing.

*Source:* the layout of what is hashed was found by hashing as Apache Kafka 4.3.1 does and comparing what it wrote.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from .xxh3 import xxh3_64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.kernel.api import ClusterView, TopicView

_LAYOUT: Final = b"\x00"
"""Names how a topic is laid out below."""

_int = struct.Struct("<i").pack
_long = struct.Struct("<q").pack
_two_longs = struct.Struct("<QQ").pack


def hash_topic(topic: TopicView) -> int:
    """Return the hash of a topic's id, name, partitions and their racks."""
    topic_id = topic.topic_id.int
    parts = [
        _LAYOUT,
        _two_longs(topic_id >> 64, topic_id & 0xFFFF_FFFF_FFFF_FFFF),
        _text(topic.name),
        _int(topic.partitions_count),
    ]
    for partition in range(topic.partitions_count):
        parts.append(_int(partition))
        if partition < len(topic.racks):
            for rack in sorted(topic.racks[partition]):
                parts += (_int(_units_count(rack)), _text(rack))
    return xxh3_64(b"".join(parts))


def _units_count(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _text(text: str) -> bytes:
    """Return a text as UTF-16, and how many units of it there are."""
    return text.encode("utf-16-le") + _int(_units_count(text))


class TopicHashes:
    """The hashes of topics, kept until a topic changes. One a shard."""

    def __init__(self) -> None:
        """Make it empty."""
        self._known: dict[str, int] = {}

    def forget(self, names: Iterable[str]) -> None:
        """Topics have changed, or nobody reads them any more."""
        for name in names:
            self._known.pop(name, None)

    def of_group(self, names: Iterable[str], cluster: ClusterView) -> int:
        """Return the hash of the topics that a group reads; 0 when none of them exists."""
        hashes = []
        for name in sorted(names):
            topic = cluster.topic(name)
            if topic is None:
                continue
            known = self._known.get(name)
            if known is None:
                known = self._known[name] = hash_topic(topic)
            hashes.append(_long(known))
        return xxh3_64(b"".join(hashes)) if hashes else 0
