"""Whatever a log looks like and whatever brokers do meanwhile: a range is read once, whole and in order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.errors import ErrorCode
from odradek.kernel.wire.messages.api_01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.spark_plugin.ranges import OffsetRange
from tests.spark_plugin.client.scripted import TOPIC_ID, FakeLog, HangUp, Network, Raw, Silence

PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
BATCHES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(61, 400)), max_size=12)


def empty(high_watermark: int) -> FetchResponse:
    """Return an answer without records, as of a remote segment that did not come in time."""
    data = PartitionData(partition_index=0, error_code=0, high_watermark=high_watermark, records=b"")
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])])


def insisting(high_watermark: int) -> Any:
    """Return an answer that sends whoever told its rack to another broker."""
    data = PartitionData(
        partition_index=0, error_code=0, high_watermark=high_watermark, preferred_read_replica=2, records=b""
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=[data])])


FAULTS = st.lists(
    st.none()
    | st.none()
    | st.sampled_from([int(code) for code in PASSING])
    | st.sampled_from([HangUp(), Silence(), Raw(b"\x00\x00\x00\x08nonsense"), "throttled", "empty", "replica"]),
    max_size=12,
)


@given(
    BATCHES,
    st.integers(0, 40),
    st.integers(0, 40),
    FAULTS,
    st.integers(61, 1_500),
    st.booleans(),
    st.sampled_from([17, 1 << 20]),
)
def test_a_range_is_read_once_whole_and_in_order(
    plan: list[tuple[int, int, int]],
    start: int,
    size: int,
    faults: list[Any],
    fetch_bytes: int,
    is_first_whole: bool,
    piece_bytes: int,
) -> None:
    network = Network()
    log = FakeLog(is_first_whole=is_first_whole)
    for number in (1, 2):
        broker = network.broker(number, f"b{number}")
        broker.piece_bytes = piece_bytes
        log.install(broker)
    network.leaders["t"] = {0: 1}
    for gap, count, batch_size in plan:
        log.add(count, batch_size, gap=gap)
    start = min(start, log.high_watermark)
    end = min(start + size, log.high_watermark)
    log.local_start = end  # an empty answer never proves that the log has ended
    planned = {
        "throttled": FetchResponse(throttle_time_ms=70),
        "empty": empty(log.high_watermark),
        "replica": insisting(log.high_watermark),
    }
    log.script.extend(
        (lambda request, fault=fault: fault) if isinstance(fault, HangUp | Silence | Raw) else planned.get(fault, fault)
        for fault in faults
    )
    client = network.client(max_partition_fetch_bytes=fetch_bytes, client_rack="r")

    loop = client.fetch(OffsetRange("t", 0, start, end), is_read_committed=False, poll_timeout_ms=3_600_000)
    read = b"".join(bytes(fetched.data) for fetched in loop)

    assert read == b"".join(raw for first, after, raw in log.batches if after > start and first < end > start)
    client.close()
    assert all(one.is_closed for broker in network.brokers.values() for one in broker.connections)
