"""Pure core: which partitions of a request exist, and answers by topic in the order in which Kafka has them.

Kafka puts what it refuses by itself first, and what its coordinator has answered after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import attrs

from odradek.kernel.api import ErrorCode

if TYPE_CHECKING:
    import uuid
    from collections.abc import Iterable, Sequence

    from odradek.kernel.api import TopicView


class _Partition(Protocol):
    partition_index: int


P = TypeVar("P", bound=_Partition)


@attrs.define
class TopicCodes:
    """The answer about one topic: partitions and their codes."""

    name: str
    topic_id: uuid.UUID
    codes: list[tuple[int, ErrorCode]] = attrs.field(factory=list)


class KnownTopic(NamedTuple, Generic[P]):
    """A topic of a request that exists, with those of its partitions that do."""

    name: str
    topic_id: uuid.UUID
    partitions: Sequence[P]


@attrs.define
class SortedTopics(Generic[P]):
    """The topics of a request: what is not there, and what is.

    Attributes:
        refused: What is not there, with its codes.
        known: What is there.
    """

    refused: list[TopicCodes] = attrs.field(factory=list)
    known: list[KnownTopic[P]] = attrs.field(factory=list)

    def add(self, view: TopicView, partitions: Sequence[P]) -> None:
        """Take a topic that is there."""
        there: list[P] = []
        gone: list[P] = []
        for item in partitions:
            is_there = 0 <= item.partition_index < view.partitions_count
            (there if is_there else gone).append(item)
        if gone:
            self.add_unknown(view.name, view.topic_id, gone, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if there:
            self.known.append(KnownTopic(view.name, view.topic_id, there))

    def add_unknown(self, name: str, topic_id: uuid.UUID, partitions: Sequence[P], code: ErrorCode) -> None:
        """Take a topic, or partitions of one, that is not there."""
        self.refused.append(TopicCodes(name, topic_id, [(item.partition_index, code) for item in partitions]))

    def merged(self, codes: Iterable[Sequence[ErrorCode]]) -> list[TopicCodes]:
        """Return the answer: what is refused, then the codes of the known, given by topic and partition."""
        if not self.refused and len(self.known) == 1:  # as nearly always
            ((name, topic_id, partitions),) = self.known
            (topic_codes,) = codes
            numbers = (item.partition_index for item in partitions)
            return [TopicCodes(name, topic_id, list(zip(numbers, topic_codes, strict=True)))]
        answers = list(self.refused)
        by_topic = {(topic.name, topic.topic_id): topic for topic in answers}
        for topic, topic_codes in zip(self.known, codes, strict=True):
            key = (topic.name, topic.topic_id)
            if key not in by_topic:
                by_topic[key] = TopicCodes(*key)
                answers.append(by_topic[key])
            numbers = (item.partition_index for item in topic.partitions)
            by_topic[key].codes += zip(numbers, topic_codes, strict=True)
        return answers

    def refused_all(self, code: ErrorCode) -> list[TopicCodes]:
        """Return the answer if everything known gets one code."""
        return self.merged([code] * len(topic.partitions) for topic in self.known)
