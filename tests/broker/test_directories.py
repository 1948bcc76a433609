"""Where replicas lie, in the metadata: told after creation, after a move, and still known after a restart."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from odradek.kernel.controller.directory_changes import directory_of
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.wire.messages import api_34_alter_replica_log_dirs as alter_dirs
from odradek.kernel.wire.messages import api_35_describe_log_dirs as describe_dirs
from odradek.kernel.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from odradek.kernel.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.kernel.wire.messages.api_10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from tests.waiting import until, until_async

from .broker_beside import address_of, work_beside
from .broker_process import KEEPS_EVERYTHING, Client, batch_of, broker_process
from .test_live_config import BROKER, alter
from .test_process import create as create_topic
from .test_process import produce

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from uuid import UUID

    from odradek.kernel.broker.parts import BrokerParts

MOVE_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
TURNS = 200
"""More than any move takes that nobody slows down."""


def served(directory: Path, work: Callable[[BrokerParts], Awaitable[None]], *settings: str) -> None:
    """Do work beside a broker with two log directories."""
    work_beside([f"log.dirs={directory / 'one'},{directory / 'two'}", *settings], work)


def in_metadata(parts: BrokerParts) -> list[UUID]:
    topic = parts.published.image.topics_by_name["t"]
    return [directory_of(parts.published.image, topic.topic_id, index, 1) for index in range(len(topic.partitions))]


def on_disk(parts: BrokerParts) -> list[UUID]:
    (engine,) = [engine for engine in parts.logs.replicas.engines.values() if engine.log_dirs()]
    ids = {info.path: info.directory_id for info in engine.log_dirs()}
    return [ids[parts.logs.replicas.get("t", index).log.log_dir] for index in range(4)]


async def until_told(parts: BrokerParts) -> None:
    await until_async(lambda: in_metadata(parts) == on_disk(parts))


def wanted(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=30_000)


async def create(parts: BrokerParts) -> None:
    await parts.metadata.calls.create_topics(wanted("t", 4))
    await until_told(parts)


def a_move(parts: BrokerParts, directory: Path, index: int) -> alter_dirs.AlterReplicaLogDir:
    """Return what asks for a partition's move to the other directory."""
    (other,) = {str(directory / "one"), str(directory / "two")} - {parts.logs.replicas.get("t", index).log.log_dir}
    topic = alter_dirs.AlterReplicaLogDirTopic(name="t", partitions=[index])
    return alter_dirs.AlterReplicaLogDir(path=other, topics=[topic])


def ask_for_a_move(parts: BrokerParts, directory: Path, index: int) -> str:
    """Ask for a partition's move to the other directory; return which that is."""
    move = a_move(parts, directory, index)
    handler = parts.requests.router.routes[34].handler
    answer = handler.handle(alter_dirs.AlterReplicaLogDirsRequest(dirs=[move]), None)
    assert answer.results[0].partitions[0].error_code == 0
    return move.path


def futures(client: Client) -> list[tuple[str, int, int, bool]]:
    """Return the copies under way that DescribeLogDirs shows: topic, partition, lag, and that they are copies."""
    response = client.ask(describe_dirs.DescribeLogDirsRequest(topics=None), 4)
    assert isinstance(response, describe_dirs.DescribeLogDirsResponse)
    return [
        (topic.name, found.partition_index, found.offset_lag, found.is_future_key)
        for result in response.results
        for topic in result.topics
        for found in topic.partitions
        if found.is_future_key
    ]


def test_the_metadata_knows_where_replicas_lie(tmp_path: Path) -> None:
    known: list[UUID] = []

    async def create_and_move(parts: BrokerParts) -> None:
        await create(parts)
        before = on_disk(parts)
        assert len(set(before)) == 2
        ask_for_a_move(parts, tmp_path, 0)
        await until_async(lambda: on_disk(parts) != before)
        await until_told(parts)
        assert in_metadata(parts)[1:] == before[1:]
        assert in_metadata(parts)[0] != before[0]
        known.extend(in_metadata(parts))

    async def look(parts: BrokerParts) -> None:
        assert on_disk(parts) == known == in_metadata(parts)
        assert run_at_once(parts.logs.directory_reports.differences()) == {}

    served(tmp_path, create_and_move)
    served(tmp_path, look)


