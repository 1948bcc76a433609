"""Who asks the controller's listener wrongly: a clear refusal, and everybody else goes on."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

import pytest
import trio

from odradek.client import NewTopic
from odradek.kernel import wire
from odradek.kernel.cluster.peer_settings import peer_settings
from odradek.kernel.errors import ErrorCode
from odradek.kernel.peers.connection import Connection, open_connection
from odradek.kernel.types import METADATA_TOPIC, METADATA_TOPIC_ID
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest
from odradek.kernel.wire.messages.api_52_vote import PartitionData as Vote
from odradek.kernel.wire.messages.api_52_vote import TopicData as Voted
from odradek.kernel.wire.messages.api_52_vote import VoteRequest
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import BeginQuorumEpochRequest
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import PartitionData as Begin
from odradek.kernel.wire.messages.api_53_begin_quorum_epoch import TopicData as Begun
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import EndQuorumEpochRequest
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import PartitionData as End
from odradek.kernel.wire.messages.api_54_end_quorum_epoch import TopicData as Ended
from odradek.kernel.wire.messages.api_55_describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from odradek.kernel.wire.messages.api_58_envelope import EnvelopeRequest
from odradek.kernel.wire.messages.api_59_fetch_snapshot import (
    FetchSnapshotRequest,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest
from odradek.kernel.wire.messages.api_62_broker_registration import BrokerRegistrationRequest, Feature, Listener
from odradek.kernel.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from odradek.kernel.wire.messages.api_67_allocate_producer_ids import AllocateProducerIdsRequest
from odradek.kernel.wire.messages.api_70_controller_registration import ControllerRegistrationRequest
from odradek.kernel.wire.messages.api_73_assign_replicas_to_dirs import AssignReplicasToDirsRequest
from odradek.kernel.wire.messages.api_80_add_raft_voter import AddRaftVoterRequest
from odradek.kernel.wire.messages.api_80_add_raft_voter import Listener as VoterListener
from odradek.kernel.wire.messages.api_81_remove_raft_voter import RemoveRaftVoterRequest
from odradek.kernel.wire.messages.api_82_update_raft_voter import Listener as UpdatedListener
from odradek.kernel.wire.messages.api_82_update_raft_voter import UpdateRaftVoterRequest
from odradek.kernel.wire.messages.data_principal import DefaultPrincipalData
from odradek.lab.simulator.cluster import CONTROLLER_PORT, Cluster

from .simulated import admin, image_of, in_cluster, until

T = TypeVar("T")

OTHER_ID = UUID(int=7)
ANYBODY = b"\0\0" + wire.encode_bytes(DefaultPrincipalData(type="User", name="ANONYMOUS"), 0)
KEYS_OF_KAFKA = {
    *(1, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49, 50, 51, 52, 53, 54, 55, 56),
    *(57, 58, 59, 60, 62, 63, 64, 67, 70, 73, 80, 81, 82),
}
"""What the controller's listener of Apache Kafka 4.3.1 says it answers."""
LOCALHOST = bytes((127, 0, 0, 1))
TIMEOUT_MS = 10_000


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """What the controller's listener answers to each question, over one connection; nobody is fenced for any."""

    async def main(cluster: Cluster) -> dict[str, Any]:
        async def ask(connection: Connection) -> dict[str, Any]:
            return {
                name: await connection.request(message, timeout_ms=TIMEOUT_MS)
                for name, message in questions(cluster).items()
            }

        return await with_connection(cluster, ask)

    return in_cluster(checked(main))


async def with_connection(cluster: Cluster, work: Callable[[Connection], Awaitable[T]]) -> T:
    """Work over a connection to the controller's listener."""
    first = cluster.brokers[1].broker
    assert first is not None
    network = cluster.client_machine("stranger").network
    settings = peer_settings(first.options.config)
    async with open_connection("broker-1", CONTROLLER_PORT, settings, network=network) as connection:
        return await work(connection)


