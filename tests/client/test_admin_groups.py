"""The admin client's calls about groups, against a broker, and through the blocking facade."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from odradek.kernel.client import (
    Admin,
    BlockingAdmin,
    BrokerError,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    TopicPartition,
)
from odradek.kernel.errors import ErrorCode
from odradek.kernel.testing.running_broker import RunningBroker, running_broker

HERE = TopicPartition("here", 0)


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
