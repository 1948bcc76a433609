"""Pure core: in which log directory each broker's replicas lie, as the brokers tell it.

A controller that knows it can take exactly those replicas for lost whose directory failed. A new partition's directory
is known beforehand where a broker has only one; otherwise, and after a move, the broker tells.

*Source:* KIP-858, AssignReplicasToDirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contracts.coordinator import CoordinatorResult
from ..metadata.image import UNASSIGNED_DIRECTORY
from ..metadata.record_makers import partition_record
from .partition_changes import with_epochs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..metadata.image import MetadataImage
    from ..metadata.records import MetadataRecord
    from .rules import Steps


def assign_directories(
    image: MetadataImage, broker_id: int, directories: Mapping[tuple[UUID, int], UUID]
) -> Steps[None]:
    """Take note of the directories of a broker's replicas.

    Args:
        image: The metadata.
        broker_id: Whose replicas.
        directories: By topic id and partition; what is no longer there, or no longer the broker's, is passed over.
    """
    records: list[MetadataRecord] = []
    for (topic_id, index), directory in directories.items():
        yield
        topic = image.topics_by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions):
            continue
        state = topic.partitions[index]
        known = topic.directories[index]
        if broker_id in state.replicas and directory_of(image, topic_id, index, broker_id) != directory:
            place = state.replicas.index(broker_id)
            changed = (*known[:place], directory, *known[place + 1 :])
            records.append(partition_record(topic_id, index, with_epochs(state, state), changed))
    return CoordinatorResult(records, None)


def directory_of(image: MetadataImage, topic_id: UUID, partition: int, broker_id: int) -> UUID:
    """Return the directory that the metadata has for a broker's replica; `UNASSIGNED_DIRECTORY` when it has none."""
    topic = image.topics_by_id.get(topic_id)
    if topic is None or partition >= len(topic.partitions):
        return UNASSIGNED_DIRECTORY
    known = dict(zip(topic.partitions[partition].replicas, topic.directories[partition], strict=True))
    return known.get(broker_id, UNASSIGNED_DIRECTORY)
