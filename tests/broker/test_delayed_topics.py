"""Topics with delayed records from outside: by any client, over altered keys, restarts and hours that pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.delay.headers import DELIVER_AFTER
from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.testing.running_broker import running_broker

from .broker_process import Client, batch_of
from .test_alterable_settings import alter
from .test_live_config import TOPIC
from .test_process import fetch, produce
from .test_request_limits import create_topic

HOUR_MS = 3_600_000
EARLIEST = -2
DELAYED = {"odradek.delay.enable": "true"}


def delayed(value: bytes, after: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(None, b"at once", timestamp=1_700_000_000_000)
    builder.append(None, value, timestamp=1_700_000_000_000, headers=[(DELIVER_AFTER, after)])
    return bytes(builder.build())


def test_a_record_is_seen_after_its_hour_and_a_restart() -> None:
    with running_broker({"log.retention.ms": -1}, virtual_time=True) as broker:
        with Client(broker.bootstrap) as client:
            assert create_topic(client, "t", configs=DELAYED) == (ErrorCode.NONE, None)
            assert produce(client, "t", delayed(b"later", b"%d" % HOUR_MS)) == (ErrorCode.NONE, 1)
            broker.advance("59m")
            assert b"later" not in fetch(client, "t")[0]
        broker.stop()
        broker.start()
        with Client(broker.bootstrap) as client:
            broker.advance("61m")
            assert fetch(client, "t")[0][-1] == b"later"


@pytest.mark.parametrize("queue", ["wheel", "levels"])
def test_what_waits_longer_than_the_topics_retention_is_seen_when_it_is_due(queue: str) -> None:
    """A day's retention, a wait of two: the log starts behind where it was produced long before."""
    settings = {"log.retention.check.interval.ms": HOUR_MS // 4, "log.retention.ms": 24 * HOUR_MS}
    with running_broker(settings, virtual_time=True) as broker:
        with Client(broker.bootstrap) as client:
            create_topic(client, "t", configs={**DELAYED, "odradek.delay.queue": queue})
            assert produce(client, "t", delayed(b"later", b"%d" % (48 * HOUR_MS)))[0] == ErrorCode.NONE
            broker.advance("47h")
            start = first_offset(client)
            assert start > 2
            assert b"later" not in fetch(client, "t", start)[0]
        broker.stop()
        broker.start()
        with Client(broker.bootstrap) as client:
            broker.advance("61m")
            assert fetch(client, "t", first_offset(client))[0].count(b"later") == 1


def first_offset(client: Client) -> int:
    """Return where the partition's log starts."""
    part = ListOffsetsPartition(partition_index=0, timestamp=EARLIEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[part])])
    answer = client.ask(request, 7)
    assert isinstance(answer, ListOffsetsResponse)

    return answer.topics[0].partitions[0].offset


def test_a_record_that_asks_for_what_cannot_be_is_named(tmp_path: Path) -> None:
    with running_broker({}, data_dir=tmp_path) as broker, Client(broker.bootstrap) as client:
        create_topic(client, "t", configs={**DELAYED, "odradek.delay.max.ms": "1000"})
        data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(records=delayed(b"late", b"1001"))])]
        answer = client.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=data), 9)
        assert isinstance(answer, ProduceResponse)
        (part,) = answer.responses[0].partition_responses
        (wrong,) = part.record_errors

        assert (part.error_code, wrong.batch_index) == (ErrorCode.INVALID_RECORD, 1)
        assert "longer than the topic's odradek.delay.max.ms of 1000" in (wrong.batch_index_error_message or "")
        assert fetch(client, "t") == ([], 0)


