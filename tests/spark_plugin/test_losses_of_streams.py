"""What a stream reader says to Spark when topics, partitions and records are gone, or seem to be."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from odradek.client import TopicPartition
from odradek.spark_plugin.errors import AssignmentError, DataLossError
from odradek.spark_plugin.reading import stream_reader
from odradek.spark_plugin.reading.survey import Survey, survey
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.spark_plugin.stream_kit import EARLIEST, LENIENT, batch, hurry, latest, offsets, reader_of
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


def test_what_retention_took_before_a_batch_is_an_error_or_a_warning(
    kit: Kit, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    kit.admin.delete_records({TopicPartition(topic, 0): 15})
    start, end = {topic: {"0": 5}}, {topic: {"0": 20}}

    with pytest.raises(DataLossError, match="10 offsets are lost"):
        reader_of(kit, topic, EARLIEST).plan(start, end)
    with caplog.at_level(logging.WARNING):
        assert batch(reader_of(kit, topic, LENIENT), start, end) == offsets(20, 15)
    assert "10 offsets are lost" in caplog.text


def test_a_topic_made_again_is_recognised_and_read_from_its_beginning(kit: Kit, topic: str) -> None:
    readers = [reader_of(kit, topic, options) for options in (EARLIEST, LENIENT)]
    firsts = [latest(reader, reader.initial_offset()) for reader in readers]
    for reader, first in zip(readers, firsts, strict=True):
        batch(reader, {topic: {"0": 0}}, first)
    kit.make_again(topic)
    kit.fill(topic, 30)  # more than before: offsets alone would not tell

    seconds = [latest(reader, first) for reader, first in zip(readers, firsts, strict=True)]

    with pytest.raises(DataLossError, match=r"topic id of .* changed"):
        readers[0].plan(firsts[0], seconds[0])
    assert batch(readers[1], firsts[1], seconds[1]) == offsets(30)


def test_a_log_that_ends_before_the_checkpoint_is_an_error_or_a_warning(kit: Kit, topic: str) -> None:
    quick = {"fetchOffset.retryIntervalMs": 0}
    failing, lenient = reader_of(kit, topic, {**EARLIEST, **quick}), reader_of(kit, topic, {**LENIENT, **quick})
    start = {topic: {"0": 1000}}
    end = latest(failing, start)

    assert end == {topic: {"0": 20}}
    with pytest.raises(DataLossError, match="changed from 1000 to 20"):
        failing.plan(start, end)
    assert batch(lenient, start, end) == []
    assert latest(lenient, end) == end


def test_a_deleted_topic_is_an_error_or_dropped(kit: Kit) -> None:
    gone, kept = kit.new_topic(), kit.new_topic()
    for name in (gone, kept):
        kit.fill(name, 5)
    failing, lenient = (reader_of(kit, f"{gone},{kept}", options) for options in (EARLIEST, LENIENT))
    start = {gone: {"0": 5}, kept: {"0": 0}}
    kit.admin.delete_topic(gone)

    for reader in (failing, lenient):
        hurry(reader)
    with pytest.raises(DataLossError, match=rf"{gone}-0 has been deleted \(read up to 5\)"):
        latest(failing, start)
    with pytest.raises(DataLossError, match=f"{gone}-0 has been deleted"):
        failing.plan(start, {gone: {"0": 7}, kept: {"0": 5}})
    lenient.prepare_available_now()
    end = latest(lenient, start)
    assert end == {kept: {"0": 5}}
    assert batch(lenient, start, end) == offsets(5)


def lag(monkeypatch: pytest.MonkeyPatch, lacking: TopicPartition, *, answers: int) -> list[int]:
    """Have so many answers lack a partition, as those of a broker that lags; return their numbers as they come."""
    asked: list[int] = []

    def lagging(*args: Any, **kwargs: Any) -> Survey:
        found = survey(*args, **kwargs)
        asked.append(len(asked) + 1)
        if len(asked) > answers:
            return found
        return attrs.evolve(found, partitions=tuple(one for one in found.partitions if one != lacking))

    monkeypatch.setattr(stream_reader, "survey", lagging)
    return asked


def forget(monkeypatch: pytest.MonkeyPatch, topic: str, *, answers: int) -> None:
    """Have so many answers know nothing of a topic that the options name."""
    left = [answers]

    def forgetful(*args: Any, **kwargs: Any) -> Survey:
        left[0] -= 1
        if left[0] >= 0:
            raise AssignmentError(f"no such topic: {topic!r}")
        return survey(*args, **kwargs)

    monkeypatch.setattr(stream_reader, "survey", forgetful)


@pytest.mark.parametrize("options", [EARLIEST, LENIENT], ids=["failing", "lenient"])
def test_a_broker_that_does_not_know_a_partition_yet_takes_it_out_of_no_checkpoint(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    topic = kit.new_topic(2)
    kit.fill(topic, 5, partition=1)
    reader = reader_of(kit, topic, options)
    slept_s = hurry(reader)
    start = {topic: {"0": 0, "1": 2}}
    lag(monkeypatch, TopicPartition(topic, 1), answers=2)
    end = latest(reader, start)
    lag(monkeypatch, TopicPartition(topic, 1), answers=2)

    assert end == {topic: {"0": 0, "1": 5}}
    assert batch(reader, start, end) == offsets(5, 2, partition=1)
    assert slept_s == [1.0] * 4


def test_a_broker_that_does_not_know_a_topic_yet_stops_no_restart(
    kit: Kit, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = reader_of(kit, topic, EARLIEST)
    slept_s = hurry(reader)
    forget(monkeypatch, topic, answers=2)
    reader.prepare_available_now()
    forget(monkeypatch, topic, answers=2)  # of a topic that was added to those of the checkpoint

    assert latest(reader, {}) == {topic: {"0": 20}}
    assert slept_s == [1.0] * 4


def test_a_topic_that_no_broker_knows_is_an_error_after_a_while(kit: Kit) -> None:
    reader = reader_of(kit, "nowhere", EARLIEST)
    slept_s = hurry(reader)

    with pytest.raises(AssignmentError, match="no such topic: 'nowhere'"):
        reader.prepare_available_now()
    assert slept_s == [1.0] * 3


def test_a_partition_that_stays_away_is_an_error_before_the_checkpoint_has_an_end_without_it(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kit.new_topic(2)
    reader = reader_of(kit, topic, {**EARLIEST, "fetchOffset.retryIntervalMs": 0, "fetchOffset.numRetries": 1})
    slept_s = hurry(reader)
    lag(monkeypatch, TopicPartition(topic, 1), answers=1_000)

    with pytest.raises(DataLossError, match=f"{topic}-1 has been deleted"):
        latest(reader, {topic: {"0": 0, "1": 0}})
    assert 3 <= sum(slept_s) < 4


def test_a_topic_made_again_with_fewer_partitions_is_believed_at_once(kit: Kit) -> None:
    topic = kit.new_topic(2)
    reader = reader_of(kit, topic, LENIENT)
    start = reader.initial_offset()
    slept_s = hurry(reader)
    kit.make_again(topic)

    assert latest(reader, start)[topic] == {"0": 0}
    assert not slept_s


def test_a_topic_that_was_dropped_may_stay_away_and_come_back(kit: Kit) -> None:
    gone, kept = kit.new_topic(), kit.new_topic()
    kit.fill(kept, 5)
    start = {gone: {"0": 5}, kept: {"0": 5}}
    kit.admin.delete_topic(gone)
    lenient = reader_of(kit, f"{gone},{kept}", LENIENT)
    hurry(lenient)
    dropped = latest(lenient, start)

    assert batch(lenient, start, dropped) == []
    assert latest(lenient, dropped) == dropped == {kept: {"0": 5}}
    kit.fill(kept, 3)
    onward = latest(lenient, dropped)
    assert batch(lenient, dropped, onward) == offsets(8, 5)
    failing = reader_of(kit, f"{gone},{kept}", EARLIEST)
    hurry(failing)
    with pytest.raises(AssignmentError, match=f"no such topic: '{gone}'"):
        latest(failing, dropped)


def test_compaction_gaps_and_markers_are_never_a_loss(kit: Kit) -> None:
    topic = kit.new_topic()
    kit.write(topic, *[Write(0, (Record(b"k", b"v"),), is_committed=flag) for flag in (True, False, True)])
    reader = reader_of(kit, topic, {**EARLIEST, "kafka.isolation.level": "read_committed"})
    start = reader.initial_offset()
    end = latest(reader, start)

    assert end[topic] == {"0": 6}
    assert batch(reader, start, end) == [(0, 0), (0, 4)]
    assert latest(reader, end) == end
