"""Tiered topics of a real broker: put under a tier and out of it, started without the store, and without the tier."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from odradek.kernel.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.kernel.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.kernel.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from odradek.testing.running_broker import running_broker
from tests.waiting import names_below, until

from .broker_process import Client, batch_of, broker_process
from .test_live_config import TOPIC, alter
from .test_process import create as create_by_asking
from .test_process import produce

ON = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "50",
    "remote.log.manager.task.retry.backoff.ms": "50",
    "replica.high.watermark.checkpoint.interval.ms": "50",
    "log.retention.ms": "-1",
}
SMALL = {"internal.segment.bytes": "300", "local.retention.bytes": "1"}
EARLIEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -2, -4, -5, -6
BATCHES = 6
VALUES = [b"%d" % number * 100 for number in range(BATCHES)]


def settings(directory: Path, **more: str) -> dict[str, str]:
    return {**ON, "odradek.tiered.store": (directory / "store").as_uri(), **more}


def create(client: Client, topic: str = "t", **configs: str) -> CreateTopicsResponse:
    """Create a topic with small segments; configs are Kafka's keys with underscores."""
    wanted = {**SMALL, **{key.replace("_", "."): value for key, value in configs.items()}}
    creatable = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in wanted.items()],
    )
    answer = client.ask(CreateTopicsRequest(topics=[creatable], timeout_ms=30_000), 5)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == ErrorCode.NONE
    return answer


def fill(client: Client, topic: str = "t") -> None:
    for value in VALUES:
        assert produce(client, topic, batch_of(value))[0] == ErrorCode.NONE


def offset(client: Client, timestamp: int) -> int:
    part = ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
    topics = [ListOffsetsTopic(name="t", partitions=[part])]
    answer = client.ask(ListOffsetsRequest(topics=topics), 11)
    assert isinstance(answer, ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


def delete_records(client: Client, before: int) -> tuple[int, int]:
    """Return the error and the log start."""
    topics = [DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=before)])]
    answer = client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=30_000), 2)
    assert isinstance(answer, DeleteRecordsResponse)
    (part,) = answer.topics[0].partitions
    return part.error_code, part.low_watermark


def fetch(client: Client, position: int) -> tuple[int, bytes]:
    """Return the error and the bytes of one Fetch."""
    part = FetchPartition(partition=0, fetch_offset=position, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic="t", partitions=[part])]
    answer = client.ask(FetchRequest(max_wait_ms=5_000, min_bytes=1, topics=topics), 11)
    assert isinstance(answer, FetchResponse)
    (topic,) = answer.responses
    records = topic.partitions[0].records
    assert records is None or isinstance(records, bytes | memoryview)
    return topic.partitions[0].error_code, bytes(records or b"")


def segments_in(store: Path) -> list[str]:
    return [name for name in names_below(store) if name.endswith(".log")]


def is_read_back(client: Client, position: int) -> bool:
    """Whether a Fetch gives the record of an offset, now or when the store has been asked."""
    code, data = fetch(client, position)
    assert code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
    return VALUES[position] in data


def test_tiered_is_shown_as_what_it_is_short_for(tmp_path: Path) -> None:
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        shown = {
            config.name: config.value for config in create(client, odradek_storage="tiered").topics[0].configs or []
        }
        fill(client)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES - 1)

        assert (shown["odradek.storage"], shown["remote.storage.enable"]) == ("segment", "true")
        assert all(is_read_back(client, position) for position in range(BATCHES))


def test_a_living_topic_goes_under_a_tier_and_out_of_it(tmp_path: Path) -> None:
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client)
        fill(client)
        assert alter(client, TOPIC, "t", "remote.storage.enable", "true") == ErrorCode.NONE
        assert produce(client, "t", batch_of(b"later")) == (ErrorCode.NONE, BATCHES)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES)
        assert offset(client, EARLIEST) == 0
        assert is_read_back(client, 0)

        assert alter(client, TOPIC, "t", "remote.storage.enable", "false") == ErrorCode.INVALID_CONFIG
        assert alter(client, TOPIC, "t", "remote.log.delete.on.disable", "true") == ErrorCode.NONE
        assert alter(client, TOPIC, "t", "remote.storage.enable", "false") == ErrorCode.NONE

        assert (offset(client, EARLIEST), offset(client, EARLIEST_LOCAL)) == (BATCHES, BATCHES)
        assert fetch(client, 0)[0] == ErrorCode.OFFSET_OUT_OF_RANGE
        assert b"later" in fetch(client, BATCHES)[1]
        until(lambda: not segments_in(tmp_path / "store"))

        assert alter(client, TOPIC, "t", "remote.storage.enable", "true") == ErrorCode.NONE
        assert produce(client, "t", batch_of(b"and later")) == (ErrorCode.NONE, BATCHES + 1)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES + 1)
        assert offset(client, EARLIEST) == BATCHES
        until(lambda: b"later" in fetch(client, BATCHES)[1])


