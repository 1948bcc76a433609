"""Pure core: how many partitions are not as they should be, counted as the metadata changes: asking costs nothing.

Each change takes away what the partitions that it names counted as in the image before, and adds what they count as in
the new one. So nothing is kept but the sums, and no walk over all partitions is needed but for the first image, and
where the cluster's `min.insync.replicas` changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .image import NO_LEADER, MetadataImage, ResourceType, is_reassigned

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from uuid import UUID

    from ..contracts.election import PartitionState
    from .image import MetadataDelta, TopicImage

PARTITIONS_PER_STEP: Final = 20
"""They take a microsecond or two each."""
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"


class PartitionCounts:
    """Life: made, `begin` with the first image, `changed` as a listener of those after it. Owned by who publishes them.

    Attributes:
        offline: Partitions of the cluster that nobody leads.
        under_replicated: Of those that this broker leads: some replica is not in sync; those that a reassignment adds
            do not count.
        reassigning: Of those that this broker leads: replicas are being added, or removed.
        under_min_isr: Of those that this broker leads: fewer than `min.insync.replicas` are in sync.
        at_min_isr: Of those that this broker leads: just as many are in sync.
        elections: How often a partition that was there got another leader, since the start.
    """

    __slots__ = (
        "_image",
        "_least",
        "_node_id",
        "at_min_isr",
        "elections",
        "offline",
        "reassigning",
        "under_min_isr",
        "under_replicated",
    )

    def __init__(self, node_id: int, min_insync_replicas: int) -> None:
        """Begin without partitions.

        Args:
            node_id: This broker.
            min_insync_replicas: What the key is where the metadata does not say.
        """
        self.offline = self.under_replicated = self.under_min_isr = self.at_min_isr = self.elections = 0
        self.reassigning = 0
        self._node_id = node_id
        self._least = min_insync_replicas
        self._image = MetadataImage()

    def __repr__(self) -> str:
        return f"<PartitionCounts: {self.offline} offline, {self.under_replicated} under-replicated here>"

    def begin(self, image: MetadataImage) -> None:
        """Count the partitions of the first image."""
        self._image = image
        for topic in image.topics_by_id.values():
            least = self._min_insync(image, topic)
            for state in topic.partitions:
                self._add(state, least, 1)

    def changed(self, delta: MetadataDelta, image: MetadataImage) -> Generator[None, None, None]:
        """Follow a change of the metadata; yields now and then."""
        before, self._image = self._image, image
        count = 0
        for topic_id, indexes in self._touched(delta, before, image).items():
            old, new = before.topics_by_id.get(topic_id), image.topics_by_id.get(topic_id)
            old_least = 0 if old is None else self._min_insync(before, old)
            new_least = 0 if new is None else self._min_insync(image, new)
            for index in indexes:
                was, now = _state(old, index), _state(new, index)
                if was is not None:
                    self._add(was, old_least, -1)
                if now is not None:
                    self._add(now, new_least, 1)
                if was is not None and now is not None:
                    self.elections += now.leader not in (was.leader, NO_LEADER)
                count += 1
                if count % PARTITIONS_PER_STEP == 0:
                    yield

    def _touched(self, delta: MetadataDelta, before: MetadataImage, image: MetadataImage) -> dict[UUID, Iterable[int]]:
        """Return the partitions that may count as something else now."""
        touched: dict[UUID, Iterable[int]] = dict(delta.changed_partitions)
        whole: Iterable[TopicImage] = [
            image.topics_by_name[name]
            for kind, name in delta.changed_configs
            if kind == ResourceType.TOPIC and name in image.topics_by_name
        ]
        if self._default(before) != self._default(image):
            whole = image.topics_by_id.values()
        for topic in (*whole, *delta.deleted_topics):
            touched[topic.topic_id] = range(len(topic.partitions))
        return touched

    def _min_insync(self, image: MetadataImage, topic: TopicImage) -> int:
        own = image.topic_config(topic.name).get(MIN_INSYNC_REPLICAS)
        return int(own) if own else self._default(image)

    def _default(self, image: MetadataImage) -> int:
        for name in (str(self._node_id), ""):
            found = image.config(ResourceType.BROKER, name).get(MIN_INSYNC_REPLICAS)
            if found:
                return int(found)
        return self._least

    def _add(self, state: PartitionState, min_insync_replicas: int, sign: int) -> None:
        if state.leader == NO_LEADER:
            self.offline += sign
        elif state.leader == self._node_id:
            in_sync, replicas = len(state.isr), len(state.replicas)
            least = min(min_insync_replicas, replicas)
            self.under_replicated += sign * (in_sync < replicas - len(state.adding_replicas))
            self.under_min_isr += sign * (in_sync < least)
            self.reassigning += sign * is_reassigned(state)
            self.at_min_isr += sign * (in_sync == least)


def _state(topic: TopicImage | None, index: int) -> PartitionState | None:
    return topic.partitions[index] if topic is not None and index < len(topic.partitions) else None
