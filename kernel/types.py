"""Pure core: small values that every room of the kernel passes around."""

from __future__ import annotations

import base64
import uuid
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes that may be borrowed: whoever keeps them past the call copies them."""

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
CONSUMER_REPLICA_ID: Final = -1
"""The replica id of a Fetch by a client that is no broker."""

ZERO_ID: Final = uuid.UUID(int=0)
"""Kafka's "no id"."""

LOST_DIRECTORY: Final = uuid.UUID(int=1)
"""The id of no log directory: of a replica whose log cannot be used where it lies (KIP-858)."""

METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
"""The id of `__cluster_metadata` in every cluster (KIP-516)."""
METADATA_TOPIC: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's. A broker's own are these and the topics of its coordinators: `Replicas.internal_topics`."""


class IsolationLevel(IntEnum):
    """What a reader wants to see of transactions."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


READ_COMMITTED: Final = IsolationLevel.READ_COMMITTED
"""For the hot path: to look up a member of an enumeration takes 0.1 us."""
ISOLATION_LEVELS: Final = {level.value: level for level in IsolationLevel}
"""Isolation levels by their numbers in requests."""


class TopicPartition(NamedTuple):
    """A partition by its topic's name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicIdPartition(NamedTuple):
    """A partition by its topic's id and name: the id tells a topic from its deleted namesake."""

    topic_id: uuid.UUID
    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        """The same partition without the id."""
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LogOffsets(NamedTuple):
    """The offsets of one replica that clients ask for.

    `log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset` always holds.
    """

    log_start_offset: int
    last_stable_offset: int
    high_watermark: int
    log_end_offset: int


def id_text(identifier: uuid.UUID) -> str:
    """Return an id as Kafka prints it: URL-safe base 64 of its 16 bytes, without padding, 22 characters."""
    return base64.urlsafe_b64encode(identifier.bytes).decode().rstrip("=")


def parse_id(text: str) -> uuid.UUID:
    """Return the id that `id_text` printed.

    Raises:
        ValueError: `text` is not 22 characters of URL-safe base 64.
    """
    if len(text) != 22:
        raise ValueError(f"an id has 22 characters, {text!r} has {len(text)}")
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