def test_the_key_is_altered_while_records_come() -> None:
    with running_broker({"log.retention.ms": -1}, virtual_time=True) as broker, Client(broker.bootstrap) as client:
        create_topic(client, "t")
        assert produce(client, "t", delayed(b"header of its own", b"x")) == (ErrorCode.NONE, 0)
        assert alter(broker.bootstrap, TOPIC, "t", DELAYED)[0] == ErrorCode.NONE
        assert produce(client, "t", delayed(b"later", b"%d" % HOUR_MS)) == (ErrorCode.NONE, 3)
        assert alter(broker.bootstrap, TOPIC, "t", {"odradek.delay.enable": "false"})[0] == ErrorCode.NONE
        assert produce(client, "t", batch_of(b"end"))[0] == ErrorCode.NONE
        assert alter(broker.bootstrap, TOPIC, "t", {"cleanup.policy": "ttl"})[0] == ErrorCode.INVALID_CONFIG
        broker.advance("2h")

        values = fetch(client, "t")[0]

    assert [value for value in values if value in (b"header of its own", b"end", b"later")] == [
        b"header of its own",
        b"end",
        b"later",
    ]


def test_a_large_batch_is_split_beside_the_reactor() -> None:
    builder = BatchBuilder()
    for number in range(3_000):
        headers = [(DELIVER_AFTER, b"%d" % HOUR_MS)] if number % 2 else []
        builder.append(None, b"%d" % number, timestamp=1_700_000_000_000, headers=headers)
    with running_broker({"log.retention.ms": -1}, virtual_time=True) as broker, Client(broker.bootstrap) as client:
        create_topic(client, "t", configs=DELAYED)
        assert produce(client, "t", bytes(builder.build())) == (ErrorCode.NONE, 1)
        at_once = [value for value in fetch(client, "t")[0] if value.isdigit()]
        broker.advance("1h")
        later = [value for value in fetch(client, "t")[0] if value.isdigit()][len(at_once) :]

    assert at_once == [b"%d" % number for number in range(0, 3_000, 2)]
    assert later == [b"%d" % number for number in range(1, 3_000, 2)]


def test_by_levels_a_delay_is_rounded_up_and_comes_out_as_it_went_in_after_a_restart() -> None:
    by_levels = {**DELAYED, "odradek.delay.queue": "levels"}
    with running_broker({"log.retention.ms": -1}, virtual_time=True) as broker:
        with Client(broker.bootstrap) as client:
            assert create_topic(client, "t", configs=by_levels) == (ErrorCode.NONE, None)
            for value, after in ((b"first", b"29000"), (b"second", b"17000"), (b"third", b"18000000")):
                assert produce(client, "t", delayed(value, after))[0] == ErrorCode.NONE
            broker.advance("28s")
            assert not {b"first", b"second"} & set(fetch(client, "t")[0])
        broker.stop()
        broker.start()
        with Client(broker.bootstrap) as client:
            broker.advance("3s")
            found = fetch(client, "t")[0]
            assert [value for value in found if value in (b"first", b"second")] == [b"first", b"second"]
            broker.advance("4h58m")
            assert b"third" not in fetch(client, "t")[0]
            broker.advance("2m")
            assert fetch(client, "t")[0][-1] == b"third"


def test_levels_are_altered_while_records_come() -> None:
    by_levels = {**DELAYED, "odradek.delay.queue": "levels", "odradek.delay.levels": "1h"}
    with running_broker({"log.retention.ms": -1}, virtual_time=True) as broker, Client(broker.bootstrap) as client:
        assert create_topic(client, "t", configs=by_levels) == (ErrorCode.NONE, None)
        assert produce(client, "t", delayed(b"waits an hour", b"1000"))[0] == ErrorCode.NONE
        assert alter(broker.bootstrap, TOPIC, "t", {"odradek.delay.levels": "0s"})[0] == ErrorCode.INVALID_CONFIG
        assert alter(broker.bootstrap, TOPIC, "t", {"odradek.delay.levels": "2s"})[0] == ErrorCode.NONE
        assert produce(client, "t", delayed(b"waits two seconds", b"1000"))[0] == ErrorCode.NONE
        broker.advance("3s")
        assert fetch(client, "t")[0][-1] == b"waits two seconds"
        broker.advance("1h")

        assert fetch(client, "t")[0][-1] == b"waits an hour"