def test_moves_that_the_end_of_the_broker_cuts_off_are_done_after_the_next_start(tmp_path: Path) -> None:
    """As Kafka 4.3.1 does it, asked on 2026-11-22 with a move that was slowed down."""
    wanted: list[str] = []

    async def create_and_ask(parts: BrokerParts) -> None:
        await create(parts)
        wanted.extend(ask_for_a_move(parts, tmp_path, index) for index in range(4))

    async def look(parts: BrokerParts) -> None:
        replicas = [parts.logs.replicas.get("t", index) for index in range(4)]
        await until_async(lambda: all(replica.future is None for replica in replicas))
        await until_async(lambda: [replica.log.log_dir for replica in replicas] == wanted)
        await until_told(parts)

    served(tmp_path, create_and_ask)
    served(tmp_path, look)


class Committer:
    """A client that commits in one group, and asks for moves of what it commits to.

    It asks again as clients do: where a log takes another's place, its partition is led by nobody for a moment.
    """

    def __init__(self, client: Client, directory: Path) -> None:
        self._client = client
        self._directories = {str(directory / "one"), str(directory / "two")}

    def is_coordinated(self) -> bool:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        response = self._client.ask(request, 4)
        assert isinstance(response, FindCoordinatorResponse)
        return response.coordinators[0].error_code == ErrorCode.NONE and self.committed() is not None

    def last(self) -> int:
        """Return what was committed last, -1 for nothing."""
        until(lambda: self.committed() is not None)
        found = self.committed()
        return self.last() if found is None else found

    def committed(self) -> int | None:
        """Return the same, None while nobody can tell."""
        group = OffsetFetchRequestGroup(group_id="g", topics=None)
        response = self._client.ask(OffsetFetchRequest(groups=[group]), 8)
        assert isinstance(response, OffsetFetchResponse)
        (found,) = response.groups
        if found.error_code:
            return None
        return found.topics[0].partitions[0].committed_offset if found.topics else -1

    def commit(self, offset: int) -> bool:
        """Commit; return whether that is acknowledged."""
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        topic = OffsetCommitRequestTopic(name="t", partitions=[part])
        request = OffsetCommitRequest(group_id="g", member_id="", generation_id_or_member_epoch=-1, topics=[topic])
        response = self._client.ask(request, 8)
        assert isinstance(response, OffsetCommitResponse)
        return response.topics[0].partitions[0].error_code == ErrorCode.NONE

    def places(self) -> dict[str, bool]:
        """Return in which directories the topic's partition lies, and where it is a copy under way."""
        response = self._client.ask(describe_dirs.DescribeLogDirsRequest(topics=None), 4)
        assert isinstance(response, describe_dirs.DescribeLogDirsResponse)
        return {
            result.log_dir: found.is_future_key
            for result in response.results
            for topic in result.topics
            if topic.name == "__consumer_offsets"
            for found in topic.partitions
        }

    def moves(self) -> bool:
        """Ask for a move to the other directory; return whether it was begun."""
        now = [path for path, is_copy in self.places().items() if not is_copy]
        if not now:
            return False
        (other,) = self._directories.difference(now)
        topic = alter_dirs.AlterReplicaLogDirTopic(name="__consumer_offsets", partitions=[0])
        wanted = alter_dirs.AlterReplicaLogDir(path=other, topics=[topic])
        response = self._client.ask(alter_dirs.AlterReplicaLogDirsRequest(dirs=[wanted]), 2)
        assert isinstance(response, alter_dirs.AlterReplicaLogDirsResponse)
        return response.results[0].partitions[0].error_code == ErrorCode.NONE


