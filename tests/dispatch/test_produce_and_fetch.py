"""Produce and Fetch through router, handlers, replicas and real segment files, one turn at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.kernel.contracts.election import PartitionState
from odradek.kernel.contracts.storage import LogConfig
from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.turnstile import run_at_once
from odradek.kernel.partitions.replica import Replica, TopicSettings
from odradek.kernel.records.batch import MAGIC_POSITION
from odradek.kernel.records.validation import ValidationRules
from odradek.kernel.wire.codec import decode
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)

from .house import (
    House,
    batch,
    fetch_part,
    fetch_request,
    follower_request,
    produce_parts,
    produce_request,
    values,
)
from .memory_client import MemoryClient


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.hosted.lifecycle.close()


# ------------------------------------------------------------------------------------------------------------- Produce


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(3, 13))
def test_one_batch_is_answered_alike_by_template_and_by_codec(house: House, acks: int, version: int) -> None:
    house.hosted.open("t", 2)
    for _ in range(2):
        house.client.ask(produce_request((0, batch(b"a", b"b")), acks=acks), version)
        house.client.ask(produce_request((0, batch(b"a")), (1, batch(b"a")), acks=acks), version)

    (by_template,) = produce_parts(house.client.ask(produce_request((0, batch(b"c")), acks=acks), version))
    by_codec, _ = produce_parts(
        house.client.ask(produce_request((0, batch(b"d")), (1, batch(b"a")), acks=acks), version)
    )

    assert (by_template.base_offset, by_codec.base_offset) == (6, 7)
    by_codec.base_offset = by_template.base_offset
    assert by_template == by_codec


def test_nothing_is_answered_or_visible_before_the_turn_ends(house: House) -> None:
    house.hosted.open("t")
    replica = house.hosted.replicas.get("t", 0)

    house.client.send(produce_request((0, batch(b"a"))), 9)

    assert house.client.received() == []
    assert replica.high_watermark == 0
    house.client.turn()
    assert [part.error_code for answer in house.client.received() for part in produce_parts(answer)] == [0]
    assert replica.high_watermark == 1


@pytest.mark.parametrize("walks_records", [False, True])
@pytest.mark.parametrize("beside", [(), ((1, batch(b"a")),)], ids=["alone", "beside another"])
def test_a_batch_fills_a_segment_at_most(house: House, walks_records: bool, beside: tuple[Any, ...]) -> None:
    house.hosted.open("t", 2)
    largest = batch(b"x" * 100)
    replica = house.hosted.replicas.get("t", 0)
    rules = ValidationRules(segment_bytes=len(largest), walks_records=walks_records)
    replica.settings = TopicSettings(rules, min_insync_replicas=1)

    accepted, *_ = produce_parts(house.client.ask(produce_request((0, largest), *beside), 9))
    refused, *_ = produce_parts(house.client.ask(produce_request((0, batch(b"x" * 101)), *beside), 9))

    assert (accepted.error_code, accepted.base_offset) == (0, 0)
    assert (refused.error_code, refused.base_offset) == (ErrorCode.RECORD_LIST_TOO_LARGE, -1)
    assert replica.log.log_end_offset == 1


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_what_is_asked_behind_a_produce_sees_what_it_wrote(house: House, acks: int) -> None:
    house.hosted.open("t")
    frames = produce_request((0, batch(b"a")), acks=acks), fetch_request(max_wait_ms=0)
    together = [encode_request(frames[0], 9, 1, "test").join(), encode_request(frames[1], 11, 2, "test").join()]

    house.client.send_bytes(b"".join(together))
    house.client.turn()
    assert len(house.client.frames()) == abs(acks)
    house.client.connection.process(house.router)

    (answer,) = house.client.frames()
    assert values(fetch_part(decode(FetchResponse, memoryview(answer), 11, position=4))) == [b"a"]


def test_requests_of_one_turn_are_answered_in_order(house: House) -> None:
    house.hosted.open("t")
    for _ in range(3):
        house.client.send(produce_request((0, batch(b"a"))), 9)
    house.client.turn()

    offsets = [part.base_offset for answer in house.client.received() for part in produce_parts(answer)]

    assert offsets == [0, 1, 2]


def test_each_partition_is_answered_for_itself(house: House) -> None:
    house.hosted.open("t", 2)
    broken = bytearray(batch(b"a"))
    broken[-1] ^= 1

    good, bad, null, unknown = produce_parts(
        house.client.ask(produce_request((0, batch(b"a")), (1, bytes(broken)), (1 << 20, None), (7, batch(b"a"))), 9)
    )

    assert (good.error_code, good.base_offset) == (0, 0)
    assert (bad.error_code, bad.base_offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
    assert null.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_odd_acks_are_refused(house: House) -> None:
    house.hosted.open("t")

    (part,) = produce_parts(house.client.ask(produce_request((0, batch(b"a")), acks=2), 9))

    assert part.error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_acks_0_is_never_answered_and_a_failure_closes_the_connection(house: House) -> None:
    house.hosted.open("t")
    house.client.send(produce_request((0, batch(b"a")), acks=0), 9)
    house.client.turn()
    assert house.client.frames() == []
    assert not house.client.connection.is_closing
    assert house.hosted.replicas.get("t", 0).high_watermark == 1

    house.client.send(produce_request((3, batch(b"a")), acks=0), 9)
    house.client.turn()

    assert house.client.frames() == []
    assert house.client.connection.is_closing


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state"])
def test_clients_may_not_write_to_internal_topics(house: House, topic: str) -> None:
    house.hosted.open(topic)

    (part,) = produce_parts(house.client.ask(produce_request((0, batch(b"a")), topic=topic), 9))

    assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_duplicate_is_answered_with_the_original_offset_and_not_appended(house: House) -> None:
    house.hosted.open("t")
    twice = batch(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    house.client.ask(produce_request((0, batch(b"x"))), 9)

    first, second = (produce_parts(house.client.ask(produce_request((0, twice)), 9))[0] for _ in range(2))

    assert (first.base_offset, second.base_offset) == (1, 1)
    assert house.hosted.replicas.get("t", 0).high_watermark == 2


# ------------------------------------------------------------------------------------------------- with a follower


def followed(house: House) -> Replica:
    """A partition that leads with a second replica in sync."""
    house.hosted.open("t")
    replica = house.hosted.replicas.get("t", 0)
    house.hosted.lifecycle.apply_leadership(
        replica, PartitionState(leader=1, leader_epoch=1, partition_epoch=1, replicas=(1, 2), isr=(1, 2))
    )
    return replica


def test_acks_all_waits_for_the_follower_and_holds_back_later_requests(house: House) -> None:
    replica = followed(house)
    house.client.send(produce_request((0, batch(b"a"))), 9)
    house.client.turn()
    assert house.client.received() == []

    MemoryClient(house.router).ask(fetch_request(1, max_wait_ms=0, replica_id=2), 11)
    of_no_process = house.client.received()
    early = MemoryClient(house.router).ask(follower_request(replica.partition.topic_id, 1, broker_epoch=9), 15)
    of_an_earlier_process = house.client.received()
    MemoryClient(house.router).ask(follower_request(replica.partition.topic_id, 1), 15)

    (answer,) = house.client.received()
    assert (of_no_process, of_an_earlier_process) == ([], [])
    assert fetch_part(early).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [part.error_code for part in produce_parts(answer)] == [0]


def test_acks_all_gives_up_in_time_and_acks_1_does_not_wait(house: House) -> None:
    followed(house)
    other = MemoryClient(house.router)
    house.client.send(produce_request((0, batch(b"a")), timeout_ms=100), 9)
    house.client.turn()

    (at_once,) = produce_parts(other.ask(produce_request((0, batch(b"b")), acks=1), 9))
    house.pass_time(101)

    (answer,) = house.client.received()
    assert at_once.error_code == 0
    assert [part.error_code for part in produce_parts(answer)] == [ErrorCode.REQUEST_TIMED_OUT]


def test_losing_leadership_ends_the_wait_of_producers_and_consumers(house: House) -> None:
    replica = followed(house)
    consumer = MemoryClient(house.router)
    house.client.send(produce_request((0, batch(b"a"))), 9)
    consumer.send(fetch_request(0, max_wait_ms=60_000), 10)
    house.client.turn()

    house.hosted.lifecycle.apply_leadership(
        replica, PartitionState(leader=2, leader_epoch=2, partition_epoch=2, replicas=(1, 2), isr=(2,))
    )

    (produced,) = house.client.received()
    (fetched,) = consumer.received()
    assert [part.error_code for part in produce_parts(produced)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert fetch_part(fetched).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_consumer_sees_nothing_that_a_follower_lacks(house: House) -> None:
    followed(house)
    house.client.ask(produce_request((0, batch(b"a")), acks=1), 9)

    consumer = fetch_part(MemoryClient(house.router).ask(fetch_request(0, max_wait_ms=0), 11))
    follower = fetch_part(MemoryClient(house.router).ask(fetch_request(0, max_wait_ms=0, replica_id=2), 11))

    assert (values(consumer), consumer.high_watermark) == ([], 0)
    assert values(follower) == [b"a"]


# --------------------------------------------------------------------------------------------------------------- Fetch


def test_a_fetch_gives_whole_batches_from_the_one_that_holds_the_offset(house: House) -> None:
    house.hosted.open("t")
    house.client.ask(produce_request((0, batch(b"a", b"b", b"c"))), 9)

    part = fetch_part(house.client.ask(fetch_request(1, max_wait_ms=0), 11))

    assert values(part) == [b"a", b"b", b"c"]
    assert (part.high_watermark, part.last_stable_offset, part.log_start_offset) == (3, 3, 0)
    assert part.aborted_transactions is None


def test_a_long_poll_is_woken_by_an_append(house: House) -> None:
    house.hosted.open("t")
    consumer = MemoryClient(house.router)
    consumer.send(fetch_request(0, max_wait_ms=60_000), 11)
    consumer.turn()
    assert consumer.received() == []

    house.client.ask(produce_request((0, batch(b"a"))), 9)

    (answer,) = consumer.received()
    assert values(fetch_part(answer)) == [b"a"]


def test_a_long_poll_waits_for_min_bytes(house: House) -> None:
    house.hosted.open("t")
    consumer = MemoryClient(house.router)
    size_bytes = len(batch(b"a"))
    consumer.send(fetch_request(0, max_wait_ms=60_000, min_bytes=2 * size_bytes), 11)
    house.client.ask(produce_request((0, batch(b"a"))), 9)
    assert consumer.received() == []

    house.client.ask(produce_request((0, batch(b"b"))), 9)

    (answer,) = consumer.received()
    assert values(fetch_part(answer)) == [b"a", b"b"]


def polled(house: House, limits: dict[int, int], min_bytes: int, max_bytes: int = 1 << 20) -> MemoryClient:
    """Return a consumer that polls partitions from their begin on, with limits of their own."""
    consumer = MemoryClient(house.router)
    wanted = [FetchPartition(partition=index, partition_max_bytes=limit) for index, limit in limits.items()]
    topics = [FetchTopic(topic="t", partitions=wanted)]
    consumer.send(FetchRequest(max_wait_ms=60_000, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics), 11)
    consumer.turn()
    return consumer


@pytest.mark.parametrize(
    ("partition_max_bytes", "min_bytes", "max_bytes", "is_due"),
    [(1000, 1000, 1 << 20, True), (1000, 1001, 1 << 20, False), (1 << 20, 1000, 1000, True), (1000, 9000, 900, True)],
)
def test_a_long_poll_that_a_limit_cuts_short_is_answered_as_if_the_limit_were_filled(
    house: House, partition_max_bytes: int, min_bytes: int, max_bytes: int, is_due: bool
) -> None:
    # As Apache Kafka 4.3.1, which fills the limit with the begin of the next batch; here batches are whole.
    house.hosted.open("t", 1)
    for _ in range(3):
        house.client.ask(produce_request((0, batch(bytes(600)))), 9)

    consumer = polled(house, {0: partition_max_bytes}, min_bytes, max_bytes)

    assert [values(fetch_part(answer)) for answer in consumer.received()] == [[bytes(600)]] * is_due


def test_a_long_poll_counts_a_partition_for_whose_first_batch_there_is_no_room(house: House) -> None:
    house.hosted.open("t", 2)
    house.client.ask(produce_request((0, batch(bytes(600)))), 9)
    house.client.ask(produce_request((1, batch(bytes(600)))), 9)

    consumer = polled(house, {0: 1 << 20, 1: 1 << 20}, 1000, 1000)

    (answer,) = consumer.received()
    assert isinstance(answer, FetchResponse)
    assert [values(part) for part in answer.responses[0].partitions] == [[bytes(600)], []]


def test_a_long_poll_without_room_for_anything_does_not_wait(house: House) -> None:
    house.hosted.open("t", 1)

    assert len(polled(house, {0: 1 << 20}, 1, 0).received()) == 1


def test_a_long_poll_that_a_limit_cuts_short_waits_for_what_other_partitions_lack(house: House) -> None:
    house.hosted.open("t", 2)
    record = batch(bytes(600))
    for _ in range(3):
        house.client.ask(produce_request((0, record)), 9)
    consumer = polled(house, {0: 1000, 1: 1000}, 2000)
    house.client.ask(produce_request((1, batch(b"a"))), 9)
    house.client.ask(produce_request((0, record)), 9)
    house.client.ask(produce_request((1, record)), 9)
    assert consumer.received() == []

    house.client.ask(produce_request((1, record)), 9)

    (answer,) = consumer.received()
    assert isinstance(answer, FetchResponse)
    assert [values(part) for part in answer.responses[0].partitions] == [[bytes(600)], [b"a", bytes(600)]]


def test_a_long_poll_does_not_wait_at_the_end_of_a_segment_that_others_follow(house: House) -> None:
    house.hosted.open("t", 1, log_config=LogConfig(segment_bytes=1000))
    for _ in range(3):
        house.client.ask(produce_request((0, batch(bytes(600)))), 9)

    consumer = polled(house, {0: 1 << 20}, 1 << 15)

    assert [values(fetch_part(answer)) for answer in consumer.received()] == [[bytes(600)]]


def test_a_long_poll_of_several_partitions_gets_what_one_turn_brought_to_all(house: House) -> None:
    house.hosted.open("t", 2)
    poller = MemoryClient(house.router)
    wanted = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(2)]
    poller.send(FetchRequest(max_wait_ms=500, min_bytes=1, topics=[FetchTopic(topic="t", partitions=wanted)]), 12)

    house.client.ask(produce_request((0, batch(b"a")), (1, batch(b"b"))), 9)

    (answer,) = poller.received()
    assert isinstance(answer, FetchResponse)
    (topic,) = answer.responses
    assert [values(part) for part in topic.partitions] == [[b"a"], [b"b"]]


def test_a_long_poll_ends_in_time_with_empty_and_not_null_records(house: House) -> None:
    house.hosted.open("t")
    house.client.send(fetch_request(0, max_wait_ms=500), 11)
    house.client.turn()
    house.pass_time(499)
    assert house.client.received() == []

    house.pass_time(2)

    (answer,) = house.client.received()
    assert fetch_part(answer).records == b""


def test_a_poll_of_a_client_that_left_is_forgotten(house: House) -> None:
    house.hosted.open("t")
    consumer = MemoryClient(house.router)
    consumer.send(fetch_request(0, max_wait_ms=60_000), 11)
    consumer.turn()

    consumer.leave()

    assert house.fetches.statistics().delayed_count == 0
    house.client.ask(produce_request((0, batch(b"a"))), 9)


def test_deleting_a_topic_ends_its_polls(house: House) -> None:
    house.hosted.open("t")
    house.client.send(fetch_request(0, max_wait_ms=60_000), 11)
    house.client.turn()

    run_at_once(house.hosted.lifecycle.delete_topic_in_steps("t", 1))

    (answer,) = house.client.received()
    assert fetch_part(answer).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(-1, ErrorCode.OFFSET_OUT_OF_RANGE), (2, ErrorCode.OFFSET_OUT_OF_RANGE), (1, ErrorCode.NONE)],
)
def test_offsets_outside_the_log_are_refused_at_once(house: House, offset: int, expected: ErrorCode) -> None:
    house.hosted.open("t")
    house.client.ask(produce_request((0, batch(b"a"))), 9)

    part = fetch_part(house.client.ask(fetch_request(offset, max_wait_ms=0), 11))

    assert part.error_code == expected


def test_who_meets_a_header_that_is_damaged_is_told_and_the_log_says_which_file(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.hosted.open("t")
    for _ in range(2):
        house.client.ask(produce_request((0, batch(b"a"))), 9)
    directory = house.hosted.replicas.get("t", 0).log.directory
    assert directory is not None
    (path,) = directory.glob("*.log")
    content = bytearray(path.read_bytes())
    content[len(content) // 2 + MAGIC_POSITION] ^= 8
    path.write_bytes(content)

    part = fetch_part(house.client.ask(fetch_request(1, max_wait_ms=0), 11))

    assert part.error_code == ErrorCode.CORRUPT_MESSAGE
    assert str(path) in caplog.text


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_leader_epochs_are_checked(house: House, epoch: int, expected: ErrorCode) -> None:
    replica = followed(house)
    assert replica.leader_epoch == 1
    wanted = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=1000)

    answer = house.client.ask(FetchRequest(topics=[FetchTopic(topic="t", partitions=[wanted])]), 11)

    assert fetch_part(answer).error_code == expected


@pytest.mark.parametrize(
    ("replica_id", "epoch", "is_privileged"),
    [(2, 10, True), (2, 9, False), (2, 11, False), (2, -1, False), (77, 10, False), (-1, -1, False)],
    ids=["known", "an earlier process", "no process yet", "without an epoch", "nobody", "a consumer"],
)
def test_only_who_is_a_broker_as_it_is_registered_has_a_privileged_session(
    house: House, replica_id: int, epoch: int, is_privileged: bool
) -> None:
    house.hosted.open("t")
    asked = follower_request(house.hosted.replicas.get("t", 0).partition.topic_id, 0)
    asked.replica_state = ReplicaState(replica_id=replica_id, replica_epoch=epoch)
    asked.session_epoch = 0
    answer = house.client.ask(asked, 18)

    assert isinstance(answer, FetchResponse)
    assert house.sessions._sessions[answer.session_id].is_privileged is is_privileged
