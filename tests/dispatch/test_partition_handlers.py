"""DeleteRecords, OffsetForLeaderEpoch, DescribeLogDirs, AlterReplicaLogDirs, DescribeProducers.

The same questions were asked of Apache Kafka 4.3.1, 2026-11-21.
"""

from pathlib import Path
from typing import cast

import pytest
import trio

from odradek.kernel.contracts.api_handler import AS_TASK, RequestContext
from odradek.kernel.dispatch.handlers.api_23_offset_for_leader_epoch import OffsetForLeaderEpochHandler
from odradek.kernel.dispatch.handlers.api_34_alter_replica_log_dirs import AlterReplicaLogDirsHandler
from odradek.kernel.dispatch.handlers.api_35_describe_log_dirs import DescribeLogDirsHandler
from odradek.kernel.dispatch.handlers.api_61_describe_producers import DescribeProducersHandler
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.types import IsolationLevel
from odradek.kernel.wire.messages import api_21_delete_records as delete_records
from odradek.kernel.wire.messages import api_23_offset_for_leader_epoch as leader_epoch
from odradek.kernel.wire.messages import api_34_alter_replica_log_dirs as alter_dirs
from odradek.kernel.wire.messages import api_35_describe_log_dirs as describe_dirs
from odradek.kernel.wire.messages import api_61_describe_producers as describe_producers
from tests.partitions.hosted import Hosted
from tests.waiting import until_async

from .deleting import deleting_handler

CONTEXT = cast("RequestContext", None)
"""None of these handlers looks at it."""


# ------------------------------------------------------------------------------------------------------- DeleteRecords


def delete(hosted: Hosted, topic: str, *wanted: tuple[int, int]) -> list[tuple[int, int, int]]:
    handler = deleting_handler(hosted.replicas, lambda name: name != "compacted")
    parts = [delete_records.DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in wanted]
    request = delete_records.DeleteRecordsRequest(
        topics=[delete_records.DeleteRecordsTopic(name=topic, partitions=parts)]
    )
    topics = handler.handle(request, CONTEXT).topics
    return [(p.partition_index, p.error_code, p.low_watermark) for result in topics for p in result.partitions]


def test_records_are_deleted_up_to_the_high_watermark_and_no_further(hosted: Hosted) -> None:
    hosted.open("t", 2)
    replica = hosted.produce("t", 0, 4)

    assert delete(hosted, "t", (0, 2)) == [(0, 0, 2)]
    assert delete(hosted, "t", (0, 1)) == [(0, 0, 2)]
    assert delete(hosted, "t", (0, 7)) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert delete(hosted, "t", (0, -2)) == [(0, ErrorCode.OFFSET_OUT_OF_RANGE, -1)]
    assert delete(hosted, "t", (0, 3), (1, 0), (0, -1)) == [(0, 0, 4), (1, 0, 0)]
    assert replica.offsets.log_start_offset == 4


