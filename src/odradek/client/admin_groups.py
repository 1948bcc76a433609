"""Shell: the admin client's calls about groups: who is in them, what they committed, and changing that.

A call about one group goes to the broker that coordinates it, and to another one when that has moved; a list is asked
of all brokers.

*Source:* `KafkaAdminClient` of Kafka 4.3; KIP-222, KIP-229, KIP-396, KIP-848, KIP-1043.

.. versionadded:: 0.1
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from odradek.kernel.errors import ErrorCode, error_code
from odradek.kernel.peers.errors import UnsupportedVersionError
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_15_describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.kernel.wire.messages.api_16_list_groups import ListGroupsRequest
from odradek.kernel.wire.messages.api_42_delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.kernel.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from odradek.kernel.wire.messages.api_69_consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

from .admin_calls import AdminCalls, check_item
from .admin_group_values import (
    DEAD,
    GroupDescription,
    GroupListing,
    classic_description,
    consumer_description,
    no_such_group,
)
from .errors import BrokerError
from .group.committed import VERSION_WITHOUT_IDS, commit_request, fetch_outcome, fetch_request
from .group.coordinator import CoordinatorLink, KeyType
from .group.member import GroupMetadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from odradek.kernel.wire.messages.api_08_offset_commit import OffsetCommitResponse
    from odradek.kernel.wire.messages.api_09_offset_fetch import OffsetFetchResponse

    from .group.committed import OffsetAndMetadata


class GroupCalls(AdminCalls):
    """The calls about groups; `Admin` has them.

    .. versionadded:: 0.1
    """

    def group_coordinator(self, group_id: str) -> CoordinatorLink:
        """Return the way to the broker that coordinates a group, as `call` takes it."""
        return CoordinatorLink(self.opened(), group_id, KeyType.GROUP, self.backoff)

    async def list_groups(self, *, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[GroupListing]:
        """Return the groups of all brokers, by id.

        Args:
            states: Only groups in one of these states, upper and lower case alike; all when empty. Needs Kafka 2.6.
            types: Only groups of one of these types; all when empty. Needs Kafka 3.8.
        """
        wanted_states, wanted_types = list(states), list(types)
        found: dict[str, GroupListing] = {}
        for node_id, response in await self.call_all(
            ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types),
            lambda answer: check_item(answer.error_code, "groups"),
        ):
            for item in response.groups:
                found[item.group_id] = GroupListing(
                    item.group_id, item.protocol_type, item.group_state, _title(item.group_type), node_id
                )
        return [found[group_id] for group_id in sorted(found)]

    async def describe_group(self, group_id: str) -> GroupDescription:
        """Return a group of consumers, of either protocol.

        Raises:
            BrokerError: GROUP_ID_NOT_FOUND: there is none; GROUP_AUTHORIZATION_FAILED, ...
        """
        with suppress(UnsupportedVersionError):  # older than KIP-848: all its groups are classic
            described = await self._describe_consumer_group(group_id)
            if described is not None:
                return described
        return await self._describe_classic_group(group_id)

    async def _describe_consumer_group(self, group_id: str) -> GroupDescription | None:
        """Return a group of the consumer protocol, None when there is no such group of this protocol."""
        coordinator = self.group_coordinator(group_id)

        def check(answer: ConsumerGroupDescribeResponse) -> None:
            for group in answer.groups:
                if group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
                    check_item(group.error_code, f"group {group_id!r}", group.error_message)

        response: ConsumerGroupDescribeResponse = await self.call(
            ConsumerGroupDescribeRequest(group_ids=[group_id]), check, coordinator=coordinator
        )
        (group,) = response.groups
        return None if group.error_code else consumer_description(group, _known(coordinator))

    async def _describe_classic_group(self, group_id: str) -> GroupDescription:
        coordinator = self.group_coordinator(group_id)
        missing: list[BrokerError] = []

        def check(answer: DescribeGroupsResponse) -> None:
            missing.clear()
            for group in answer.groups:
                if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                    missing.append(no_such_group(group_id))
                else:
                    check_item(group.error_code, f"group {group_id!r}", group.error_message)

        response: DescribeGroupsResponse = await self.call(
            DescribeGroupsRequest(groups=[group_id]), check, coordinator=coordinator
        )
        (group,) = response.groups
        if missing or group.group_state == DEAD:
            raise no_such_group(group_id)
        return classic_description(group, _known(coordinator))

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that has no members, with all that it committed.

        Raises:
            BrokerError: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, ...
        """

        def check(answer: DeleteGroupsResponse) -> None:
            for item in answer.results:
                _check_group(item.error_code, group_id)

        await self.call(
            DeleteGroupsRequest(groups_names=[group_id]), check, coordinator=self.group_coordinator(group_id)
        )

    async def list_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return what a group has committed; None where it has committed nothing.

        Args:
            group_id: The group; one that is not there has committed nothing.
            partitions: Which; all that it has committed when None.
            require_stable: Whether transactions that are about to commit offsets are waited for.
        """
        request = fetch_request(group_id, partitions, None)
        request.require_stable = require_stable

        def check(answer: OffsetFetchResponse) -> None:
            outcome, _ = fetch_outcome(answer, group_id)
            if outcome.error is not None:
                raise outcome.error

        response: OffsetFetchResponse = await self.call(
            request, check, coordinator=self.group_coordinator(group_id), version_max=VERSION_WITHOUT_IDS
        )
        return fetch_outcome(response, group_id)[1]

    async def alter_group_offsets(self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for a group that has no members; one that is not there comes to be.

        Args:
            group_id: The group.
            offsets: What its members shall read next.

        Raises:
            BrokerError: UNKNOWN_MEMBER_ID: it has members; UNKNOWN_TOPIC_OR_PARTITION, ...; partitions that the error
                does not name may have been changed.
        """

        def check(answer: OffsetCommitResponse) -> None:
            for topic in answer.topics:
                for item in topic.partitions:
                    if item.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                        raise BrokerError(
                            ErrorCode.UNKNOWN_MEMBER_ID, f"group {group_id!r} has members: stop them first"
                        )
                    _check_partition(item.error_code, group_id, topic.name, item.partition_index)

        await self.call(
            commit_request(GroupMetadata(group_id), offsets),
            check,
            coordinator=self.group_coordinator(group_id),
            version_max=VERSION_WITHOUT_IDS,
        )

    async def delete_group_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete what a group committed for partitions that no member is subscribed to.

        Raises:
            BrokerError: GROUP_SUBSCRIBED_TO_TOPIC, GROUP_ID_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION, ...; partitions that
                the error does not name may have been deleted.
        """
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for partition in partitions:
            topic = topics.setdefault(partition.topic, OffsetDeleteRequestTopic(name=partition.topic, partitions=[]))
            topic.partitions.append(OffsetDeleteRequestPartition(partition_index=partition.partition))

        def check(answer: OffsetDeleteResponse) -> None:
            _check_group(answer.error_code, group_id)
            for told in answer.topics:
                for item in told.partitions:
                    _check_partition(item.error_code, group_id, told.name, item.partition_index)

        await self.call(
            OffsetDeleteRequest(group_id=group_id, topics=list(topics.values())),
            check,
            coordinator=self.group_coordinator(group_id),
        )


def _check_group(code_number: int, group_id: str) -> None:
    if code_number == ErrorCode.GROUP_ID_NOT_FOUND:
        raise no_such_group(group_id)
    check_item(code_number, f"group {group_id!r}")


def _check_partition(code_number: int, group_id: str, topic: str, partition: int) -> None:
    code = error_code(code_number)
    if code:
        error = BrokerError(code, f"group {group_id!r}, {topic}-{partition}: {code.text}")
        # Whoever names a topic wants to know at once that there is none.
        error.retriable = code.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise error


def _known(coordinator: CoordinatorLink) -> int:
    return -1 if coordinator.node_id is None else coordinator.node_id


def _title(group_type: str) -> str:
    """Return a type as 4.x brokers tell it; 3.8 told it in lower case."""
    return group_type[:1].upper() + group_type[1:]
