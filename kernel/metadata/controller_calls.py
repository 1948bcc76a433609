"""Pure core: how anything asks the controller, which may be on this broker or on another.

What is asked is a request of Kafka's protocol, so that forwarding is the same message sent on. What only the broker
that keeps the metadata log does to it (formatting, adopting, reserving ids) is no such call: `MetadataLog.submit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from ..wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)

OF_QUORUM: Final = frozenset({55, 80, 81})
"""DescribeQuorum, AddRaftVoter, RemoveRaftVoter: of several controllers the quorum itself is asked, at its leader's
listener; who is controller decides nothing of it."""

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from ..wire.message import Message


class ControllerCalls(Protocol):
    """Who brings requests to the controller."""

    async def ask(self, request: Message, timeout_ms: int | None = None) -> Any:
        """Return the controller's response, once all that it rests on is durable.

        If it is cancelled, what was asked for may or may not take place.

        Args:
            request: Of an API that the controller answers: `controller.operations`.
            timeout_ms: How long it may take; nothing below 1 is long enough for anything. None waits.

        Raises:
            KafkaError: REQUEST_TIMED_OUT: it may or may not take place; NOT_CONTROLLER; or what the controller says.
        """
        ...


class ObserverView(Protocol):
    """A broker that follows the metadata log, as DescribeQuorum tells of it."""

    @property
    def directory_id(self) -> UUID:
        """Where it keeps its copy, zero when that is not known."""
        ...

    @property
    def log_end_offset(self) -> int:
        """Where it asked last."""
        ...

    @property
    def fetched_ms(self) -> int:
        """When, by the wall clock."""
        ...

    @property
    def caught_up_ms(self) -> int:
        """When it asked from the end last, -1 for never."""
        ...


def directories_request(
    broker_id: int, broker_epoch: int, directories: Mapping[tuple[UUID, int], UUID]
) -> AssignReplicasToDirsRequest:
    """Return what tells the controller the directories of a broker's replicas, by topic id and partition."""
    told: dict[UUID, dict[UUID, TopicData]] = {}
    for (topic_id, index), directory in directories.items():
        topic = told.setdefault(directory, {}).setdefault(topic_id, TopicData(topic_id=topic_id))
        topic.partitions.append(PartitionData(partition_index=index))
    found = [DirectoryData(id=directory, topics=list(topics.values())) for directory, topics in told.items()]
    return AssignReplicasToDirsRequest(broker_id=broker_id, broker_epoch=broker_epoch, directories=found)
