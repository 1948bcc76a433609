"""Coordinators and leaders behind the generic calls: found, lost, found again; what they say is handed on."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.kernel.wire.messages.api_60_describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.spark_plugin.client.answers import codes_in
from odradek.spark_plugin.client.coordinators import CoordinatorKind
from odradek.spark_plugin.client.errors import BrokerError, ClientTimeoutError, UnsupportedVersionError
from tests.spark_plugin.client.scripted import Broker, HangUp, Network

T0 = TopicPartition("t", 0)
PRODUCE, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, INIT_PRODUCER_ID = 0, 8, 9, 10, 22


def cluster() -> tuple[Network, Broker, Broker]:
    """Return two brokers; the second one coordinates."""
    network = Network()
    first, second = network.broker(1, "a"), network.broker(2, "b")
    network.leaders["t"] = {0: 1}
    for broker in (first, second):
        broker.handlers[FIND_COORDINATOR] = lambda request, version: FindCoordinatorResponse(
            error_code=0, error_message=None, node_id=2, host="b", port=9092
        )
    return network, first, second


def committed(*codes: ErrorCode) -> Any:
    """Return a handler of OffsetCommit that answers with these codes in turn, then with none."""
    left = list(codes)

    def handle(request: Any, version: int) -> OffsetCommitResponse:
        code = left.pop(0) if left else ErrorCode.NONE
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=int(code))
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return handle


def fetched(offset: int, *codes: ErrorCode) -> Any:
    left = list(codes)

    def handle(request: Any, version: int) -> OffsetFetchResponse:
        code = int(left.pop(0) if left else ErrorCode.NONE)
        if version < 8:
            old = OffsetFetchResponsePartition(partition_index=0, committed_offset=offset, metadata="", error_code=code)
            return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[old])])
        new = OffsetFetchResponsePartitions(partition_index=0, committed_offset=offset, metadata="", error_code=code)
        topic = OffsetFetchResponseTopics(name="t", partitions=[new])
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", error_code=0, topics=[topic])])

    return handle


def test_a_coordinator_is_looked_for_once() -> None:
    network, first, second = cluster()
    second.handlers[OFFSET_COMMIT] = committed()
    client = network.client()

    client.commit_offsets("g", {T0: 5})
    client.commit_offsets("g", {T0: 6})

    assert first.count(FIND_COORDINATOR) + second.count(FIND_COORDINATOR) == 1
    offsets = [one.topics[0].partitions[0].committed_offset for one in second.requests(OFFSET_COMMIT)]
    assert offsets == [5, 6]
    assert {version for key, version, _ in second.asked if key == OFFSET_COMMIT} == {9}


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_for_again(code: ErrorCode) -> None:
    network, first, second = cluster()
    second.handlers[OFFSET_COMMIT] = committed(code)

    network.client().commit_offsets("g", {T0: 5})

    assert first.count(FIND_COORDINATOR) + second.count(FIND_COORDINATOR) == 2


def test_a_coordinator_that_loads_is_waited_for() -> None:
    network, first, second = cluster()
    second.handlers[OFFSET_COMMIT] = committed(*[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3)

    network.client().commit_offsets("g", {T0: 5})

    assert first.count(FIND_COORDINATOR) + second.count(FIND_COORDINATOR) == 1
    assert network.clock.slept_ms > 0


def test_a_coordinator_that_hangs_up_is_looked_for_again() -> None:
    network, first, second = cluster()
    faults: list[object] = [HangUp()]
    answer = committed()
    second.handlers[OFFSET_COMMIT] = lambda request, version: faults.pop() if faults else answer(request, version)

    network.client().commit_offsets("g", {T0: 5})

    assert first.count(FIND_COORDINATOR) + second.count(FIND_COORDINATOR) == 2


def test_a_group_with_members_takes_no_offsets_and_is_told_so() -> None:
    network, _, second = cluster()
    second.handlers[OFFSET_COMMIT] = committed(ErrorCode.UNKNOWN_MEMBER_ID)

    with pytest.raises(BrokerError, match=r"group 'g': the offset of t-0 was not committed.*nobody subscribes"):
        network.client().commit_offsets("g", {T0: 5})


def test_nothing_to_commit_asks_nobody() -> None:
    network, first, second = cluster()
    client = network.client()

    client.commit_offsets("g", {})

    assert client.committed_offsets("g", []) == {}
    assert first.asked == second.asked == []


@pytest.mark.parametrize("version", [5, 7, 8, 9])
def test_committed_offsets_are_read_in_any_version(version: int) -> None:
    network, _, second = cluster()
    second.versions[OFFSET_FETCH] = (1, version)
    second.handlers[OFFSET_FETCH] = fetched(42)

    assert network.client().committed_offsets("g", [T0]) == {T0: 42}


def test_a_partition_without_an_offset_is_left_out() -> None:
    network, _, second = cluster()
    second.handlers[OFFSET_FETCH] = fetched(-1)

    assert network.client().committed_offsets("g", [T0]) == {}


def test_offsets_that_are_pending_in_a_transaction_are_waited_for() -> None:
    network, _, second = cluster()
    second.handlers[OFFSET_FETCH] = fetched(42, *[ErrorCode.UNSTABLE_OFFSET_COMMIT] * 3)

    assert network.client().committed_offsets("g", [T0], require_stable=True) == {T0: 42}
    assert [one.require_stable for one in second.requests(OFFSET_FETCH)] == [True] * 4


def test_a_coordinator_too_old_to_tell_stable_offsets_is_not_believed() -> None:
    network, _, second = cluster()
    second.versions[OFFSET_FETCH] = (1, 6)

    with pytest.raises(UnsupportedVersionError, match="b:9092 answers OffsetFetch up to version 6"):
        network.client().committed_offsets("g", [T0], require_stable=True)


def test_what_a_coordinator_says_is_handed_on() -> None:
    network, _, second = cluster()
    second.handlers[INIT_PRODUCER_ID] = lambda request, version: InitProducerIdResponse(
        error_code=int(ErrorCode.CONCURRENT_TRANSACTIONS), producer_id=-1, producer_epoch=-1
    )
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1_000)

    response = network.client().call_coordinator("x", CoordinatorKind.TRANSACTION, request, version_max=4)

    assert list(codes_in(response)) == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert [version for key, version, _ in second.asked if key == INIT_PRODUCER_ID] == [4]


def test_a_coordinator_that_may_not_be_looked_for_is_refused() -> None:
    network, first, second = cluster()
    for broker in (first, second):
        broker.handlers[FIND_COORDINATOR] = lambda request, version: FindCoordinatorResponse(
            error_code=int(ErrorCode.GROUP_AUTHORIZATION_FAILED), error_message=None, node_id=-1, host="", port=-1
        )

    with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED: no coordinator of group 'g'"):
        network.client().commit_offsets("g", {T0: 5})


def test_a_coordinator_that_never_comes_is_not_waited_for_for_ever() -> None:
    network, first, second = cluster()
    for broker in (first, second):
        broker.handlers[FIND_COORDINATOR] = lambda request, version: FindCoordinatorResponse(
            error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE), error_message=None, node_id=-1, host="", port=-1
        )

    with pytest.raises(ClientTimeoutError, match="COORDINATOR_NOT_AVAILABLE"):
        network.client(default_api_timeout_ms=3_000).commit_offsets("g", {T0: 5})
    assert network.clock.slept_ms < 3_000


def produced(*codes: ErrorCode) -> Any:
    left = list(codes)

    def handle(request: Any, version: int) -> ProduceResponse:
        code = int(left.pop(0) if left else ErrorCode.NONE)
        partition = PartitionProduceResponse(index=0, error_code=code, base_offset=7)
        topic = TopicProduceResponse(name="t", partition_responses=[partition])
        return ProduceResponse(responses=[topic])

    return handle


def test_a_call_to_a_leader_follows_the_leader() -> None:
    network, first, second = cluster()
    moved = produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def move(request: Any, version: int) -> Any:
        network.leaders["t"] = {0: 2}
        return moved(request, version)

    first.handlers[PRODUCE] = move
    second.handlers[PRODUCE] = produced()
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[])

    response = network.client().call_leader(T0, request)

    assert list(codes_in(response)) == []
    assert (first.count(PRODUCE), second.count(PRODUCE)) == (1, 1)


def test_other_codes_of_a_leader_are_the_callers() -> None:
    network, first, _ = cluster()
    first.handlers[PRODUCE] = produced(ErrorCode.MESSAGE_TOO_LARGE)
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[])

    assert list(codes_in(network.client().call_leader(T0, request))) == [ErrorCode.MESSAGE_TOO_LARGE]


def test_any_broker_that_lives_answers() -> None:
    network, first, second = cluster()
    client = network.client(bootstrap_servers="a:9092,b:9092")
    client.topics()
    first.is_down = True
    second.handlers[60] = lambda request, version: DescribeClusterResponse(
        error_code=0, error_message=None, cluster_id="c", controller_id=1, brokers=[]
    )

    assert client.call_any(DescribeClusterRequest()).cluster_id == "c"


def test_requests_go_out_in_a_pipeline_on_a_leased_connection() -> None:
    network, first, _ = cluster()
    first.handlers[PRODUCE] = produced(ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE)
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[])
    client = network.client()
    connection = client.lease(client.leader_of(T0))

    for _ in range(2):
        connection.send(request, timeout_ms=1_000)
    answers = [connection.receive(timeout_ms=1_000) for _ in range(2)]
    client.release(connection)

    assert [list(codes_in(one)) for one in answers] == [[], [ErrorCode.MESSAGE_TOO_LARGE]]
    assert client.lease(1) is connection


def test_a_produce_without_acknowledgement_is_not_waited_for() -> None:
    network, first, _ = cluster()
    first.handlers[PRODUCE] = lambda request, version: HangUp()
    client = network.client()
    connection = client.lease(client.leader_of(T0))

    connection.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), timeout_ms=1_000, is_answered=False)

    assert connection.in_flight_count == 0


def test_features_of_the_cluster_are_known() -> None:
    network, _, _ = cluster()

    assert network.client().finalized_level("transaction.version") == 0


def test_a_directory_that_is_offline_is_no_sign_of_another_leader() -> None:
    network, first, _ = cluster()
    first.handlers[PRODUCE] = produced(ErrorCode.KAFKA_STORAGE_ERROR)
    request = ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[])

    assert list(codes_in(network.client().call_leader(T0, request))) == [ErrorCode.KAFKA_STORAGE_ERROR]
