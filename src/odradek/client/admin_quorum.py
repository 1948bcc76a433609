"""Shell: admin calls about who keeps the metadata, and about the voters of topics.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.types import METADATA_TOPIC
from odradek.kernel.wire.messages.api_55_describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    PartitionData,
    TopicData,
)
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse

from .admin_calls import AdminCalls, check_item
from .admin_values import QuorumDescription, QuorumReplica

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from odradek.kernel.types import TopicPartition
    from odradek.kernel.wire.messages.api_55_describe_quorum import ReplicaState, ResponsePartitionData


class QuorumCalls(AdminCalls):
    """The calls of `Admin` about the metadata quorum.

    .. versionadded:: 0.1
    """

    async def find_controller(self) -> int:
        """Return the id of the node that keeps the metadata: clients take any broker for the controller."""
        return (await self.describe_quorum()).leader_id

    async def describe_quorum(self) -> QuorumDescription:
        """Return who leads those who keep the metadata, who of them votes, and how far each is."""
        wanted = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
        response: DescribeQuorumResponse = await self.call(DescribeQuorumRequest(topics=[wanted]), _check_quorum)
        ((partition,),) = (topic.partitions for topic in response.topics)
        listeners = {
            node.node_id: tuple((each.name, each.host, each.port) for each in node.listeners) for node in response.nodes
        }
        return _description(partition, listeners)

    async def describe_partition_quorums(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, QuorumDescription]:
        """Return the voters of partitions whose replicas vote, and how far each is, as their leaders tell.

        Those that nobody leads now, or whose replicas do not vote, are left out. Kafka has none that do.
        """
        wanted = {(each.topic, each.partition): each for each in partitions}
        await self.know(wanted.values())
        by_leader: dict[int, dict[str, TopicData]] = {}
        for each in wanted.values():
            leader_id = self.leader(each)()
            if leader_id is not None:
                topics = by_leader.setdefault(leader_id, {})
                topic = topics.setdefault(each.topic, TopicData(topic_name=each.topic))
                topic.partitions.append(PartitionData(partition_index=each.partition))
        found: dict[TopicPartition, QuorumDescription] = {}
        for leader_id, topics in by_leader.items():
            request = DescribeQuorumRequest(topics=list(topics.values()))
            answer: DescribeQuorumResponse = await self.call(request, _check_request, node_of=self.broker(leader_id))
            for told in answer.topics:
                for part in told.partitions:
                    place = wanted.get((told.topic_name, part.partition_index))
                    if place is not None and not part.error_code:
                        found[place] = _description(part, {})
        return found

    async def add_raft_voter(
        self, voter_id: int, directory_id: UUID, listeners: Sequence[tuple[str, str, int]]
    ) -> None:
        """Give a controller a vote that follows already.

        Args:
            voter_id: Its node.
            directory_id: Of the directory in which it has the metadata log.
            listeners: Name, host and port of each listener of its controller.

        Raises:
            BrokerError: DUPLICATE_VOTER, UNSUPPORTED_VERSION where voters are fixed, REQUEST_TIMED_OUT where it does
                not answer, or has not caught up.
        """
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=self.settings.connection.request_timeout_ms,
            voter_id=voter_id,
            voter_directory_id=directory_id,
            listeners=[Listener(name=name, host=host, port=port) for name, host, port in listeners],
        )

        def check(answer: AddRaftVoterResponse) -> None:
            check_item(answer.error_code, f"controller {voter_id}", answer.error_message)

        await self.call(request, check)

    async def remove_raft_voter(self, voter_id: int, directory_id: UUID) -> None:
        """Take a controller's vote away; it may lead no more, and follows as before.

        Args:
            voter_id: Its node.
            directory_id: Of the directory in which it has the metadata log.

        Raises:
            BrokerError: VOTER_NOT_FOUND, INVALID_REQUEST for the last one, UNSUPPORTED_VERSION where voters are fixed.
        """
        request = RemoveRaftVoterRequest(cluster_id=None, voter_id=voter_id, voter_directory_id=directory_id)

        def check(answer: RemoveRaftVoterResponse) -> None:
            check_item(answer.error_code, f"controller {voter_id}", answer.error_message)

        await self.call(request, check)


def _check_request(answer: DescribeQuorumResponse) -> None:
    check_item(answer.error_code, "quorums of topics", answer.error_message)


def _check_quorum(answer: DescribeQuorumResponse) -> None:
    check_item(answer.error_code, "metadata quorum", answer.error_message)
    for topic in answer.topics:
        for partition in topic.partitions:
            check_item(partition.error_code, "metadata quorum", partition.error_message)


def _description(
    partition: ResponsePartitionData, listeners: Mapping[int, tuple[tuple[str, str, int], ...]]
) -> QuorumDescription:
    return QuorumDescription(
        partition.leader_id,
        partition.leader_epoch,
        partition.high_watermark,
        tuple(_replicas(partition.current_voters, listeners)),
        tuple(_replicas(partition.observers, {})),
    )


def _replicas(
    states: Iterable[ReplicaState], listeners: Mapping[int, tuple[tuple[str, str, int], ...]]
) -> Iterable[QuorumReplica]:
    for state in states:
        yield QuorumReplica(
            state.replica_id,
            state.replica_directory_id,
            state.log_end_offset,
            state.last_fetch_timestamp,
            state.last_caught_up_timestamp,
            listeners.get(state.replica_id, ()),
        )