def test_commits_outlive_kills_while_their_topic_moves_from_one_directory_to_the_other(tmp_path: Path) -> None:
    options = [f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}", "offsets.topic.num.partitions=1"]
    last = -1
    for rate in ("64", "100000000", None):  # killed in the middle of a copy, and around the swap; not at all
        rates = [] if rate is None else [f"{MOVE_RATE}={rate}"]
        with broker_process(None, *options, *rates) as broker, Client(broker.address) as client:
            create_topic(client, "t")
            committer = Committer(client, tmp_path)
            until(committer.is_coordinated)

            assert committer.last() == last

            if rate is None:
                until(lambda: list(committer.places().values()) == [False])  # noqa: B023 - called here alone

                assert committer.last() == last
                return
            until(committer.moves)
            for offset in range(last + 1, last + 11):
                until(partial(committer.commit, offset))
                last = offset
            broker.kill()


def test_the_rate_of_moves_acts_at_once(tmp_path: Path) -> None:
    async def move_slowly_then_fast(parts: BrokerParts) -> None:
        await create(parts)
        replica, address = parts.logs.replicas.get("t", 0), address_of(parts)

        def ask_for_it() -> list[tuple[str, int, int, bool]]:
            with Client(address) as client:
                assert produce(client, "t", batch_of(b"x" * 10_000)) == (ErrorCode.NONE, 0)
                assert alter(client, BROKER, "", MOVE_RATE, "1") == ErrorCode.NONE
                move = alter_dirs.AlterReplicaLogDirsRequest(dirs=[a_move(parts, tmp_path, 0)])
                client.ask(move, 2)
                return [copy for _ in range(TURNS) for copy in futures(client)]

        def hasten() -> None:
            with Client(address) as client:
                assert alter(client, BROKER, "", MOVE_RATE, "100000000") == ErrorCode.NONE

        one_record_behind = ("t", 0, 1, True)
        assert await trio.to_thread.run_sync(ask_for_it) == [one_record_behind] * TURNS
        assert parts.logs.moved_rate.bytes_a_second() > 0
        await trio.to_thread.run_sync(hasten)
        await until_async(lambda: replica.future is None)
        await until_told(parts)

    served(tmp_path, move_slowly_then_fast, KEEPS_EVERYTHING)


def test_the_metadata_log_lies_where_it_was_told_and_stays_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    served(tmp_path, create, f"metadata.log.dir={tmp_path / 'metadata'}")

    assert [path.parent.name for path in tmp_path.glob("*/__cluster_metadata-0")] == ["metadata"]
    assert not list((tmp_path / "metadata").glob("t-*"))
    assert "has no effect" not in caplog.text


def test_a_metadata_log_that_lies_elsewhere_already_stays_there_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    served(tmp_path, create)
    served(tmp_path, until_told, f"metadata.log.dir={tmp_path / 'metadata'}")

    assert [path.parent.name for path in tmp_path.glob("*/__cluster_metadata-0")] == ["one"]
    assert f"the metadata log is in {tmp_path / 'one' / '__cluster_metadata-0'} already" in caplog.text


@pytest.mark.parametrize("is_told", [True, False], ids=["told", "stopped before it was told"])
def test_replicas_of_a_directory_that_cannot_be_used_at_the_start_wait_for_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_told: bool
) -> None:
    two, away = tmp_path / "two", tmp_path / "away"
    answers: list[tuple[int, int]] = []

    async def produce_to_each(parts: BrokerParts) -> None:
        if "t" not in parts.published.image.topics_by_name:
            await (create(parts) if is_told else parts.metadata.calls.create_topics(wanted("t", 4)))
        if two.is_file():
            # What is created meanwhile has its place in the directory that works.
            await parts.metadata.calls.create_topics(wanted("other", 1))
            assert parts.logs.replicas.get("other", 0).log.log_dir == str(tmp_path / "one")
            await parts.logs.lifecycle.retry_failed_logs()
        address = address_of(parts)

        def ask() -> list[tuple[int, int]]:
            with Client(address) as client:
                return [produce(client, "t", batch_of(b"v"), partition=partition) for partition in range(4)]

        answers[:] = await trio.to_thread.run_sync(ask)

    served(tmp_path, produce_to_each)
    assert answers == [(ErrorCode.NONE, 0)] * 4
    lost = {int(path.name[2:]) for path in two.glob("t-*")}
    two.rename(away)
    two.write_text("no directory")

    served(tmp_path, produce_to_each)
    assert len(lost) == 2
    assert answers == [(ErrorCode.KAFKA_STORAGE_ERROR, -1) if n in lost else (ErrorCode.NONE, 1) for n in range(4)]
    assert not lost & {int(path.name[2:]) for path in (tmp_path / "one").glob("t-*")}
    assert caplog.text.count(f"it may lie in {two}") == len(lost)  # told once, however often it is tried

    two.unlink()
    away.rename(two)
    served(tmp_path, produce_to_each)
    assert answers == [(ErrorCode.NONE, 1 if number in lost else 2) for number in range(4)]


