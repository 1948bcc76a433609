"""Reading a range from brokers that follow a script: pipelining, ends, refusals, and what a caller is told."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_01_fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from odradek.spark_plugin.client.client import Client
from odradek.spark_plugin.client.errors import (
    BrokerError,
    ClientClosedError,
    NoProgressError,
    OffsetOutOfRangeError,
    TopicRecreatedError,
    UnknownPartitionError,
)
from odradek.spark_plugin.client.fetch_loop import FetchLoop
from odradek.spark_plugin.ranges import OffsetRange
from tests.spark_plugin.client.scripted import OTHER_ID, TOPIC_ID, Broker, FakeLog, HangUp, Network, Silence

FETCH = 1
LIST_OFFSETS = 2
METADATA = 3


def cluster(brokers_count: int = 1) -> tuple[Network, list[Broker], FakeLog]:
    """Return a cluster in which broker 1 leads partition 0 of "t"."""
    network = Network()
    brokers = [network.broker(number, f"b{number}") for number in range(1, brokers_count + 1)]
    network.leaders["t"] = {0: 1}
    log = FakeLog()
    log.install(brokers[0])
    return network, brokers, log


def read(client: Client, start: int, end: int, **options: Any) -> tuple[bytes, FetchLoop]:
    """Return all bytes of a range."""
    options.setdefault("is_read_committed", False)
    loop = client.fetch(OffsetRange("t", 0, start, end), **options)
    return b"".join(bytes(fetched.data) for fetched in loop), loop


def nearer(replica_id: int) -> FetchResponse:
    """Return an answer that names a replica that is nearer than the leader, and brings nothing."""
    said = PartitionData(
        partition_index=0, error_code=0, high_watermark=10, preferred_read_replica=replica_id, records=b""
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[said])])


def insist(log: FakeLog, replica_id: int) -> None:
    """Have the leader name that replica whenever it is told where the client is."""

    def answer(request: Any) -> FetchResponse:
        found: FetchResponse = nearer(replica_id) if request.rack_id else log.fetch(request, 18)
        return found

    log.script.extend([answer] * 5)


def test_a_range_comes_in_whole_batches_and_no_more_than_it_needs() -> None:
    network, _, log = cluster()
    for _ in range(6):
        log.add(10)

    data, loop = read(network.client(), 15, 35)

    assert data == b"".join(raw for _, _, raw in log.batches[1:4])
    assert loop.position == 40


def test_the_next_request_is_under_way_before_an_answer_is_handed_out() -> None:
    network, (broker,), log = cluster()
    for _ in range(4):
        log.add(10)
    loop = network.client(max_partition_fetch_bytes=250).fetch(OffsetRange("t", 0, 0, 40), is_read_committed=False)

    next(loop)

    assert [one.topics[0].partitions[0].fetch_offset for one in broker.requests(FETCH)] == [0, 10]


def test_nothing_is_asked_beyond_the_end() -> None:
    network, (broker,), log = cluster()
    for _ in range(4):
        log.add(10)
    client = network.client(max_partition_fetch_bytes=250)

    read(client, 0, 20)

    assert broker.count(FETCH) == 2
    assert len(broker.connections) == 1
    read(client, 20, 40)
    assert len(broker.connections) == 1, "the connection is used again"


def test_an_answer_is_valid_until_the_next_one_in_the_same_memory() -> None:
    network, _, log = cluster()
    for _ in range(3):
        log.add(10)
    loop = network.client(max_partition_fetch_bytes=250).fetch(OffsetRange("t", 0, 0, 30), is_read_committed=False)
    first = next(loop).data
    kept = bytes(first)

    second = next(loop).data

    assert first.obj is second.obj
    assert kept == log.batches[0][2]


def test_an_empty_range_asks_nothing() -> None:
    network, (broker,), _ = cluster()

    assert read(network.client(), 5, 5)[0] == b""
    assert broker.asked == []


def test_gaps_at_the_end_of_a_range_end_it() -> None:
    network, _, log = cluster()
    log.add(10)
    log.add(5, gap=40)

    data, _ = read(network.client(), 0, 30)

    assert data == log.batches[0][2]


def test_a_range_that_lies_in_a_gap_is_empty() -> None:
    network, _, log = cluster()
    log.add(10)
    log.add(5, gap=40)

    assert read(network.client(), 12, 30)[0] == b""


def test_a_tail_without_batches_ends_once_it_was_seen_twice_and_is_local() -> None:
    network, (broker,), log = cluster()
    log.add(10)
    log.high_watermark = 13

    data, _ = read(network.client(), 0, 13)

    assert data == log.batches[0][2]
    assert (broker.count(FETCH), broker.count(LIST_OFFSETS)) == (3, 1)


def test_an_old_broker_without_remote_storage_is_not_asked_what_is_local() -> None:
    network, (broker,), log = cluster()
    broker.versions[LIST_OFFSETS] = (1, 7)
    log.add(10)
    log.high_watermark = 13

    assert read(network.client(), 0, 13)[0] == log.batches[0][2]


def test_empty_answers_from_remote_storage_are_no_end() -> None:
    network, _, log = cluster()
    log.add(10)
    log.local_start = 10
    empty = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="t",
                topic_id=TOPIC_ID,
                partitions=[PartitionData(partition_index=0, error_code=0, high_watermark=10, records=b"")],
            )
        ]
    )
    log.script.extend([empty] * 4)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]


def test_throttled_answers_are_no_end() -> None:
    network, _, log = cluster()
    log.add(10)
    log.script.extend([FetchResponse(throttle_time_ms=50)] * 3)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]


def test_a_pause_that_the_broker_announced_is_waited_for() -> None:
    network, (broker,), log = cluster()
    log.add(10)
    log.script.append(FetchResponse(throttle_time_ms=100_000))
    waits: list[int] = []

    def late(request: Any) -> FetchResponse | None:
        network.clock.time_ms += 90_000
        waits.append(network.clock.time_ms)
        return FetchResponse()

    log.script.append(late)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]
    assert waits
    assert len(broker.connections) == 1


def test_what_is_not_stable_is_waited_for_and_then_told_with_numbers() -> None:
    network, _, log = cluster()
    log.add(10)
    log.last_stable_offset = 4
    log.high_watermark = 20

    def wait(request: Any) -> None:
        network.clock.time_ms += request.max_wait_ms

    log.script.extend([wait] * 100)

    def nothing(request: Any) -> FetchResponse:
        network.clock.time_ms += request.max_wait_ms
        data = PartitionData(
            partition_index=0, error_code=0, high_watermark=20, last_stable_offset=10, log_start_offset=0, records=b""
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])])

    log.script.clear()
    log.script.append(None)
    log.script.extend([nothing] * 100)

    with pytest.raises(NoProgressError, match=r"t-0: no records of the range \[10, 20\)") as caught:
        read(network.client(), 0, 20, is_read_committed=True, poll_timeout_ms=3_000)
    assert (
        caught.value.position,
        caught.value.end,
        caught.value.high_watermark,
        caught.value.last_stable_offset,
    ) == (10, 20, 20, 10)


def test_aborted_transactions_come_sorted_and_only_for_committed_reads() -> None:
    network, _, log = cluster()
    log.add(10)
    log.aborted = [AbortedTransaction(producer_id=4, first_offset=6), AbortedTransaction(producer_id=9, first_offset=2)]
    client = network.client()

    committed = next(client.fetch(OffsetRange("t", 0, 0, 10), is_read_committed=True))
    uncommitted = next(client.fetch(OffsetRange("t", 0, 0, 10), is_read_committed=False))

    assert list(committed.aborted) == [(2, 9), (6, 4)]
    assert list(uncommitted.aborted) == []


def test_a_batch_larger_than_a_fetch_makes_it_grow() -> None:
    network, (broker,), log = cluster()
    log.is_first_whole = False
    log.add(10, size=5_000)
    log.add(10)

    data, _ = read(network.client(max_partition_fetch_bytes=1_000), 0, 20)

    assert data == log.batches[0][2] + log.batches[1][2]
    asked = [one.topics[0].partitions[0].partition_max_bytes for one in broker.requests(FETCH)]
    assert asked == [1_000, 2_000, 4_000, 8_000]


def test_an_offset_that_is_gone_is_told_with_the_offsets_that_are_there() -> None:
    network, _, log = cluster()
    log.add(100)
    log.log_start = 40

    with pytest.raises(OffsetOutOfRangeError, match=r"offset 5 of the range \[5, 50\).*\[40, 100\)") as caught:
        read(network.client(), 5, 50)
    assert (caught.value.position, caught.value.log_start_offset, caught.value.log_end_offset) == (5, 40, 100)


def test_a_topic_with_another_id_is_not_read() -> None:
    network, _, log = cluster()
    log.add(10)

    with pytest.raises(TopicRecreatedError, match="deleted and created again"):
        read(network.client(), 0, 10, topic_id=OTHER_ID)


def test_a_topic_that_is_made_anew_while_it_is_read_is_noticed() -> None:
    network, _, log = cluster()
    log.add(10)
    log.add(10)

    def recreate(request: Any) -> Any:
        network.topic_ids["t"] = OTHER_ID
        log.script.appendleft(int(ErrorCode.UNKNOWN_TOPIC_ID))
        return log.fetch(request, 0)

    log.script.extend([None, recreate])

    with pytest.raises(TopicRecreatedError):
        read(network.client(max_partition_fetch_bytes=200), 0, 20)


def test_a_topic_that_goes_away_is_unknown_soon() -> None:
    network, _, log = cluster()
    log.add(10)

    def delete(request: Any) -> Any:
        network.leaders.pop("t", None)
        log.script.appendleft(int(ErrorCode.UNKNOWN_TOPIC_ID))
        return log.fetch(request, 18)

    log.script.append(delete)

    with pytest.raises(UnknownPartitionError, match="t-0 does not exist"):
        read(network.client(), 0, 10)
    assert network.clock.slept_ms < 6_000


def test_a_leader_that_is_late_to_know_its_topic_is_waited_for() -> None:
    network, _, log = cluster()
    log.add(10)
    log.script.extend([int(ErrorCode.UNKNOWN_TOPIC_ID)] * 20)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]


def test_a_partition_that_never_was_is_unknown() -> None:
    network, _, _ = cluster()

    with pytest.raises(UnknownPartitionError, match="the topic has 1 partitions"):
        list(network.client().fetch(OffsetRange("t", 3, 0, 10), is_read_committed=False))


def test_another_leader_is_followed() -> None:
    network, (first, second), log = cluster(2)
    log.add(10)
    log.add(10)
    log.install(second)

    def move(request: Any) -> Any:
        network.leaders["t"] = {0: 2}
        log.script.appendleft(int(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        return log.fetch(request, 0)

    log.script.extend([None, move])

    data, _ = read(network.client(max_partition_fetch_bytes=200), 0, 20)

    assert data == log.batches[0][2] + log.batches[1][2]
    assert (first.count(FETCH), second.count(FETCH)) == (2, 1)


def test_a_leader_that_an_answer_names_is_known_with_its_address() -> None:
    network, (_, second), log = cluster(2)
    log.add(10)
    log.install(second)
    moved = PartitionData(
        partition_index=0,
        error_code=int(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        high_watermark=-1,
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=8),
        records=b"",
    )
    log.script.append(
        FetchResponse(
            responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[moved])],
            node_endpoints=[NodeEndpoint(node_id=2, host="b2", port=9092)],
        )
    )

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]
    assert second.count(FETCH) == 1


def test_a_nearer_replica_is_asked_where_the_leader_names_one() -> None:
    network, (leader, follower), log = cluster(2)
    log.add(10)
    log.install(follower)
    log.script.append(nearer(2))

    assert read(network.client(client_rack="r2"), 0, 10)[0] == log.batches[0][2]
    assert (leader.count(FETCH), follower.count(FETCH)) == (1, 1)
    assert [leader.requests(FETCH)[0].rack_id] == ["r2"]


def test_a_follower_that_lags_sends_us_back_to_the_leader() -> None:
    network, (leader, follower), log = cluster(2)
    log.add(10)
    behind = FakeLog(log_start=50, high_watermark=60)
    behind.install(follower)
    log.script.append(nearer(2))

    assert read(network.client(client_rack="r2"), 0, 10)[0] == log.batches[0][2]
    assert (leader.count(FETCH), follower.count(FETCH)) == (2, 1)


def test_a_leader_that_insists_on_a_replica_that_lags_is_not_told_where_we_are() -> None:
    network, (leader, follower), log = cluster(2)
    log.add(10)
    FakeLog(log_start=50, high_watermark=60).install(follower)
    insist(log, 2)

    assert read(network.client(client_rack="r2"), 0, 10)[0] == log.batches[0][2]
    assert [one.rack_id for one in leader.requests(FETCH)] == ["r2", ""]


def test_a_replica_that_nobody_knows_is_not_asked() -> None:
    network, (leader,), log = cluster()
    log.add(10)
    log.script.append(nearer(9))

    assert read(network.client(client_rack="r2"), 0, 10)[0] == log.batches[0][2]
    assert [one.rack_id for one in leader.requests(FETCH)] == ["r2", ""]


def test_a_replica_that_fails_is_left_for_the_leader() -> None:
    network, (leader, follower), log = cluster(2)
    log.add(10)
    follower.handlers[FETCH] = lambda request, version: HangUp()
    insist(log, 2)

    assert read(network.client(client_rack="r2"), 0, 10)[0] == log.batches[0][2]
    assert (leader.count(FETCH), follower.count(FETCH)) == (2, 1)


def test_a_refusal_that_repetition_does_not_cure_ends_at_once() -> None:
    network, _, log = cluster()
    log.script.append(int(ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    with pytest.raises(BrokerError, match=r"TOPIC_AUTHORIZATION_FAILED: t-0 \[0, 10\)"):
        read(network.client(), 0, 10)
    assert network.clock.slept_ms == 0


def test_a_broker_older_than_topic_ids_is_asked_by_name() -> None:
    network, (broker,), log = cluster()
    broker.versions[METADATA] = (0, 9)
    broker.versions[FETCH] = (4, 12)
    log.add(10)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]
    assert [version for key, version, _ in broker.asked if key == FETCH] == [12]


def test_a_broker_whose_topics_have_no_ids_is_asked_by_name_whatever_it_speaks() -> None:
    network, (broker,), log = cluster()
    broker.versions[METADATA] = (0, 9)
    log.add(10)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]
    assert [version for key, version, _ in broker.asked if key == FETCH] == [12]


def test_the_oldest_version_of_fetch_serves() -> None:
    network, (broker,), log = cluster()
    broker.versions[METADATA] = (0, 4)
    broker.versions[FETCH] = (0, 4)
    log.add(10)

    assert read(network.client(), 0, 10)[0] == log.batches[0][2]


def test_a_seek_drops_what_is_under_way() -> None:
    network, _, log = cluster()
    for _ in range(6):
        log.add(10)
    loop = network.client(max_partition_fetch_bytes=200).fetch(OffsetRange("t", 0, 0, 60), is_read_committed=False)
    next(loop)

    loop.seek(40)
    rest = [bytes(fetched.data) for fetched in loop]

    assert rest == [raw for _, _, raw in log.batches[4:]]


@pytest.mark.parametrize("fault", [HangUp(), Silence()])
def test_a_broker_that_fails_in_between_is_asked_again_from_where_we_are(fault: object) -> None:
    network, (broker,), log = cluster()
    log.add(10)
    log.add(10)
    log.script.extend([None, lambda request: fault])

    data, _ = read(network.client(max_partition_fetch_bytes=200), 0, 20)

    assert data == log.batches[0][2] + log.batches[1][2]
    assert len(broker.connections) >= 2


def test_other_calls_in_the_middle_of_a_range_disturb_nothing() -> None:
    network, _, log = cluster()
    log.add(10)
    log.add(10)
    client = network.client(max_partition_fetch_bytes=200)
    with client.fetch(OffsetRange("t", 0, 0, 20), is_read_committed=False) as loop:
        first = bytes(next(loop).data)

        assert list(client.describe(["t"])) == ["t"]
        assert first + b"".join(bytes(one.data) for one in loop) == log.batches[0][2] + log.batches[1][2]


def test_a_loop_that_is_given_up_leaves_no_answer_behind() -> None:
    network, (broker,), log = cluster()
    log.add(10)
    log.add(10)
    client = network.client(max_partition_fetch_bytes=200)
    with client.fetch(OffsetRange("t", 0, 0, 20), is_read_committed=False) as loop:
        next(loop)

    assert broker.connections[0].is_closed
    assert read(client, 0, 20)[0] == log.batches[0][2] + log.batches[1][2]


def test_a_broker_that_repeats_itself_does_not_keep_us_for_ever() -> None:
    network, _, log = cluster()
    log.add(10)
    log.add(10)
    old = log.batches[0][2]

    def again(request: Any) -> FetchResponse:
        data = PartitionData(partition_index=0, error_code=0, high_watermark=20, records=old)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])])

    log.script.extend([again] * 1_000)

    with pytest.raises(NoProgressError):
        read(network.client(), 10, 20, poll_timeout_ms=5_000)


def test_a_closed_client_reads_nothing() -> None:
    network, _, log = cluster()
    log.add(10)
    client = network.client()
    client.close()

    with pytest.raises(ClientClosedError):
        read(client, 0, 10)
