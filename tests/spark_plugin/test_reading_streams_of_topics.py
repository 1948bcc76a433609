"""What a stream reader says to Spark: where batches begin and end, over restarts and new partitions."""

from __future__ import annotations

import json
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.client import TopicPartition
from odradek.spark_plugin.errors import AssignmentError, OptionError
from odradek.spark_plugin.reading.stream_reader import StreamReader
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.spark_plugin.stream_kit import EARLIEST, batch, latest, offsets, reader_of, through_json
from tests.spark_plugin.topic_kit import QUIET, Kit, Record, Write, open_kit


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker({**QUIET, "log.retention.ms": -1}) as broker:
        yield broker


@pytest.fixture(scope="module")
def kit(broker: RunningBroker) -> Iterator[Kit]:
    with open_kit(broker.bootstrap) as kit:
        yield kit


@pytest.fixture
def topic(kit: Kit) -> str:
    """Return a topic of one partition with 20 records."""
    topic = kit.new_topic()
    kit.fill(topic, 20)
    return topic


def test_the_initial_offset_is_asked_for_once(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic)
    first = reader.initial_offset()
    kit.fill(topic, 10)

    assert reader.initial_offset() == first == {topic: {"0": 20}}


def test_batches_follow_each_other(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, EARLIEST)
    start = reader.initial_offset()
    first = latest(reader, start)
    kit.fill(topic, 5)
    second = latest(reader, first)

    assert batch(reader, start, first) == offsets(20)
    assert batch(reader, first, second) == offsets(25, 20)
    assert json.dumps(second) == f'{{"{topic}": {{"0": 25}}}}'


def test_the_end_of_the_first_batch_carries_its_start(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, EARLIEST)
    start = reader.initial_offset()

    assert latest(reader, start) == {topic: {"0": 20}, "@start": {topic: {"0": 0}}}


def explicit(topic: str, **starts: int) -> dict[str, str]:
    """Return the option that begins at an offset of each partition: p0=5."""
    return {"startingOffsets": json.dumps({topic: {name[1:]: offset for name, offset in starts.items()}})}


def test_an_explicit_start_is_carried_too_for_the_option_may_be_changed_before_the_batch_is_repeated(
    kit: Kit, topic: str
) -> None:
    reader = reader_of(kit, topic, explicit(topic, p0=3))
    end = latest(reader, reader.initial_offset())
    again = reader_of(kit, topic, EARLIEST)

    assert end == {topic: {"0": 20}, "@start": {topic: {"0": 3}}}
    assert batch(again, again.initial_offset(), end) == offsets(20, 3)


@pytest.mark.parametrize("starts", [{"p0": 3}, {"p0": 3, "p1": 0}, {"p0": -1}])
def test_a_first_batch_is_repeated_also_where_the_option_lacks_a_partition_by_now(
    kit: Kit, topic: str, starts: dict[str, int]
) -> None:
    reader = reader_of(kit, topic, explicit(topic, p0=3))
    end = latest(reader, reader.initial_offset())
    kit.admin.create_partitions(topic, 2)
    kit.fill(topic, 4, partition=1)

    again = reader_of(kit, topic, explicit(topic, **starts))

    assert batch(again, again.initial_offset(), end) == offsets(20, 3)
    assert latest(again, end) == {topic: {"0": 20, "1": 4}}


def test_what_is_wrong_with_a_start_is_told_before_a_batch_has_an_end(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, explicit(topic, p0=3, p1=0))
    start = reader.initial_offset()

    assert (start, reader.initial_offset()) == ({}, {})
    with pytest.raises(AssignmentError, match="don't match what are assigned"):
        latest(reader, start)


def test_an_end_of_the_connector_s_first_batch_is_not_read_from_a_start_that_nobody_knows(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, explicit(topic, p0=3, p1=0))
    start = reader.initial_offset()

    with pytest.raises(AssignmentError, match="don't match what are assigned"):
        reader.plan(start, {topic: {"0": 20}})


def test_a_repeated_first_batch_begins_where_it_began(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, {"startingOffsets": f'{{"{topic}":{{"0":-1}}}}'})
    start = reader.initial_offset()
    kit.fill(topic, 5)
    end = latest(reader, start)
    kit.fill(topic, 30)

    again = reader_of(kit, topic)
    elsewhere = again.initial_offset()

    assert elsewhere == {topic: {"0": 55}}
    assert batch(again, elsewhere, end) == offsets(25, 20)
    assert latest(again, end) == {topic: {"0": 55}}