def test_records_are_not_deleted_where_that_is_not_allowed(hosted: Hosted) -> None:
    hosted.open("compacted")
    hosted.open("__consumer_offsets")
    hosted.open("followed", leader=2)

    assert delete(hosted, "compacted", (0, 0)) == [(0, ErrorCode.POLICY_VIOLATION, -1)]
    assert delete(hosted, "__consumer_offsets", (0, 0)) == [(0, ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
    assert delete(hosted, "followed", (0, 0)) == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]
    assert delete(hosted, "nope", (0, 0)) == [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    assert delete(hosted, "compacted") == []


def test_deleting_hides_aborted_transactions_below(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 4, txn=True)
    delete(hosted, "t", (0, 3))

    assert replica.visible_end(IsolationLevel.READ_COMMITTED) == 3


# ------------------------------------------------------------------------------------------------ OffsetForLeaderEpoch


@pytest.mark.parametrize(
    ("index", "current_epoch", "epoch", "expected"),
    [
        (0, -1, 0, (0, 0, 4)),
        (0, 0, 0, (0, 0, 4)),
        (0, 1, 0, (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)),
        (0, -1, 1, (0, -1, -1)),
        (0, -1, -1, (0, -1, -1)),
        (1, -1, 0, (0, 0, 0)),
        (9, -1, 0, (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)),
    ],
)
def test_the_end_of_an_epoch_is_told(
    hosted: Hosted, index: int, current_epoch: int, epoch: int, expected: tuple[int, int, int]
) -> None:
    hosted.open("t", 2)
    hosted.produce("t", 0, 4)
    wanted = leader_epoch.OffsetForLeaderPartition(
        partition=index, current_leader_epoch=current_epoch, leader_epoch=epoch
    )
    request = leader_epoch.OffsetForLeaderEpochRequest(
        topics=[leader_epoch.OffsetForLeaderTopic(topic="t", partitions=[wanted])]
    )
    (topic,) = OffsetForLeaderEpochHandler(replicas=hosted.replicas).handle(request, CONTEXT).topics
    (part,) = topic.partitions

    assert (part.error_code, part.leader_epoch, part.end_offset) == expected
    assert part.partition == index


# ----------------------------------------------------------------------------------------------------- log directories


def dirs_of(hosted: Hosted, wanted: dict[str, list[int]] | None) -> dict[str, dict[str, list[int]]]:
    topics = None
    if wanted is not None:
        topics = [describe_dirs.DescribableLogDirTopic(topic=name, partitions=parts) for name, parts in wanted.items()]
    request = describe_dirs.DescribeLogDirsRequest(topics=topics)
    response = DescribeLogDirsHandler(replicas=hosted.replicas, is_cordoned=lambda _path: False).handle(
        request, CONTEXT
    )
    assert all(result.error_code == 0 and result.total_bytes > 0 for result in response.results)
    return {
        Path(result.log_dir).name: {
            topic.name: sorted(part.partition_index for part in topic.partitions) for topic in result.topics
        }
        for result in response.results
    }


def test_log_directories_tell_what_lies_in_them(hosted: Hosted) -> None:
    hosted.open("t", 2)
    hosted.open("u", 1)
    everything = dirs_of(hosted, None)

    assert sorted((name, *parts) for topics in everything.values() for name, parts in topics.items()) == [
        ("t", 0),
        ("t", 1),
        ("u", 0),
    ]
    assert dirs_of(hosted, {}) == {"one": {}, "two": {}}
    assert dirs_of(hosted, {"nope": [0], "t": []}) == {"one": {}, "two": {}}
    assert sum(len(topics) for topics in dirs_of(hosted, {"t": [1, 9]}).values()) == 1


def test_the_size_of_a_log_is_told(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0)
    response = DescribeLogDirsHandler(replicas=hosted.replicas, is_cordoned=lambda _path: False).handle(
        describe_dirs.DescribeLogDirsRequest(topics=None), CONTEXT
    )
    (part,) = [part for result in response.results for topic in result.topics for part in topic.partitions]

    assert (part.partition_size, part.offset_lag, part.is_future_key) == (replica.log.size_bytes, 0, False)


def alter(hosted: Hosted, path: str, topic: str, *indexes: int) -> dict[int, int]:
    async def main() -> alter_dirs.AlterReplicaLogDirsResponse:
        moves = hosted.moves()
        handler = AlterReplicaLogDirsHandler(replicas=hosted.replicas, moves=moves, is_cordoned=lambda _path: False)
        moved = alter_dirs.AlterReplicaLogDirTopic(name=topic, partitions=list(indexes))
        request = alter_dirs.AlterReplicaLogDirsRequest(dirs=[alter_dirs.AlterReplicaLogDir(path=path, topics=[moved])])
        response = handler.handle(request, CONTEXT)
        assert isinstance(response, alter_dirs.AlterReplicaLogDirsResponse)
        async with trio.open_nursery() as nursery:
            await nursery.start(moves.run)
            await until_async(lambda: all(replica.future is None for replica in hosted.replicas))
            nursery.cancel_scope.cancel()
        return response

    (result,) = trio.run(main).results
    assert result.topic_name == topic
    return {part.partition_index: part.error_code for part in result.partitions}


def test_a_replica_moves_to_another_directory_with_all_it_has(hosted: Hosted) -> None:
    hosted.open("t")
    replica = hosted.produce("t", 0, 4)
    before = replica.offsets
    (target,) = [path for path in hosted.dirs if path != replica.log.log_dir]

    assert alter(hosted, target, "t", 0) == {0: 0}
    assert replica.log.log_dir == target
    assert replica.offsets == before
    assert hosted.produce("t", 4).offsets.log_end_offset == 5
    assert dirs_of(hosted, None)[Path(target).name] == {"t": [0]}


def test_moving_to_where_it_is_changes_nothing_and_elsewhere_is_refused(hosted: Hosted) -> None:
    hosted.open("t")
    here = hosted.replicas.get("t", 0).log.log_dir

    assert alter(hosted, here, "t", 0, 9) == {0: 0, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert alter(hosted, "/nope", "t", 0) == {0: ErrorCode.LOG_DIR_NOT_FOUND}
    assert alter(hosted, here + "/", "t", 0) == {0: ErrorCode.LOG_DIR_NOT_FOUND}
    assert alter(hosted, "/nope", "nope", 0) == {0: ErrorCode.LOG_DIR_NOT_FOUND}
    assert alter(hosted, here, "nope", 0) == {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


# --------------------------------------------------------------------------------------------------- DescribeProducers


def producers_of(hosted: Hosted, topic: str, *indexes: int) -> list[describe_producers.PartitionResponse]:
    request = describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name=topic, partition_indexes=list(indexes))]
    )
    (result,) = DescribeProducersHandler(replicas=hosted.replicas).handle(request, CONTEXT).topics
    assert result.name == topic
    return cast("list[describe_producers.PartitionResponse]", result.partitions)


def test_the_producers_of_a_partition_are_described(hosted: Hosted) -> None:
    hosted.open("t", 2)
    hosted.produce("t", 0, 2)
    hosted.produce("t", 7, 2, producer_id=6, epoch=3, txn=True)
    known, empty, unknown = producers_of(hosted, "t", 0, 1, 9)
    now_ms = hosted.clock.now_ms()

    assert known.active_producers == [
        describe_producers.ProducerState(
            producer_id=5, producer_epoch=0, last_sequence=1, last_timestamp=now_ms, coordinator_epoch=-1
        ),
        describe_producers.ProducerState(
            producer_id=6,
            producer_epoch=3,
            last_sequence=8,
            last_timestamp=now_ms,
            coordinator_epoch=-1,
            current_txn_start_offset=2,
        ),
    ]
    assert (empty.error_code, empty.active_producers) == (0, [])
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)


