"""Fetched bytes as records, and the fetcher's decisions about answers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import pytest

from odradek.client.cluster import Cluster
from odradek.client.consumer_settings import ConsumerSettings
from odradek.client.errors import BrokerError, NoOffsetForPartitionError
from odradek.client.fetched_records import ConsumerRecord, FetchedRecords
from odradek.client.fetcher import Fetcher
from odradek.client.group.committed import OffsetAndMetadata
from odradek.client.ordered.key_order import Verdict
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.batch import CorruptRecordsError
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.kernel.types import TopicPartition
from odradek.kernel.wire.messages.api_01_fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from odradek.kernel.wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

WHERE = TopicPartition("t", 0)
TOPIC_ID = uuid.UUID(int=9)


def batch(
    base_offset: int, count: int, producer_id: int = -1, *, is_transactional: bool = False, leader_epoch: int = -1
) -> bytes:
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0,
        is_transactional=is_transactional,
        partition_leader_epoch=leader_epoch,
    )
    for number in range(count):
        builder.append(None, str(base_offset + number).encode(), timestamp=1)
    return bytes(builder.build())


def marker(offset: int, producer_id: int, kind: ControlRecordType, *, leader_epoch: int = -1) -> bytes:
    return bytes(
        build_control_batch(
            [EndTransactionMarker(kind, 0)],
            timestamp=1,
            base_offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            partition_leader_epoch=leader_epoch,
        )
    )


def offsets(data: bytes, position: int = 0, aborted: list[tuple[int, int]] | None = None) -> list[int]:
    return [record.offset for record in FetchedRecords(WHERE, data, position, aborted, checks_crcs=True)]


def test_records_before_the_position_and_a_cut_off_batch_are_left_out() -> None:
    data = batch(0, 5) + batch(5, 5) + batch(10, 5)[:-3]

    assert offsets(data, 3) == list(range(3, 10))


def test_aborted_transactions_and_markers_are_hidden_from_who_reads_committed() -> None:
    data = (
        batch(0, 2, 1, is_transactional=True)
        + batch(2, 2, 2, is_transactional=True)
        + batch(4, 1)
        + marker(5, 1, ControlRecordType.ABORT)
        + batch(6, 2, 1, is_transactional=True)
        + marker(8, 2, ControlRecordType.COMMIT)
        + marker(9, 1, ControlRecordType.COMMIT)
    )

    assert offsets(data, 0, [(0, 1)]) == [2, 3, 4, 6, 7]
    assert offsets(data, 0, None) == [0, 1, 2, 3, 4, 6, 7]


def test_a_wrong_checksum_and_less_than_a_batch_are_corrupt() -> None:
    broken = bytearray(batch(0, 2))
    broken[-2] ^= 1  # a value's byte: nothing but the checksum shows it
    with pytest.raises(CorruptRecordsError, match="checksum"):
        offsets(bytes(broken))
    with pytest.raises(CorruptRecordsError, match="cut off"):
        offsets(batch(0, 2)[:40])

    assert [r.offset for r in FetchedRecords(WHERE, broken, 0, None, checks_crcs=False)] == [0, 1]


def with_offset(data: bytes, number: int, offset: int) -> bytes:
    """Put another base offset into the header of one of several batches of two records."""
    size = len(data) // 3
    return data[: number * size] + offset.to_bytes(8) + data[number * size + 8 :]


@pytest.mark.parametrize(
    ("number", "offset", "shown"),
    [(1, 6, [0, 1]), (1, 1 << 62, [0, 1]), (1, 0, [0, 1]), (0, 8, []), (2, 2, [0, 1, 2, 3])],
)
def test_a_batch_whose_offset_is_not_what_was_written_is_corrupt_and_not_shown(
    number: int, offset: int, shown: list[int]
) -> None:
    records = FetchedRecords(
        WHERE, with_offset(batch(0, 2) + batch(2, 2) + batch(4, 2), number, offset), 0, None, checks_crcs=True
    )

    assert [next(records).offset for _ in shown] == shown
    with pytest.raises(CorruptRecordsError, match="follows one that ends at"):
        next(records)


def test_gaps_of_compaction_are_none_that_are_corrupt() -> None:
    assert offsets(batch(3, 2) + batch(9, 1) + batch(20, 2), 1) == [3, 4, 9, 20, 21]
    with pytest.raises(CorruptRecordsError, match="reaches it"):
        offsets(batch(3, 2), 7)


def lead(cluster: Cluster, leader_epoch: int, leader_id: int = 1) -> None:
    topic = MetadataResponseTopic(
        name="t",
        topic_id=TOPIC_ID,
        partitions=[MetadataResponsePartition(partition_index=0, leader_id=leader_id, leader_epoch=leader_epoch)],
    )
    brokers = [MetadataResponseBroker(node_id=number, host="h", port=1) for number in (1, 2)]
    cluster.update(MetadataResponse(brokers=brokers, topics=[topic]), 0)


def make_fetcher(**more: object) -> tuple[Fetcher, Cluster]:
    cluster = Cluster()
    lead(cluster, 3)
    fetcher = Fetcher(ConsumerSettings.read({"bootstrap.servers": "h:1", **more}), cluster)
    fetcher.assign([WHERE])
    fetcher.seek(WHERE, 0)
    return fetcher, cluster


def answer(fetcher: Fetcher, data: PartitionData, now_ms: int = 0) -> bool:
    nodes, _, _ = fetcher.fetchable(now_ms)
    ((node_id, partitions),) = nodes.items()
    fetch = fetcher.begin_fetch(partitions, node_id)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="", topic_id=TOPIC_ID, partitions=[data])])
    return fetcher.finish_fetch(fetch, response, now_ms, now_ms + 100)


def test_a_partition_is_fetched_again_only_when_its_records_are_taken() -> None:
    fetcher, _ = make_fetcher()
    answer(fetcher, PartitionData(high_watermark=5, records=batch(0, 5)))

    assert fetcher.fetchable(0)[0] == {}
    assert [record.offset for record in fetcher.take(3)] == [0, 1, 2]
    assert fetcher.position(WHERE) == 3
    assert [record.offset for record in fetcher.take(3)] == [3, 4]
    assert fetcher.fetchable(0)[0] == {1: [WHERE]}


def test_an_answer_after_a_seek_is_dropped() -> None:
    fetcher, _ = make_fetcher()
    fetch = fetcher.begin_fetch([WHERE], 1)
    fetcher.seek(WHERE, 40)
    data = PartitionData(high_watermark=5, records=batch(0, 5))
    fetcher.finish_fetch(fetch, FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])]), 0, 0)

    assert fetcher.take(10) == []
    assert fetcher.position(WHERE) == 40


def test_a_look_up_that_failed_is_due_when_it_may_be_asked_again_though_another_leader_is_known() -> None:
    fetcher, cluster = make_fetcher()
    fetcher.seek_to(WHERE, -2)
    ((_, (_, generation)),) = fetcher.take_resets(0, -2).items()
    fetcher.failed({WHERE: generation}, 100)
    lead(cluster, 4, leader_id=2)

    assert fetcher.take_resets(50, -2) == {}
    assert fetcher.fetchable(50) == ({}, 100, False)
    assert list(fetcher.take_resets(100, -2)) == [WHERE]


def test_a_new_leader_in_the_answer_is_taken_over() -> None:
    fetcher, cluster = make_fetcher()
    data = PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=4)
    )

    assert answer(fetcher, data)
    assert cluster.leader_of(WHERE) == 2
    assert fetcher.fetchable(50) == ({2: [WHERE]}, float("inf"), False)
    assert fetcher.fetchable(100)[0] == {2: [WHERE]}


def test_a_follower_named_by_the_leader_is_read_from_until_it_fails() -> None:
    fetcher, _ = make_fetcher()
    answer(fetcher, PartitionData(preferred_read_replica=2, records=b""))

    assert fetcher.fetchable(0)[0] == {2: [WHERE]}
    answer(fetcher, PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert fetcher.fetchable(100)[0] == {1: [WHERE]}


def test_a_follower_is_read_from_until_the_metadata_is_old_and_then_the_leader_is_asked_anew() -> None:
    fetcher, _ = make_fetcher(**{"metadata.max.age.ms": 5_000})
    answer(fetcher, PartitionData(preferred_read_replica=2, records=b""), 1_000)
    answer(fetcher, PartitionData(records=b""), 5_999)  # it may be out of the in-sync replicas, and still answer

    assert fetcher.fetchable(5_999)[0] == {2: [WHERE]}
    assert fetcher.fetchable(6_000)[0] == {1: [WHERE]}
    answer(fetcher, PartitionData(preferred_read_replica=2, records=b""), 6_000)
    assert fetcher.fetchable(10_999)[0] == {2: [WHERE]}


def test_a_follower_is_left_when_its_partition_has_another_leader() -> None:
    fetcher, cluster = make_fetcher()
    answer(fetcher, PartitionData(preferred_read_replica=2, records=b""))
    lead(cluster, 3)
    assert fetcher.fetchable(0)[0] == {2: [WHERE]}
    lead(cluster, 4)

    assert fetcher.fetchable(0)[0] == {1: [WHERE]}


def test_a_follower_is_read_from_where_metadata_is_never_fresh_enough() -> None:
    fetcher, _ = make_fetcher(**{"metadata.max.age.ms": 0})
    answer(fetcher, PartitionData(preferred_read_replica=2, records=b""), 1_000)

    assert fetcher.fetchable(1_500)[0] == {2: [WHERE]}


@pytest.mark.parametrize("code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE])
def test_a_refusal_is_raised_by_the_next_take(code: ErrorCode) -> None:
    fetcher, _ = make_fetcher()
    answer(fetcher, PartitionData(error_code=code))

    with pytest.raises(BrokerError) as caught:
        fetcher.take(1)
    assert caught.value.code is code


def test_records_before_a_corrupt_batch_are_returned_first() -> None:
    broken = bytearray(batch(2, 2))
    broken[-1] ^= 1
    fetcher, _ = make_fetcher()
    answer(fetcher, PartitionData(records=batch(0, 2) + broken))

    assert [record.offset for record in fetcher.take(10)] == [0, 1]
    answer(fetcher, PartitionData(records=bytes(broken)))
    with pytest.raises(BrokerError, match="CORRUPT_MESSAGE"):
        fetcher.take(10)


def test_aborted_transactions_reach_the_reader() -> None:
    fetcher, _ = make_fetcher(**{"isolation.level": "read_committed"})
    records = batch(0, 2, 1, is_transactional=True) + marker(2, 1, ControlRecordType.ABORT) + batch(3, 1)
    answer(
        fetcher,
        PartitionData(records=records, aborted_transactions=[AbortedTransaction(producer_id=1, first_offset=0)]),
    )

    assert [record.offset for record in fetcher.take(10)] == [3]
    assert fetcher.take(10) == []
    assert fetcher.position(WHERE) == 4


@pytest.mark.parametrize(
    ("kind", "level", "shown"),
    [
        (ControlRecordType.COMMIT, "read_committed", [0, 1]),
        (ControlRecordType.COMMIT, "read_uncommitted", [0, 1]),
        (ControlRecordType.ABORT, "read_committed", []),
    ],
)
def test_a_position_behind_a_marker_has_the_epoch_of_the_marker_s_leader(
    kind: ControlRecordType, level: str, shown: list[int]
) -> None:
    fetcher, cluster = make_fetcher(**{"isolation.level": level})
    lead(cluster, 4)
    aborted = [AbortedTransaction(producer_id=1, first_offset=0)] if kind is ControlRecordType.ABORT else []
    records = batch(0, 2, 1, is_transactional=True, leader_epoch=3) + marker(2, 1, kind, leader_epoch=4)
    answer(fetcher, PartitionData(records=records, aborted_transactions=aborted))

    assert [record.offset for record in fetcher.take(10)] == shown
    fetcher.take(10)
    assert fetcher.consumed() == {WHERE: OffsetAndMetadata(3, leader_epoch=4)}
    lead(cluster, 5)
    ((_, check),) = fetcher.take_checks(0).items()
    assert (check.position, check.position_epoch) == (3, 4), "epoch 3 ends at 2 in every log: nothing of it was cut"
    fetcher.checked(WHERE, check, 4, 3, may_reset=False)
    assert fetcher.take(10) == []
    assert fetcher.fetchable(0)[0] == {1: [WHERE]}


def test_a_position_amid_what_was_fetched_has_the_epoch_of_the_record_before_it() -> None:
    fetcher, _ = make_fetcher()
    end = marker(4, 1, ControlRecordType.COMMIT, leader_epoch=3)
    answer(fetcher, PartitionData(records=batch(0, 2, leader_epoch=1) + batch(2, 2, leader_epoch=2) + end))

    for count, position, epoch in [(1, 1, 1), (1, 2, 1), (2, 4, 2), (1, 5, 3)]:
        fetcher.take(count)
        assert fetcher.consumed() == {WHERE: OffsetAndMetadata(position, leader_epoch=epoch)}


class PassesOver:
    """Has all but the first record of a partition passed over."""

    def begin(self, position_of: Callable[[TopicPartition], int | None]) -> None:
        pass

    def judge(self, record: ConsumerRecord) -> Verdict:
        return Verdict.GIVE if record.offset == 0 else Verdict.PASS_OVER if record.offset < 3 else Verdict.STAY

    def put_behind(self, records: Sequence[ConsumerRecord]) -> None:
        raise AssertionError("nothing is put behind")


def test_a_position_behind_records_that_were_passed_over_has_the_epoch_of_the_last_of_them() -> None:
    fetcher, _ = make_fetcher()
    fetcher.sieve = PassesOver()
    answer(fetcher, PartitionData(records=batch(0, 1, leader_epoch=1) + batch(1, 3, leader_epoch=2)))

    assert [record.offset for record in fetcher.take(10)] == [0]
    assert fetcher.consumed() == {WHERE: OffsetAndMetadata(3, leader_epoch=2)}


def test_out_of_range_is_reset_by_the_policy() -> None:
    fetcher, _ = make_fetcher()
    answer(fetcher, PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

    ((partition, (timestamp, generation)),) = fetcher.take_resets(0, -2).items()
    assert (partition, timestamp) == (WHERE, -2)
    fetcher.reset(partition, generation, 17)
    assert fetcher.position(WHERE) == 17


def test_out_of_range_without_a_policy_is_raised() -> None:
    fetcher, _ = make_fetcher()
    answer(fetcher, PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

    assert fetcher.take_resets(0, None) == {}
    with pytest.raises(NoOffsetForPartitionError):
        fetcher.take(1)
