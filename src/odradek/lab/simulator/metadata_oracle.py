"""Pure core: what must be true of a cluster's metadata, whoever was its controller: told what was asked and answered.

| rule | |
| --- | --- |
| created | a topic whose creation was answered is there, with its id, until its deletion is asked for |
| deleted | a topic whose deletion was answered is gone; one of its name may be there, made by a try that came late |
| grown | a topic has as many partitions as was answered, or asked for later |
| configured | a topic's setting is the last that was answered, or one that was asked for later |
| asked | nothing is there that nobody has asked for |
| agree | two nodes that have the metadata up to the same offset have the same |

Each topic is asked about by one client, one thing after the other; what was not answered may be done at any later time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .oracle import PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


@attrs.frozen
class SeenTopic:
    """A topic as a node's metadata has it.

    Attributes:
        topic_id: Its id.
        partitions: How many it has.
        setting: The number that its setting was given last, 0 for none.
    """

    topic_id: UUID
    partitions: int
    setting: int = 0


@attrs.define
class _Topic:
    """What was asked and answered of one topic; partitions and settings grow with every question."""

    is_created: bool = False
    deletion_asked: bool = False
    is_deleted: bool = False
    partitions_min: int = 0
    partitions_max: int = 0
    setting_min: int = 0
    setting_max: int = 0
    topic_id: UUID | None = None


class MetadataOracle:
    """All topics of a run. One owner.

    Attributes:
        answered_count: How many questions were answered.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._topics: dict[str, _Topic] = {}
        self.answered_count = 0

    # -- what happens ------------------------------------------------------------------------------------------------

    def creation_asked(self, name: str, partitions: int) -> None:
        """Note that a topic is to be; of each name once."""
        self._topics[name] = _Topic(partitions_max=partitions)

    def created(self, name: str, topic_id: UUID | None) -> None:
        """Note that it was answered to be there; with its id, if that is known: another try may have been told it."""
        topic = self._topics[name]
        topic.is_created, topic.partitions_min = True, topic.partitions_max
        topic.topic_id = topic_id or topic.topic_id
        self.answered_count += 1

    def growth_asked(self, name: str, partitions: int) -> None:
        """Note that it is to have more partitions."""
        self._topics[name].partitions_max = partitions

    def grown(self, name: str) -> None:
        """Note that it was answered to have them."""
        topic = self._topics[name]
        topic.partitions_min = topic.partitions_max
        self.answered_count += 1

    def setting_asked(self, name: str, number: int) -> None:
        """Note that its setting is to be this, larger than before."""
        self._topics[name].setting_max = number

    def setting_answered(self, name: str) -> None:
        """Note that it was answered to be so."""
        topic = self._topics[name]
        topic.setting_min = topic.setting_max
        self.answered_count += 1

    def deletion_asked(self, name: str) -> None:
        """Note that it is to be gone."""
        self._topics[name].deletion_asked = True

    def deleted(self, name: str) -> None:
        """Note that it was answered to be."""
        self._topics[name].is_deleted = True
        self.answered_count += 1

    # -- what is there -----------------------------------------------------------------------------------------------

    def check(self, node: str, seen: Mapping[str, SeenTopic]) -> None:
        """Check all topics, as a node has them that has all that is committed and of whom nothing is underway."""
        for name, known in seen.items():
            self._check_seen(node, name, known)
        for name, topic in self._topics.items():
            if topic.is_created and not topic.deletion_asked and name not in seen:
                raise PromiseBrokenError("created", f"{node} has no topic {name}, whose creation was answered")

    def _check_seen(self, node: str, name: str, known: SeenTopic) -> None:
        topic = self._topics.get(name)
        if topic is None:
            raise PromiseBrokenError("asked", f"{node} has topic {name}, for which nobody asked")
        if topic.is_deleted and topic.is_created:
            if topic.topic_id == known.topic_id:
                raise PromiseBrokenError("deleted", f"{node} has topic {name}, whose deletion was answered")
            return  # an earlier try to make it was under way for longer than it lived
        if topic.topic_id not in (None, known.topic_id):
            raise PromiseBrokenError("created", f"{node} has topic {name} with id {known.topic_id}, not its first one")
        topic.topic_id = known.topic_id
        bounds = (
            ("grown", "partitions", known.partitions, topic.partitions_min, topic.partitions_max),
            ("configured", "setting", known.setting, topic.setting_min, topic.setting_max),
        )
        for rule, what, number, lowest, highest in bounds:
            if not lowest <= number <= highest:
                raise PromiseBrokenError(
                    rule, f"{node} has topic {name} with {what} {number}, not within {lowest} and {highest}"
                )


def check_same(rule: str, what: str, one: object, other: object) -> None:
    """Check that two nodes have the same.

    Raises:
        PromiseBrokenError: They have not.
    """
    if one != other:
        raise PromiseBrokenError(rule, f"{what}: {one!r} and {other!r}")