def test_partitions_that_nothing_was_written_to_are_where_the_metadata_has_them_after_a_restart(tmp_path: Path) -> None:
    known: list[UUID] = []

    async def create_and_note(parts: BrokerParts) -> None:
        await create(parts)
        known.extend(reversed(in_metadata(parts)))
        topic_id = parts.logs.replicas.topics["t"].topic_id
        await parts.metadata.calls.assign_directories({(topic_id, index): known[index] for index in range(4)})

    async def look(parts: BrokerParts) -> None:
        assert on_disk(parts) == known == in_metadata(parts)
        assert [parts.logs.replicas.get("t", index).log.log_end_offset for index in range(4)] == [0] * 4

    served(tmp_path, create_and_note)
    assert not list(tmp_path.glob("*/t-*"))
    served(tmp_path, look)


def test_a_log_that_is_gone_with_its_directory_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lost: set[str] = set()

    async def create_and_note(parts: BrokerParts) -> None:
        await create(parts)
        replicas = [parts.logs.replicas.get("t", index) for index in range(4)]
        lost.update(str(each.topic_partition) for each in replicas if each.log.log_dir == str(tmp_path / "two"))

    served(tmp_path, create_and_note)
    assert "begins anew" not in caplog.text
    shutil.rmtree(tmp_path / "two")

    async def do_nothing(parts: BrokerParts) -> None:
        await until_told(parts)

    served(tmp_path, do_nothing)
    told = [record.getMessage() for record in caplog.records if "begins anew" in record.getMessage()]

    assert {text.split()[1] for text in told} == lost
    caplog.clear()
    served(tmp_path, do_nothing)
    assert "begins anew" not in caplog.text


def test_a_lone_brokers_cordoned_directory_gets_no_log_and_no_move(tmp_path: Path) -> None:
    """As Kafka 4.3.1 does it, asked on 2026-11-26."""
    one, two = str(tmp_path / "one"), str(tmp_path / "two")

    async def work(parts: BrokerParts) -> None:
        await parts.metadata.calls.create_topics(wanted("t", 4))
        homes = {parts.logs.replicas.get("t", index).log.log_dir for index in range(4)}
        assert homes == {one}
        topic = alter_dirs.AlterReplicaLogDirTopic(name="t", partitions=[0])
        request = alter_dirs.AlterReplicaLogDirsRequest(dirs=[alter_dirs.AlterReplicaLogDir(path=two, topics=[topic])])
        answer = parts.requests.router.routes[34].handler.handle(request, None)
        assert answer.results[0].partitions[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        (broker,) = parts.published.image.brokers.values()
        assert len(broker.cordoned_log_dirs) == 1

    served(tmp_path, work, f"cordoned.log.dirs={two}")


def test_a_lone_broker_that_is_started_cordoned_takes_only_what_is_assigned_to_it(tmp_path: Path) -> None:
    async def work(parts: BrokerParts) -> None:
        refused = await parts.metadata.calls.create_topics(wanted("t", 4))
        assert [topic.error_code for topic in refused.topics] == [ErrorCode.INVALID_REPLICATION_FACTOR]
        by_hand = CreatableTopic(
            name="t",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
        )
        taken = await parts.metadata.calls.create_topics(CreateTopicsRequest(topics=[by_hand], timeout_ms=30_000))
        assert [topic.error_code for topic in taken.topics] == [ErrorCode.NONE]
        assert parts.logs.replicas.get("t", 0).offline_reason is None

    served(tmp_path, work, "cordoned.log.dirs=*")