def test_a_topic_that_nothing_was_sent_to_goes_out_of_its_tier_and_is_served(tmp_path: Path) -> None:
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true", remote_log_delete_on_disable="true")
        assert alter(client, TOPIC, "t", "remote.storage.enable", "false") == ErrorCode.NONE

        assert produce(client, "t", batch_of(b"first")) == (ErrorCode.NONE, 0)
        assert b"first" in fetch(client, 0)[1]


def test_a_deleted_topic_leaves_the_store(tmp_path: Path) -> None:
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true")
        fill(client)
        until(lambda: len(segments_in(tmp_path / "store")) == BATCHES - 1)

        answer = client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=30_000), 4)

        assert isinstance(answer, DeleteTopicsResponse)
        until(lambda: not segments_in(tmp_path / "store"))


def test_a_broker_starts_and_serves_while_the_store_is_away(tmp_path: Path) -> None:
    store, away = tmp_path / "store", tmp_path / "away"
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true")
        fill(client)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES - 1)
    store.rename(away)
    store.write_text("no folder any more")

    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        assert (offset(client, EARLIEST), offset(client, EARLIEST_LOCAL)) == (0, BATCHES - 1)
        assert produce(client, "t", batch_of(b"later")) == (ErrorCode.NONE, BATCHES)
        assert VALUES[-1] in fetch(client, BATCHES - 1)[1]
        until(lambda: fetch(client, 0) == (ErrorCode.KAFKA_STORAGE_ERROR, b""))
        store.unlink()
        away.rename(store)
        until(lambda: is_read_back(client, 0))


def test_without_tiered_storage_a_tiered_topic_is_offline_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true")
        fill(client)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES - 1)

    with running_broker(data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        assert produce(client, "t", batch_of(b"x"))[0] == ErrorCode.KAFKA_STORAGE_ERROR
        create_by_asking(client, "other")
        assert produce(client, "other", batch_of(b"x")) == (ErrorCode.NONE, 0)
    assert "start with remote.log.storage.system.enable=true, or delete the topic" in caplog.text

    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        assert all(is_read_back(client, position) for position in range(BATCHES))


def idempotent(sequence: int) -> bytes:
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=sequence)
    builder.append(None, b"%05d" % sequence * 40, timestamp=1_000 + sequence)
    return bytes(builder.build())


def test_kills_lose_no_record_of_either_tier_and_no_producer(tmp_path: Path) -> None:
    options = [f"{key}={value}" for key, value in settings(tmp_path).items() if key != "log.retention.ms"]
    sequence = 0
    for number in range(3):
        with broker_process(tmp_path / "data", *options) as broker, Client(broker.address) as client:
            if not number:
                create(client, remote_storage_enable="true")
            for _ in range(4):
                assert produce(client, "t", idempotent(sequence)) == (ErrorCode.NONE, sequence)
                sequence += 1
            until(lambda: offset(client, EARLIEST_LOCAL) == sequence - 1)  # noqa: B023 - called at once
            assert produce(client, "t", idempotent(sequence - 1)) == (ErrorCode.NONE, sequence - 1), "it is known"
            assert offset(client, EARLIEST) == 0
            for position in range(sequence):
                until(lambda: b"%05d" % position * 40 in fetch(client, position)[1])  # noqa: B023 - called at once
            broker.kill()


