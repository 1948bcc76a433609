"""The admin client's calls about groups, against a broker, and through the blocking facade."""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio

from odradek.client import Admin, BlockingAdmin, BrokerError, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorResponse
from odradek.kernel.wire.messages.api_15_describe_groups import DescribedGroup as ClassicGroup
from odradek.kernel.wire.messages.api_15_describe_groups import DescribeGroupsResponse
from odradek.kernel.wire.messages.api_69_consumer_group_describe import ConsumerGroupDescribeResponse
from odradek.kernel.wire.messages.api_69_consumer_group_describe import DescribedGroup as ConsumerGroup
from odradek.testing.running_broker import RunningBroker, running_broker

from .fake_broker import fake_broker

HERE = TopicPartition("here", 0)
FIND_COORDINATOR, DESCRIBE_GROUPS, OFFSET_FETCH, CONSUMER_GROUP_DESCRIBE = 10, 15, 9, 69


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        with BlockingAdmin({"bootstrap.servers": running.bootstrap}) as admin:
            admin.create_topic(NewTopic("here", 1))
        yield running


def test_offsets_are_committed_looked_up_and_deleted_for_a_group(broker: RunningBroker) -> None:
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.alter_group_offsets("app", {HERE: OffsetAndMetadata(7, "a note", 0)})

        assert admin.list_group_offsets("app") == {HERE: OffsetAndMetadata(7, "a note", 0)}
        assert admin.list_group_offsets("app", [TopicPartition("here", 5)]) == {TopicPartition("here", 5): None}
        assert admin.list_group_offsets("no such group", require_stable=True) == {}

        (listed,) = admin.list_groups(states=["Empty"], types=["classic"])
        described = admin.describe_group("app")

        assert (listed.group_id, listed.state, listed.type, listed.coordinator_id) == ("app", "Empty", "Classic", 1)
        assert (described.state, described.is_active, described.members) == ("Empty", False, ())

        admin.delete_group_offsets("app", [HERE])

        assert admin.list_group_offsets("app") == {}

        admin.alter_group_offsets("app", {HERE: OffsetAndMetadata(1)})
        admin.delete_group("app")

        assert admin.list_groups() == []


