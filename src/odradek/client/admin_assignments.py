"""Shell: admin calls about which brokers have a partition's replicas, and which of them leads.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.errors import error_code
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from odradek.kernel.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.kernel.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from odradek.kernel.wire.messages.api_64_unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

from .admin_calls import AdminCalls, check_item
from .admin_values import Reassignment
from .errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_PREFERRED: Final = 0
_UNCLEAN: Final = 1


class AssignmentCalls(AdminCalls):
    """The calls of `Admin` about replicas and leaders.

    .. versionadded:: 0.1
    """

    async def alter_partition_reassignments(
        self, changes: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, BrokerError]:
        """Begin to move partitions to other brokers, or cancel what was begun; the moves go on by themselves.

        Args:
            changes: For each partition the brokers that shall have it, the preferred leader first; None cancels.

        Returns:
            Those that were refused, and why; the others are under way, or done where nobody has to be added.

        Raises:
            BrokerError: All of it was refused.
        """
        topics: dict[str, list[ReassignablePartition]] = {}
        for partition, replicas in changes.items():
            wanted = None if replicas is None else list(replicas)
            item = ReassignablePartition(partition_index=partition.partition, replicas=wanted)
            topics.setdefault(partition.topic, []).append(item)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=name, partitions=items) for name, items in topics.items()],
            timeout_ms=self.settings.connection.request_timeout_ms,
        )

        def check(answer: AlterPartitionReassignmentsResponse) -> None:
            check_item(answer.error_code, "reassignment", answer.error_message)

        response: AlterPartitionReassignmentsResponse = await self.call(request, check)
        return {
            TopicPartition(topic.name, item.partition_index): _error(item.error_code, item.error_message)
            for topic in response.responses
            for item in topic.partitions
            if item.error_code
        }

    async def list_partition_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Return the partitions that are moving to other brokers."""
        request = ListPartitionReassignmentsRequest(timeout_ms=self.settings.connection.request_timeout_ms)

        def check(answer: ListPartitionReassignmentsResponse) -> None:
            check_item(answer.error_code, "reassignments", answer.error_message)

        response: ListPartitionReassignmentsResponse = await self.call(request, check)
        return {
            TopicPartition(topic.name, item.partition_index): Reassignment(
                tuple(item.replicas), tuple(item.adding_replicas), tuple(item.removing_replicas)
            )
            for topic in response.topics
            for item in topic.partitions
        }

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition] | None = None, *, is_unclean: bool = False
    ) -> dict[TopicPartition, BrokerError | None]:
        """Have the preferred replicas lead, or where nobody does a replica that may lack records.

        Args:
            partitions: Which; all that need it when None.
            is_unclean: Whether one may lead that is not in sync: what it lacks is lost.

        Returns:
            Of each partition, why nobody was elected: ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ...; None
            where somebody was. Of all partitions those alone that were elected, or should have been.

        Raises:
            BrokerError: All of it was refused.
        """
        asked: list[TopicPartitions] | None = None
        if partitions is not None:
            topics: dict[str, list[int]] = {}
            for partition in partitions:
                topics.setdefault(partition.topic, []).append(partition.partition)
            asked = [TopicPartitions(topic=name, partitions=numbers) for name, numbers in topics.items()]
        request = ElectLeadersRequest(
            election_type=_UNCLEAN if is_unclean else _PREFERRED,
            topic_partitions=asked,
            timeout_ms=self.settings.connection.request_timeout_ms,
        )

        def check(answer: ElectLeadersResponse) -> None:
            check_item(answer.error_code, "election")

        response: ElectLeadersResponse = await self.call(request, check)
        return {
            TopicPartition(topic.topic, item.partition_id): _error(item.error_code, item.error_message)
            if item.error_code
            else None
            for topic in response.replica_election_results
            for item in topic.partition_result
        }

    async def unregister_broker(self, node_id: int) -> None:
        """Have the cluster forget a broker that is stopped and does not come back.

        Raises:
            BrokerError: BROKER_ID_NOT_REGISTERED, ...
        """

        def check(answer: UnregisterBrokerResponse) -> None:
            check_item(answer.error_code, f"broker {node_id}", answer.error_message)

        await self.call(UnregisterBrokerRequest(broker_id=node_id), check)


def _error(code_number: int, detail: str | None) -> BrokerError:
    code = error_code(code_number)
    return BrokerError(code, detail or code.text)