def checked(main: Callable[[Cluster], Awaitable[T]]) -> Callable[[Cluster], Awaitable[T]]:
    """Run something, and then see that all brokers live and the controller answers them."""

    async def run(cluster: Cluster) -> T:
        before = {broker.broker_id: broker.broker_epoch for broker in image_of(cluster.brokers[1]).brokers.values()}
        result = await main(cluster)
        async with admin(cluster, 3) as client:
            await client.create_topic(NewTopic("afterwards", 1, 3))
        await until(lambda: "afterwards" in image_of(cluster.brokers[2]).topics_by_name)
        await trio.sleep(15)
        brokers = image_of(cluster.brokers[2]).brokers
        assert {broker_id: brokers[broker_id].broker_epoch for broker_id in before} == before
        assert not any(broker.is_fenced for broker in brokers.values())
        return result

    return run


def fetch(*, cluster_id: str | None = None, epoch: int = 1, offset: int = 0, topic: str = METADATA_TOPIC) -> Message:
    topic_id = METADATA_TOPIC_ID if topic == METADATA_TOPIC else OTHER_ID
    partition = FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=1 if offset else 0,
        partition_max_bytes=1000,
    )
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=ReplicaState(replica_id=2),
        max_wait_ms=100,
        min_bytes=1,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])],
    )


def enveloped(message: Message, version: int) -> EnvelopeRequest:
    frame = wire.encode_request(message, version, 0, "stranger").join()[4:]
    return EnvelopeRequest(request_data=frame, request_principal=ANYBODY, client_host_address=LOCALHOST)


def registration_of_second(cluster: Cluster, cluster_id: str) -> BrokerRegistrationRequest:
    """What another process would ask that wants to be broker 2."""
    return BrokerRegistrationRequest(
        broker_id=2,
        cluster_id=cluster_id,
        incarnation_id=OTHER_ID,
        listeners=[Listener(name="PLAINTEXT", host="broker-2", port=9092)],
        features=[
            Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in image_of(cluster.brokers[1]).brokers[2].features.items()
        ],
        rack=None,
    )


