"""Pure core: one broker's side of a session by chance: what it drew for itself, and what stands for that in a request.

The same request goes to both brokers, but each has ids of its own for the same topics, producers, members and fetch
sessions. A request is drawn with references, and each world puts its own ids in their place.
"""

from __future__ import annotations

import uuid
from enum import Enum
from typing import Any

import attrs

from ..batches import batch
from ..conversation import UNKNOWN_ID


class Kind(Enum):
    """What a broker draws."""

    TOPIC_ID = "topic id"
    PRODUCER_ID = "producer id"
    MEMBER_ID = "member id"
    FETCH_SESSION = "fetch session"


@attrs.frozen
class Reference:
    """What a broker drew: a topic's id by the topic's name, all others by the order in which they were told."""

    kind: Kind
    key: str | int


@attrs.frozen
class DrawnRecords:
    """Records of a Produce: a batch as `batches.batch` makes it, whose producer may be a reference.

    Attributes:
        options: For `batch`; `producer` among them with the id as a reference.
        bytes_cut: How much of its end is missing.
        is_double: Whether it stands there twice.
    """

    options: dict[str, Any]
    bytes_cut: int = 0
    is_double: bool = False


class World:
    """What one broker drew so far."""

    def __init__(self) -> None:
        self._topic_ids: dict[str, uuid.UUID] = {}
        self._drawn: dict[Kind, list[Any]] = {kind: [] for kind in Kind}

    def count(self, kind: Kind) -> int:
        """Return how many of a kind were told."""
        return len(self._drawn[kind])

    def reference(self, kind: Kind, value: object) -> Reference:
        """Return what stands for something that this broker drew."""
        return Reference(kind, self._drawn[kind].index(value))

    def counts(self) -> dict[Kind, int]:
        """Return how many of each kind were told."""
        return {kind: len(drawn) for kind, drawn in self._drawn.items()}

    def resolve(self, value: Any) -> Any:
        """Return a copy of what was drawn for a request, with this broker's ids for references, records as bytes."""
        if isinstance(value, dict):
            return {name: self.resolve(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.resolve(item) for item in value)
        if isinstance(value, DrawnRecords):
            content = batch(**self.resolve(value.options)) * (2 if value.is_double else 1)
            return content[: len(content) - value.bytes_cut]
        if not isinstance(value, Reference):
            return value
        if isinstance(value.key, str):
            return self._topic_ids.get(value.key, UNKNOWN_ID)
        return self._drawn[value.kind][value.key]

    def learn(self, api: str, answer: dict[str, Any]) -> None:
        """Take note of what an answer tells for the first time."""
        self._learn_topic_ids(answer)
        if api in {"InitProducerId", "EndTxn"} and answer.get("producer_id", -1) >= 0:
            self._note(Kind.PRODUCER_ID, answer["producer_id"])
        if api in {"JoinGroup", "ConsumerGroupHeartbeat"} and answer["member_id"]:
            self._note(Kind.MEMBER_ID, answer["member_id"])
        if api == "Fetch" and answer.get("session_id"):
            self._note(Kind.FETCH_SESSION, answer["session_id"])

    def _note(self, kind: Kind, value: object) -> None:
        if value not in self._drawn[kind]:
            self._drawn[kind].append(value)

    def _learn_topic_ids(self, answer: Any) -> None:
        if isinstance(answer, list):
            for item in answer:
                self._learn_topic_ids(item)
        elif isinstance(answer, dict):
            topic_id = answer.get("topic_id")
            name = answer.get("name") or answer.get("topic_name")
            if isinstance(topic_id, uuid.UUID) and topic_id.int and isinstance(name, str):
                self._topic_ids[name] = topic_id
            for item in answer.values():
                self._learn_topic_ids(item)