@pytest.mark.parametrize("is_direct", [False, True], ids=["brokers", "files"])
def test_a_batch_that_is_repeated_is_cut_as_it_was_however_large_its_records_are_by_now(
    kit: Kit, broker: RunningBroker, topic: str, *, is_direct: bool
) -> None:
    """What a sink remembers of a batch it remembers for each task: `exactlyOnce` needs the same rows in each."""
    limits: dict[str, Any] = {"maxBytesPerPartition": 200}
    if is_direct:
        limits |= {"dataDir": broker.data_dir, "readFrom": "segments"}
    kit.fill(topic, 60)  # so that it has several segments
    start, end = {topic: {"0": 0}}, {topic: {"0": 80}}

    def ranges() -> list[tuple[int, int]]:
        tasks = reader_of(kit, topic, {**EARLIEST, **limits}).plan(start, end)
        return [(task.pieces[0].range.start, task.pieces[-1].range.end) for task in tasks]

    before = ranges()
    kit.write(topic, *(Write(0, (Record(b"k", b"x" * 400),)) for _ in range(20)))

    assert ranges() == before == [(0, 80)]


def test_nothing_new_is_the_start_itself(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, EARLIEST)
    end = latest(reader, reader.initial_offset())

    assert latest(reader, end) == end
    assert latest(reader_of(kit, topic), {topic: {"0": 20}}) == {topic: {"0": 20}}


def test_a_restart_without_news_right_after_the_first_batch_is_no_new_first_batch(kit: Kit, topic: str) -> None:
    end = {topic: {"0": 20}, "@start": {topic: {"0": 5}}}
    again = reader_of(kit, topic)
    elsewhere = again.initial_offset()

    assert batch(again, elsewhere, end) == offsets(20, 5)
    assert latest(again, end) == end


def test_limits_cut_batches(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, {**EARLIEST, "maxOffsetsPerTrigger": 8})
    ends = [reader.initial_offset()]
    for _ in range(4):
        ends.append(latest(reader, ends[-1]))

    assert [end[topic]["0"] for end in ends] == [0, 8, 16, 20, 20]
    assert reader.latest_offset(ends[1], is_limited=False)[topic] == {"0": 20}


def test_a_batch_waits_for_enough_offsets_but_not_for_ever(kit: Kit, topic: str) -> None:
    now_ms = [0]
    reader = reader_of(kit, topic, {**EARLIEST, "minOffsetsPerTrigger": 10, "maxTriggerDelay": "1m"})
    reader._now_ms = lambda: now_ms[0]
    first = latest(reader, reader.initial_offset())
    kit.fill(topic, 5)

    assert latest(reader, first) == first
    now_ms[0] = 60_000
    assert latest(reader, first) == {topic: {"0": 25}}


def test_available_now_keeps_to_what_was_there(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, {**EARLIEST, "maxOffsetsPerTrigger": 15})
    reader.prepare_available_now()
    start = reader.initial_offset()
    kit.fill(topic, 20)
    first = latest(reader, start)
    second = latest(reader, first)

    assert [first[topic], second[topic]] == [{"0": 15}, {"0": 20}]
    assert latest(reader, second) == second


def test_available_now_reads_nothing_where_it_begins_behind_the_end_that_it_keeps_to(kit: Kit, topic: str) -> None:
    """Spark has the end fixed before it asks where the query begins: what comes between is no log that went back."""
    reader = reader_of(kit, topic)
    reader.prepare_available_now()
    kit.fill(topic, 5)
    start = reader.initial_offset()
    end = latest(reader, start)

    assert end == {topic: {"0": 25}, "@start": {topic: {"0": 25}}}
    assert reader.plan(start, end) == []
    assert latest(reader, end) == end


def test_the_end_of_a_first_batch_may_be_asked_for_twice(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, EARLIEST)
    start = reader.initial_offset()

    assert latest(reader, start) == latest(reader, start) == {topic: {"0": 20}, "@start": {topic: {"0": 0}}}


