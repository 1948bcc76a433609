"""Pure core: what nodes on their way into a cluster say to each other, in requests that Kafka has.

| asked | of a node that is unfounded | that holds a founding | that is founded |
| --- | --- | --- | --- |
| FetchSnapshot of offset 0, epoch 0; says who asks | SNAPSHOT_NOT_FOUND | the founding's checkpoint | anything |
| DescribeQuorum | LEADER_NOT_AVAILABLE, voters without directories | the same, with the founding's | anything else |

The only observer of such an answer is who gives it. Where `nodes` have an id, ids have to be the same everywhere, and
addresses where they have none: then the bootstrap servers are the candidates.

*Source:* KIP-595, KIP-630, KIP-853 for the messages; their use here is this project's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ErrorCode
from ..types import METADATA_TOPIC, ZERO_ID
from ..wire.messages import api_55_describe_quorum as quorum
from ..wire.messages import api_59_fetch_snapshot as snapshot
from .founding import UNKNOWN_ID, Candidate, Founded, FoundingNode, Holds, Told, Unfounded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from .founding import Founding

MAX_BYTES: Final = 1 << 20
"""No founding is larger: some hundred voters have fifty kilobytes."""
NO_LEADER: Final = -1


def fetch_founding(own: FoundingNode) -> snapshot.FetchSnapshotRequest:
    """Return the request for the founding's checkpoint, which says who asks."""
    part = snapshot.PartitionSnapshot(
        partition=0, current_leader_epoch=-1, snapshot_id=snapshot.SnapshotId(), replica_directory_id=own.directory_id
    )
    topic = snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=[part])
    return snapshot.FetchSnapshotRequest(replica_id=own.node_id, max_bytes=MAX_BYTES, topics=[topic])


def asker_of(request: snapshot.FetchSnapshotRequest) -> FoundingNode | None:
    """Return who asks for the founding's checkpoint; None when something else is asked for, or nobody says it."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1 or request.topics[0].name != METADATA_TOPIC:
        return None
    part = request.topics[0].partitions[0]
    wanted = (part.partition, part.snapshot_id.end_offset, part.snapshot_id.epoch, part.position)
    if any(wanted) or request.replica_id < 0 or part.replica_directory_id == ZERO_ID:
        return None
    return FoundingNode(request.replica_id, part.replica_directory_id)


def founding_answer(data: bytes | None) -> snapshot.FetchSnapshotResponse:
    """Return the answer to `fetch_founding` with the checkpoint, or without one."""
    part = snapshot.ResponsePartitionSnapshot(
        index=0,
        error_code=ErrorCode.NONE if data is not None else ErrorCode.SNAPSHOT_NOT_FOUND,
        snapshot_id=snapshot.ResponseSnapshotId(),
        current_leader=snapshot.LeaderIdAndEpoch(leader_id=NO_LEADER, leader_epoch=-1),
        size=len(data or b""),
        unaligned_records=data or b"",
    )
    topic = snapshot.ResponseTopicSnapshot(name=METADATA_TOPIC, partitions=[part])
    return snapshot.FetchSnapshotResponse(topics=[topic])


def founding_bytes(answer: snapshot.FetchSnapshotResponse) -> bytes | None:
    """Return the whole checkpoint that an answer brings; None when there is none in it."""
    if answer.error_code or len(answer.topics) != 1 or len(answer.topics[0].partitions) != 1:
        return None
    part = answer.topics[0].partitions[0]
    data = part.unaligned_records
    if not isinstance(data, bytes | bytearray | memoryview):
        return None
    data = bytes(data)
    return data if not part.error_code and part.position == 0 and 0 < part.size == len(data) else None


def describe_quorum() -> quorum.DescribeQuorumRequest:
    """Return the request for what a node says of itself."""
    topic = quorum.TopicData(topic_name=METADATA_TOPIC, partitions=[quorum.PartitionData()])
    return quorum.DescribeQuorumRequest(topics=[topic])


def self_description(
    told: Unfounded | Holds, candidates: Iterable[Candidate], listener: str
) -> quorum.DescribeQuorumResponse:
    """Return the answer to `describe_quorum` of a node that is not founded.

    Args:
        told: What it says of itself.
        candidates: Who is to found the cluster, as it is configured.
        listener: The name of the controllers' listener.
    """
    if isinstance(told, Holds):
        voters = [_replica(each.node_id, each.directory_id) for each in told.founding.voters]
        what = f"node {told.node.node_id} holds the founding of cluster {told.founding.cluster_id}, others do not yet"
    else:
        voters = [_replica(each.node_id, ZERO_ID) for each in candidates if each.node_id != UNKNOWN_ID]
        what = f"node {told.node.node_id} waits for other voters to found a cluster"
    part = quorum.ResponsePartitionData(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE,
        error_message=what,
        leader_id=NO_LEADER,
        leader_epoch=-1,
        high_watermark=-1,
        current_voters=voters,
        observers=[_replica(*told.node)],
    )
    nodes = [
        quorum.Node(node_id=each.node_id, listeners=[quorum.Listener(name=listener, host=each.host, port=each.port)])
        for each in candidates
    ]
    topic = quorum.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[part])
    return quorum.DescribeQuorumResponse(topics=[topic], nodes=nodes)


def _replica(node_id: int, directory_id: UUID) -> quorum.ReplicaState:
    return quorum.ReplicaState(replica_id=node_id, replica_directory_id=directory_id, log_end_offset=-1)


def told_by(answer: quorum.DescribeQuorumResponse, founding: Founding | None, cluster_id: str = "") -> Told | None:
    """Return what a node has said of itself; None when that says nothing.

    Args:
        answer: To `describe_quorum`.
        founding: What it gave for `fetch_founding` before, read.
        cluster_id: What it says of its cluster otherwise.
    """
    if answer.error_code or len(answer.topics) != 1 or len(answer.topics[0].partitions) != 1:
        return None
    part = answer.topics[0].partitions[0]
    if part.error_code in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
        known = cluster_id if founding is None else founding.cluster_id
        return Founded(known) if known else None
    if part.error_code != ErrorCode.LEADER_NOT_AVAILABLE or len(part.observers) != 1:
        return None
    node = FoundingNode(part.observers[0].replica_id, part.observers[0].replica_directory_id)
    if any(voter.replica_directory_id != ZERO_ID for voter in part.current_voters):
        return Holds(node, founding) if founding is not None else None
    if founding is not None:
        return None  # it came to hold it between the two answers
    wanted = [
        Candidate(each.node_id, listener.host, listener.port) for each in answer.nodes for listener in each.listeners
    ]
    return Unfounded(node, frozenset(each.key for each in wanted))


def is_founded(answer: quorum.DescribeQuorumResponse) -> bool:
    """Return whether an answer to `describe_quorum` is that of a node which is part of a cluster."""
    return told_by(answer, None, "any") == Founded("any")