def questions(cluster: Cluster) -> dict[str, Message]:
    """All that is asked, by name."""
    cut, homeless = enveloped(DeleteTopicsRequest(), 6), enveloped(DeleteTopicsRequest(), 6)
    cut.request_data = cut.request_data[:-2]
    homeless.client_host_address = b"abc"
    wanted = PartitionSnapshot(current_leader_epoch=1, snapshot_id=SnapshotId(end_offset=5, epoch=1))
    quorum = TopicData(topic_name=METADATA_TOPIC, partitions=[PartitionData()])
    return {
        "registration: another cluster": registration_of_second(cluster, "other"),
        "registration: it lives": registration_of_second(cluster, image_of(cluster.brokers[1]).cluster_id),
        "heartbeat: old": BrokerHeartbeatRequest(
            broker_id=2, broker_epoch=1, current_metadata_offset=0, want_shut_down=True
        ),
        "heartbeat: nobody": BrokerHeartbeatRequest(broker_id=9, broker_epoch=1, current_metadata_offset=0),
        "ids: old": AllocateProducerIdsRequest(broker_id=2, broker_epoch=1),
        "directories: old": AssignReplicasToDirsRequest(broker_id=2, broker_epoch=1),
        "fetch: another cluster": fetch(cluster_id="other"),
        "fetch: another topic": fetch(topic="orders"),
        "fetch: old epoch": fetch(epoch=0),
        "fetch: epoch to come": fetch(epoch=7),
        "fetch: beyond the end": fetch(offset=1_000_000),
        "fetch": fetch(),
        "snapshot": FetchSnapshotRequest(topics=[TopicSnapshot(name=METADATA_TOPIC, partitions=[wanted])]),
        "envelope: nested": enveloped(enveloped(DeleteTopicsRequest(), 6), 0),
        "envelope: not sent on": enveloped(MetadataRequest(topics=None), 12),
        "envelope: no header": EnvelopeRequest(
            request_data=b"\0\x13\0", request_principal=ANYBODY, client_host_address=LOCALHOST
        ),
        "envelope: cut short": cut,
        "envelope: no host": homeless,
        "envelope: nobody": EnvelopeRequest(request_data=b"", request_principal=None, client_host_address=LOCALHOST),
        "vote: nothing": VoteRequest(),
        "vote: another cluster": VoteRequest(cluster_id="other"),
        "vote": VoteRequest(
            topics=[Voted(topic_name=METADATA_TOPIC, partitions=[Vote(replica_epoch=9, replica_id=7)])]
        ),
        "lead": BeginQuorumEpochRequest(
            topics=[Begun(topic_name=METADATA_TOPIC, partitions=[Begin(leader_id=7, leader_epoch=9)])]
        ),
        "hand over": EndQuorumEpochRequest(
            topics=[Ended(topic_name=METADATA_TOPIC, partitions=[End(leader_id=7, leader_epoch=9)])]
        ),
        "controller: another": ControllerRegistrationRequest(controller_id=7, incarnation_id=OTHER_ID),
        "voter: none": AddRaftVoterRequest(voter_id=-1, voter_directory_id=OTHER_ID, cluster_id=None),
        "voter: nowhere": AddRaftVoterRequest(voter_id=7, voter_directory_id=OTHER_ID, cluster_id=None),
        "voter: added": AddRaftVoterRequest(
            voter_id=7,
            voter_directory_id=OTHER_ID,
            cluster_id=None,
            listeners=[VoterListener(name="CONTROLLER", host="127.0.0.1", port=1)],
        ),
        "voter: removed": RemoveRaftVoterRequest(voter_id=7, voter_directory_id=OTHER_ID, cluster_id=None),
        "voter: updated": UpdateRaftVoterRequest(
            voter_id=7,
            voter_directory_id=OTHER_ID,
            cluster_id=None,
            current_leader_epoch=1,
            listeners=[UpdatedListener(name="CONTROLLER", host="127.0.0.1", port=1)],
        ),
        "controllers": DescribeClusterRequest(endpoint_type=2),
        "brokers": DescribeClusterRequest(endpoint_type=1),
        "neither": DescribeClusterRequest(endpoint_type=7),
        "quorum": DescribeQuorumRequest(topics=[quorum]),
    }


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("registration: another cluster", ErrorCode.INCONSISTENT_CLUSTER_ID),
        ("registration: it lives", ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        ("heartbeat: old", ErrorCode.STALE_BROKER_EPOCH),
        ("heartbeat: nobody", ErrorCode.STALE_BROKER_EPOCH),
        ("ids: old", ErrorCode.STALE_BROKER_EPOCH),
        ("directories: old", ErrorCode.STALE_BROKER_EPOCH),
        ("fetch: another cluster", ErrorCode.INCONSISTENT_CLUSTER_ID),
        ("fetch: another topic", ErrorCode.INVALID_REQUEST),
        ("envelope: nested", ErrorCode.INVALID_REQUEST),
        ("envelope: not sent on", ErrorCode.INVALID_REQUEST),
        ("envelope: no header", ErrorCode.INVALID_REQUEST),
        ("envelope: cut short", ErrorCode.INVALID_REQUEST),
        ("envelope: no host", ErrorCode.INVALID_REQUEST),
        ("envelope: nobody", ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ("vote: nothing", ErrorCode.INVALID_REQUEST),
        ("vote: another cluster", ErrorCode.INCONSISTENT_CLUSTER_ID),
        ("controller: another", ErrorCode.INVALID_REGISTRATION),
        ("voter: none", ErrorCode.INVALID_REQUEST),
        ("voter: nowhere", ErrorCode.INVALID_REQUEST),
        ("voter: added", ErrorCode.UNSUPPORTED_VERSION),
        ("voter: removed", ErrorCode.UNSUPPORTED_VERSION),
        ("voter: updated", ErrorCode.VOTER_NOT_FOUND),
        ("brokers", ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        ("neither", ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_what_is_wrong_is_refused(answers: dict[str, Any], question: str, code: ErrorCode) -> None:
    assert answers[question].error_code == code


def test_the_metadata_log_is_given_from_where_it_can_be_given(answers: dict[str, Any]) -> None:
    def part(name: str) -> Any:
        return answers[f"fetch{name}"].responses[0].partitions[0]

    assert part(": old epoch").error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert part(": epoch to come").error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert (part(": beyond the end").diverging_epoch.epoch, len(part(": beyond the end").records)) == (1, 0)
    assert part("").current_leader.leader_id == 1
    assert len(part("").records) > 0


def test_its_apis_are_those_of_kafkas_controllers() -> None:
    async def main(cluster: Cluster) -> set[int]:
        async def ask(connection: Connection) -> set[int]:
            asked = ApiVersionsRequest(client_software_name="stranger", client_software_version="1")
            answer = await connection.request(asked, timeout_ms=TIMEOUT_MS)
            return {item.api_key for item in answer.api_keys}

        return await with_connection(cluster, ask)

    assert in_cluster(main) == KEYS_OF_KAFKA


@pytest.mark.parametrize("question", ["vote", "lead", "hand over"])
def test_nobody_else_leads_a_quorum_of_one(answers: dict[str, Any], question: str) -> None:
    part = answers[question].topics[0].partitions[0]

    assert (part.error_code, part.leader_id, part.leader_epoch) == (ErrorCode.INVALID_REQUEST, 1, 1)
    assert [(item.node_id, item.host) for item in answers[question].node_endpoints] == [(1, "broker-1")]


def test_a_snapshot_that_is_not_there_is_refused(answers: dict[str, Any]) -> None:
    assert answers["snapshot"].topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND


def test_controllers_are_told_on_their_listener(answers: dict[str, Any]) -> None:
    told = [(item.broker_id, item.host, item.port) for item in answers["controllers"].brokers]

    assert told == [(1, "broker-1", 9093)]


def test_the_quorum_tells_its_voter_and_who_observes_it(answers: dict[str, Any]) -> None:
    partition = answers["quorum"].topics[0].partitions[0]

    assert partition.leader_id == 1
    assert [voter.replica_id for voter in partition.current_voters] == [1]
    assert [observer.replica_id for observer in partition.observers] == [2, 3]
    assert [(item.host, item.port) for item in answers["quorum"].nodes[0].listeners] == [("broker-1", 9093)]


HOSTILE = {
    "not an API of it": b"\0\0\0\x0e\0\x03\0\x0c\0\0\0\0\0\x04evil",
    "an API of nobody": b"\0\0\0\x0a\x7f\x7f\0\0\0\0\0\0\0\0",
    "a size below 0": b"\xff\xff\xff\xff",
    "a size above all limits": b"\x7f\xff\xff\xff",
    "a registration cut short": b"\0\0\0\x0b\0\x3e\0\x04\0\0\0\0\xff\xff\0",
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "noise": random.Random(7).randbytes(2000),
}


def test_hostile_bytes_cost_their_connection_alone() -> None:
    async def main(cluster: Cluster) -> dict[str, bytes]:
        network = cluster.client_machine("stranger").network
        (address,) = await network.resolve("broker-1", CONTROLLER_PORT)
        answers = {}
        for name, data in HOSTILE.items():
            stream = await network.connect(address, send_buffer_bytes=-1, receive_buffer_bytes=-1)
            await stream.send_all(data)
            try:
                answers[name] = bytes(await stream.receive_some(100))
            except trio.BrokenResourceError:
                answers[name] = b""
        return answers

    assert in_cluster(checked(main)) == dict.fromkeys(HOSTILE, b"")