def test_what_is_not_there_is_told_at_once(broker: RunningBroker) -> None:
    nowhere = TopicPartition("nowhere", 0)
    with BlockingAdmin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.alter_group_offsets("told", {HERE: OffsetAndMetadata(1)})
        wrong: list[tuple[Any, ErrorCode]] = [
            (lambda: admin.describe_group("none"), ErrorCode.GROUP_ID_NOT_FOUND),
            (lambda: admin.delete_group("none"), ErrorCode.GROUP_ID_NOT_FOUND),
            (lambda: admin.delete_group_offsets("none", [HERE]), ErrorCode.GROUP_ID_NOT_FOUND),
            (lambda: admin.delete_group_offsets("told", [nowhere]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            (
                lambda: admin.alter_group_offsets("told", {nowhere: OffsetAndMetadata(1)}),
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ),
        ]
        for call, code in wrong:
            with pytest.raises(BrokerError) as caught:
                call()

            assert caught.value.code is code


def test_lag_for_read_committed_leaves_out_what_an_open_transaction_wrote(broker: RunningBroker) -> None:
    settings = {"bootstrap.servers": broker.bootstrap}

    async def lag(isolation: str) -> int:
        command = [sys.executable, "-m", "odradek", "groups", "describe", "behind", "--json", "--isolation", isolation]
        done = await trio.run_process([*command, "-b", broker.bootstrap], capture_stdout=True)
        return int(json.loads(done.stdout)[0]["lag"])

    async def run() -> tuple[list[int], list[int]]:
        async with Admin(settings) as admin, Producer({**settings, "transactional.id": "lagging"}) as producer:
            await admin.create_topic(NewTopic("behind", 1))
            await admin.alter_group_offsets("behind", {TopicPartition("behind", 0): OffsetAndMetadata(0)})
            async with producer.transaction():
                await producer.send("behind", "value")
                during = [await lag("read_uncommitted"), await lag("read_committed")]
            return during, [await lag("read_uncommitted"), await lag("read_committed")]

    during, after = trio.run(run)

    assert during == [1, 0]
    assert after == [2, 2]  # the record, and the marker that ends the transaction


# -- a broker that follows a script ----------------------------------------------------------------------------------


def asked_of(
    answers: dict[int, list[Any]], call: Callable[[Admin], Awaitable[Any]], **broker: Any
) -> tuple[Any, list[int]]:
    """Return what a call gives when a broker answers so, or the error it raises, and the APIs it asked for."""

    async def run() -> tuple[Any, list[int]]:
        async with fake_broker(answers={key: deque(some) for key, some in answers.items()}, **broker) as fake:
            here = FindCoordinatorResponse(node_id=1, host="127.0.0.1", port=fake.port)
            fake.answers[FIND_COORDINATOR] = deque([here] * 9)
            settings = {"bootstrap.servers": fake.bootstrap, "retry.backoff.ms": 1, "retry.backoff.max.ms": 1}
            async with Admin(settings) as admin:
                try:
                    return await call(admin), fake.asked
                except BrokerError as error:
                    return error.code, fake.asked

    return trio.run(run)


def classic(state: str, code: ErrorCode = ErrorCode.NONE) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[ClassicGroup(group_id="app", group_state=state, error_code=code)])


OLD: dict[str, Any] = {
    "hidden": frozenset({CONSUMER_GROUP_DESCRIBE}),
    "versions_max": {DESCRIBE_GROUPS: 5, OFFSET_FETCH: 7, FIND_COORDINATOR: 2},
}
"""As Kafka 2.8 is."""


@pytest.mark.parametrize(("state", "expected"), [("Stable", "Stable"), ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_broker_that_knows_one_protocol_only_is_asked_for_classic_groups(state: str, expected: object) -> None:
    async def call(admin: Admin) -> str:
        return (await admin.describe_group("app")).state

    found, asked = asked_of({DESCRIBE_GROUPS: [classic(state)]}, call, **OLD)

    assert found == expected
    assert asked == [FIND_COORDINATOR, FIND_COORDINATOR, DESCRIBE_GROUPS]


def test_a_coordinator_that_moved_is_found_again() -> None:
    answers = [
        classic("", ErrorCode.NOT_COORDINATOR),
        classic("", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        classic("Empty"),
    ]

    async def call(admin: Admin) -> bool:
        return (await admin.describe_group("app")).is_active

    found, asked = asked_of({DESCRIBE_GROUPS: list(answers)}, call, **OLD)

    assert found is False
    assert asked[1:] == [FIND_COORDINATOR, DESCRIBE_GROUPS] * 3


def test_a_group_that_may_not_be_seen_is_told() -> None:
    refused = ConsumerGroupDescribeResponse(
        groups=[ConsumerGroup(group_id="app", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)]
    )
    found, _ = asked_of({CONSUMER_GROUP_DESCRIBE: [refused]}, lambda admin: admin.describe_group("app"))

    assert found is ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_stable_offsets_are_waited_for() -> None:
    def answer(code: ErrorCode) -> OffsetFetchResponse:
        item = OffsetFetchResponsePartitions(partition_index=0, committed_offset=3, metadata="", error_code=code)
        topic = OffsetFetchResponseTopics(name="here", partitions=[item])
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="app", topics=[topic])])

    found, asked = asked_of(
        {OFFSET_FETCH: [answer(ErrorCode.UNSTABLE_OFFSET_COMMIT), answer(ErrorCode.NONE)]},
        lambda admin: admin.list_group_offsets("app", [HERE], require_stable=True),
    )

    assert found == {HERE: OffsetAndMetadata(3)}
    assert asked.count(OFFSET_FETCH) == 2