def test_producers_that_come_and_go_while_many_are_described_spoil_nothing(hosted: Hosted) -> None:
    hosted.open("t")
    for producer_id in range(700):
        hosted.produce("t", 0, 1, producer_id=producer_id)
    topic = describe_producers.TopicRequest(name="t", partition_indexes=[0])
    request = describe_producers.DescribeProducersRequest(topics=[topic])
    handler = DescribeProducersHandler(replicas=hosted.replicas)
    assert handler.handle(request, CONTEXT) is AS_TASK
    steps = handler.answer_in_steps(request, CONTEXT)
    next(steps)
    hosted.produce("t", 0, 1, producer_id=700)
    hosted.replicas.get("t", 0).producers.clear()
    answer = run_at_once(steps)

    assert [each.producer_id for each in answer.topics[0].partitions[0].active_producers] == list(range(700))


def test_a_topic_that_is_not_here_or_cannot_be_has_no_producers(hosted: Hosted) -> None:
    (unknown,) = producers_of(hosted, "nope", 0)
    (invalid,) = producers_of(hosted, "a b", 0)

    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message
    assert invalid.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "'a b'" in (invalid.error_message or "")
    assert producers_of(hosted, "nope") == []


# -------------------------------------------------------------------------------------------------------------- errors


def test_every_handler_can_give_every_part_an_error(hosted: Hosted) -> None:
    code, replicas = ErrorCode.CLUSTER_AUTHORIZATION_FAILED, hosted.replicas
    deleting = deleting_handler(replicas, lambda name: True).error_response(
        delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name="t", partitions=[delete_records.DeleteRecordsPartition(partition_index=3)]
                )
            ]
        ),
        CONTEXT,
        code,
        "",
    )
    epochs = OffsetForLeaderEpochHandler(replicas=replicas).error_response(
        leader_epoch.OffsetForLeaderEpochRequest(
            topics=[
                leader_epoch.OffsetForLeaderTopic(
                    topic="t", partitions=[leader_epoch.OffsetForLeaderPartition(partition=3)]
                )
            ]
        ),
        CONTEXT,
        code,
        "",
    )
    moving = AlterReplicaLogDirsHandler(
        replicas=replicas, moves=hosted.moves(), is_cordoned=lambda _path: False
    ).error_response(
        alter_dirs.AlterReplicaLogDirsRequest(
            dirs=[
                alter_dirs.AlterReplicaLogDir(
                    path="/d", topics=[alter_dirs.AlterReplicaLogDirTopic(name="t", partitions=[3])]
                )
            ]
        ),
        CONTEXT,
        code,
        "",
    )
    producing = DescribeProducersHandler(replicas=replicas).error_response(
        describe_producers.DescribeProducersRequest(
            topics=[describe_producers.TopicRequest(name="t", partition_indexes=[3])]
        ),
        CONTEXT,
        code,
        "why",
    )
    dirs = DescribeLogDirsHandler(replicas=replicas, is_cordoned=lambda _path: False).error_response(
        describe_dirs.DescribeLogDirsRequest(), CONTEXT, code, ""
    )

    assert deleting.topics[0].partitions[0].error_code == code
    assert epochs.topics[0].partitions[0].error_code == code
    assert moving.results[0].partitions[0].error_code == code
    assert producing.topics[0].partitions[0].error_message == "why"
    assert dirs.error_code == code
