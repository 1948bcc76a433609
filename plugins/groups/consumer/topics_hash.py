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
    from collections.abc import Collection, Iterable

    from odradek.kernel.api import ClusterView, TopicView

NAMES_MAX: Final = 10_000
"""Of so many topics it is remembered when they changed; beyond, every group is taken to read one that did."""
NAMES_MANY: Final = 1_000
"""From so many names on it is sooner found which of them exist all together than one by one."""
HASHED_AT_ONCE_MAX: Final = 10_000
"""Of new topics with so many partitions together hashes are computed in one go: some milliseconds."""
_TOPIC_COST: Final = 30
"""In partitions: what a topic takes beside its own."""
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
    if any(topic.racks):
        for partition in range(topic.partitions_count):
            parts.append(_int(partition))
            if partition < len(topic.racks):
                for rack in sorted(topic.racks[partition]):
                    parts += (_int(_units_count(rack)), _text(rack))
    else:
        parts.append(struct.pack(f"<{topic.partitions_count}i", *range(topic.partitions_count)))
    return xxh3_64(b"".join(parts))


def _units_count(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def _text(text: str) -> bytes:
    """Return a text as UTF-16, and how many units of it there are."""
    return text.encode("utf-16-le") + _int(_units_count(text))


def existing_topics(names: Iterable[str], cluster: ClusterView) -> Collection[str]:
    """Return those of many names that topics have: members may name thousands that are not there."""
    wanted = set(names)
    return wanted if len(wanted) < NAMES_MANY else wanted.intersection(cluster.topic_names())


class TopicHashes:
    """The hashes of topics, kept until a topic changes. One a shard.

    Attributes:
        changes_count: How many changes there were. A group that remembers at which it looked has nothing to do until
            there is another one: so a change costs nothing for groups of which no member is heard.
    """

    def __init__(self) -> None:
        """Make it empty."""
        self.changes_count = 0
        self._known: dict[str, int] = {}
        self._changed_at: dict[str, int] = {}
        self._forgotten_at = 0

    def topics_changed(self, names: Collection[str]) -> None:
        """Take note of topics that came, changed or went in one change."""
        self.changes_count += 1
        for name in names:
            self._known.pop(name, None)
        if len(self._changed_at) + len(names) > NAMES_MAX:
            self._changed_at.clear()
            self._forgotten_at = self.changes_count
        else:
            self._changed_at.update(dict.fromkeys(names, self.changes_count))

    def has_changed_since(self, changes_count: int, names: Iterable[str]) -> bool:
        """Return whether one of these topics may have changed after so many changes."""
        return changes_count < self._forgotten_at or any(
            self._changed_at.get(name, 0) > changes_count for name in names
        )

    def of_group(self, names: Iterable[str], cluster: ClusterView) -> int:
        """Return the hash of the topics that a group reads; 0 when none of them exists.

        What is new of very many is hashed some at a time. Topics that are not hashed yet count for nothing, and are
        taken to change just now, which `changes_count` tells: whoever reads them looks again.
        """
        hashes, left, room = [], [], HASHED_AT_ONCE_MAX
        for name in sorted(existing_topics(names, cluster)):
            topic = cluster.topic(name)
            if topic is None:
                continue
            known = self._known.get(name)
            if known is None:
                if room <= 0:
                    left.append(name)
                    continue
                room -= topic.partitions_count + _TOPIC_COST
                known = self._known[name] = hash_topic(topic)
            hashes.append(_long(known))
        if left:
            self.topics_changed(left)
        return xxh3_64(b"".join(hashes)) if hashes else 0