def test_a_query_that_replays_its_first_batch_comes_by_what_is_the_initial_offset_now(kit: Kit, topic: str) -> None:
    again = reader_of(kit, topic)
    elsewhere = again.initial_offset()
    end = {topic: {"0": 15}, "@start": {topic: {"0": 5}}}

    assert batch(again, elsewhere, end) == offsets(15, 5)
    second = latest(again, end)
    assert second == elsewhere == {topic: {"0": 20}}
    assert latest(again, second) == second


def test_progress_knows_the_true_ends(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, {**EARLIEST, "maxOffsetsPerTrigger": 5})

    assert reader.known_ends() is None
    latest(reader, reader.initial_offset())
    assert reader.known_ends() == {topic: {"0": 20}}


def test_a_new_partition_is_read_from_its_first_record(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, EARLIEST)
    first = latest(reader, reader.initial_offset())
    kit.admin.create_partitions(topic, 2)
    kit.fill(topic, 10, partition=1)
    second = latest(reader, first)

    assert batch(reader, first, second) == offsets(10, partition=1)
    assert second == {topic: {"0": 20, "1": 10}}


def test_a_new_topic_is_found_by_the_pattern(kit: Kit, topic: str) -> None:
    options = {"kafka.bootstrap.servers": kit.bootstrap, "subscribePattern": f"^{topic}(-more)?$", **EARLIEST}
    reader = StreamReader.of(options, [("partition", "int"), ("offset", "bigint")])
    first = latest(reader, reader.initial_offset())
    from odradek.client import NewTopic

    kit.admin.create_topic(NewTopic(f"{topic}-more", 1))
    kit.fill(f"{topic}-more", 3)

    assert latest(reader, first) == {topic: {"0": 20}, f"{topic}-more": {"0": 3}}


def test_a_reader_can_be_pickled(kit: Kit, topic: str) -> None:
    reader = pickle.loads(pickle.dumps(reader_of(kit, topic, EARLIEST)))

    assert reader.initial_offset() == {topic: {"0": 0}}


# ------------------------------------------------------------------------------------------------------------- the rest


def test_what_spark_is_done_with_is_copied_to_a_group(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, {**EARLIEST, "commitOffsetsTo": f"group-{topic}"})
    end = latest(reader, reader.initial_offset())

    reader.commit(through_json(end))

    committed = kit.admin.list_group_offsets(f"group-{topic}")
    found = committed[TopicPartition(topic, 0)]
    assert found is not None
    assert found.offset == 20


def test_a_group_that_cannot_be_written_does_not_end_the_query(
    kit: Kit, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = reader_of(kit, topic, {**EARLIEST, "commitOffsetsTo": ""})
    reader.commit({topic: {"0": 5}})
    unknown = reader_of(kit, topic, {**EARLIEST, "commitOffsetsTo": "g", "kafka.default.api.timeout.ms": 500})
    with caplog.at_level(logging.WARNING):
        unknown.commit({"there-is-no-such-topic": {"0": 5}})

    assert "were not copied to the group 'g'" in caplog.text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"endingOffsets": "latest"}, "not valid in streaming"),
        ({"endingTimestamp": "5"}, "not valid in streaming"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}, "is higher than the maxOffsetsPerTrigger"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay"),
    ],
)
def test_a_wrong_option_is_refused_when_the_stream_is_made(options: dict[str, str], text: str) -> None:
    given_options = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", **options}

    with pytest.raises(OptionError, match=text):
        StreamReader.of(given_options, [("offset", "bigint")])


def test_a_topic_that_is_not_there_is_told_at_the_start(kit: Kit) -> None:
    reader = reader_of(kit, "nowhere")

    with pytest.raises(AssignmentError, match="no such topic: 'nowhere'"):
        latest(reader, reader.initial_offset())


def test_a_checkpoint_of_another_source_is_refused(kit: Kit, topic: str) -> None:
    with pytest.raises(OptionError, match="checkpoint holds offsets of another source"):
        latest(reader_of(kit, topic), {"index": 5})


def test_a_start_beyond_the_end_is_a_slip_and_no_loss(kit: Kit, topic: str) -> None:
    reader = reader_of(kit, topic, {"startingOffsets": f'{{"{topic}":{{"0":21}}}}', "failOnDataLoss": "false"})

    with pytest.raises(OptionError, match="beyond the end"):
        latest(reader, reader.initial_offset())