def test_deleted_and_expired_records_leave_both_tiers(tmp_path: Path) -> None:
    store = tmp_path / "store"
    quick = settings(tmp_path, **{"log.retention.check.interval.ms": "50", "log.segment.delete.delay.ms": "0"})
    with running_broker(quick, data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true")
        assert (offset(client, LATEST_TIERED), offset(client, EARLIEST_PENDING_UPLOAD)) == (-1, -1)
        fill(client)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES - 1)
        assert [offset(client, each) for each in (EARLIEST, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)] == [
            0,
            BATCHES - 2,
            BATCHES - 1,
        ]

        assert delete_records(client, 2) == (ErrorCode.NONE, 2)
        until(lambda: len(segments_in(store)) == BATCHES - 3)
        assert (offset(client, EARLIEST), fetch(client, 1)[0]) == (2, ErrorCode.OFFSET_OUT_OF_RANGE)
        assert is_read_back(client, 2)

        one = sum(path.stat().st_size for path in (tmp_path / "data" / "t-0").glob("*.log"))
        assert alter(client, TOPIC, "t", "retention.bytes", str(2 * one + 1)) == ErrorCode.NONE
        until(lambda: len(segments_in(store)) == 2)
        assert (offset(client, EARLIEST), offset(client, EARLIEST_LOCAL)) == (BATCHES - 3, BATCHES - 1)
        assert is_read_back(client, BATCHES - 3)

        assert delete_records(client, BATCHES - 1) == (ErrorCode.NONE, BATCHES - 1)
        until(lambda: not segments_in(store))
        assert VALUES[-1] in fetch(client, BATCHES - 1)[1]

        assert alter(client, TOPIC, "t", "retention.ms", "0") == ErrorCode.NONE
        until(lambda: offset(client, EARLIEST) == BATCHES)
        assert produce(client, "t", batch_of(b"later")) == (ErrorCode.NONE, BATCHES)

    with running_broker(quick, data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        assert offset(client, EARLIEST) >= BATCHES
        assert produce(client, "t", batch_of(b"and later")) == (ErrorCode.NONE, BATCHES + 1)


def test_a_topic_whose_manifest_is_of_a_later_version_costs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "store"
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true")
        create(client, topic="u", remote_storage_enable="true")
        fill(client)
        fill(client, "u")
        until(lambda: len(segments_in(store)) == 2 * (BATCHES - 1))
    for path in store.rglob("t/**/manifest/*.json"):
        path.write_bytes(path.read_bytes().replace(b'"format_version": 1', b'"format_version": 9'))

    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        fill(client)
        fill(client, "u")
        until(lambda: len(segments_in(store / "topics" / "u")) == 2 * BATCHES - 1)
        until(lambda: "t-0: tiering failed" in caplog.text)
        assert len(segments_in(store / "topics" / "t")) == BATCHES - 1
        assert produce(client, "t", batch_of(b"later")) == (ErrorCode.NONE, 2 * BATCHES)
        until(lambda: is_read_back(client, 0))
    told = next(record.getMessage() for record in caplog.records if "t-0: tiering failed" in record.getMessage())
    assert "the manifest of partition t-0" in told
    assert "a later odradek wrote it; upgrade this one" in told
    assert "u-0" not in told


def lose_folder(tmp_path: Path) -> dict[Path, bytes]:
    """Run a broker, lose the topic's folder; return the segments in the store."""
    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        create(client, remote_storage_enable="true")
        fill(client)
        until(lambda: offset(client, EARLIEST_LOCAL) == BATCHES - 1)
    shutil.rmtree(tmp_path / "data" / "t-0")
    return {path: path.read_bytes() for path in (tmp_path / "store").rglob("segments/*")}


def test_a_topic_whose_folder_was_lost_goes_on_behind_what_is_in_the_store(tmp_path: Path) -> None:
    before = lose_folder(tmp_path)
    end = BATCHES - 1

    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        for number in range(BATCHES):
            assert produce(client, "t", batch_of(b"anew%d" % number * 20)) == (ErrorCode.NONE, end + number)
        until(lambda: offset(client, EARLIEST_LOCAL) == end + BATCHES - 1)
        assert offset(client, EARLIEST) == 0
        assert all(is_read_back(client, position) for position in range(end))

    assert before.items() <= {path: path.read_bytes() for path in (tmp_path / "store").rglob("segments/*")}.items()


def test_a_log_that_begins_anew_replaces_nothing_in_the_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = lose_folder(tmp_path)
    (tmp_path / "data" / "log-start-offset-checkpoint").unlink()

    with running_broker(settings(tmp_path), data_dir=tmp_path / "data") as broker, Client(broker.bootstrap) as client:
        for number in range(2 * BATCHES):
            assert produce(client, "t", batch_of(b"anew%d" % number * 20)) == (ErrorCode.NONE, number)
        until(lambda: "t-0: tiering failed" in caplog.text)

    assert {path: path.read_bytes() for path in (tmp_path / "store").rglob("segments/*")} == before
    assert "Was its folder lost?" in caplog.text
