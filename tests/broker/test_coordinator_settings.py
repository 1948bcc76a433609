"""Limits of groups and transactions that a running broker holds clients to."""

from __future__ import annotations

from typing import Any

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.kernel.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from odradek.kernel.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from odradek.testing.running_broker import running_broker

from ..waiting import until
from .broker_process import Client
from .test_process import create

GROUP, TRANSACTION = 0, 1
FEW_PARTITIONS = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


def wait_coordinator(client: Client, kind: int) -> None:
    """Wait until there is a coordinator for everybody."""

    def is_there() -> bool:
        response = client.ask(FindCoordinatorRequest(key="k", key_type=kind), 3)
        assert isinstance(response, FindCoordinatorResponse)
        return response.error_code == ErrorCode.NONE

    until(is_there, pause_s=0.001)


def answer_of(client: Client, request: Any, version: int) -> Any:
    """Ask until the coordinator has loaded what it needs."""
    answers: list[Any] = []

    def is_loaded() -> bool:
        answers.append(client.ask(request, version))
        return getattr(answers[-1], "error_code", 0) != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    until(is_loaded, pause_s=0.001)
    return answers[-1]


def join(client: Client, group: str, session_timeout_ms: int) -> int:
    """Have a new member join; return the code."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return int(answer_of(client, request, 3).error_code)


def test_groups_are_as_large_and_as_patient_as_the_broker_allows() -> None:
    limits = {"group.min.session.timeout.ms": 2000, "group.max.session.timeout.ms": 3000, "group.max.size": 1}
    with running_broker({**FEW_PARTITIONS, **limits}) as broker, Client(broker.bootstrap) as client:
        wait_coordinator(client, GROUP)

        assert join(client, "g", 1999) == ErrorCode.INVALID_SESSION_TIMEOUT
        assert join(client, "g", 3001) == ErrorCode.INVALID_SESSION_TIMEOUT
        assert join(client, "g", 2000) == ErrorCode.NONE
        assert join(client, "g", 2000) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert join(client, "other", 3000) == ErrorCode.NONE


def test_what_a_group_keeps_beside_an_offset_is_no_longer_than_the_broker_allows() -> None:
    def commit(client: Client, metadata: str) -> int:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata=metadata)
        topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
        response = answer_of(client, OffsetCommitRequest(group_id="g", topics=topics), 7)
        return int(response.topics[0].partitions[0].error_code)

    with (
        running_broker({**FEW_PARTITIONS, "offset.metadata.max.bytes": 10}) as broker,
        Client(broker.bootstrap) as client,
    ):
        create(client, "t")
        wait_coordinator(client, GROUP)

        assert commit(client, "x" * 10) == ErrorCode.NONE
        assert commit(client, "x" * 11) == ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_no_transaction_may_take_longer_than_the_broker_allows() -> None:
    def begin(client: Client, timeout_ms: int) -> int:
        request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=timeout_ms)
        return int(answer_of(client, request, 4).error_code)

    with (
        running_broker({**FEW_PARTITIONS, "transaction.max.timeout.ms": 1000}) as broker,
        Client(broker.bootstrap) as client,
    ):
        wait_coordinator(client, TRANSACTION)

        assert begin(client, 1001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert begin(client, 1000) == ErrorCode.NONE
