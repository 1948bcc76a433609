"""Leaders are killed while topics are read and written, without Spark: each row is there once.

Files are read where the leader keeps them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from odradek.spark_plugin.direct import BrokerPiece, DirectReadError, SegmentPiece
from odradek.spark_plugin.reading.batch_reader import BatchReader
from odradek.spark_plugin.reading.read_task import ReadTask, read
from odradek.testing.running_cluster import RunningCluster, running_cluster
from tests.spark_plugin.exactly_once_life import Life
from tests.spark_plugin.stream_kit import EARLIEST, batch, latest, offsets
from tests.spark_plugin.stream_kit import reader_of as stream_reader_of
from tests.spark_plugin.test_reading_topics import FULL, rows_of
from tests.spark_plugin.topic_kit import Kit, cells, open_kit
from tests.waiting import until

SETTINGS = {"auto.create.topics.enable": False, "log.retention.ms": -1}


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningCluster]:
    with running_cluster(SETTINGS) as running:
        yield running
        running.check()


@pytest.fixture(scope="module")
def kit(cluster: RunningCluster) -> Iterator[Kit]:
    with open_kit(cluster.bootstrap_servers) as kit:
        yield kit


@pytest.fixture
def kill_leader(cluster: RunningCluster) -> Iterator[Callable[[str], int]]:
    """Return what kills who leads partition 0 of a topic, and says who that was; it is back afterwards."""
    killed: list[int] = []

    def kill(topic: str) -> int:
        leader = cluster.leader(topic)
        cluster.kill(leader)
        killed.append(leader)
        return leader

    yield kill
    for node_id in killed:
        cluster.start(node_id)
    until(lambda: all(cluster.brokers[node_id].leader("__leads", 0) in cluster.brokers for node_id in killed))


@pytest.fixture(scope="module", autouse=True)
def topic_of_all(cluster: RunningCluster) -> None:
    """Make a topic by which a broker shows that it follows the metadata."""
    cluster.create_topic("__leads")


def reader_of(kit: Kit, topic: str, **options: Any) -> BatchReader:
    named = {key.replace("_", "."): str(value) for key, value in options.items()}
    named |= {"kafka.bootstrap.servers": kit.bootstrap, "subscribe": topic, "includeHeaders": "true"}
    return BatchReader.of(named, FULL)


def kinds(tasks: list[ReadTask]) -> set[type]:
    return {type(piece) for task in tasks for piece in task.pieces}


@pytest.mark.parametrize("at", [3, 9, 15, 24, 33])
def test_a_leader_that_dies_at_a_request_costs_no_row_and_doubles_none(
    kit: Kit, kill_leader: Callable[[str], int], at: int
) -> None:
    topic = kit.new_topic(2)
    life = Life(kit.bootstrap, topic, accident=lambda: kill_leader(topic))
    life.run_to_the_end(at, is_done=at % 2 == 0)

    assert sorted(row[1] for row in kit.consumed(topic, is_read_committed=True)) == life.expected


def test_a_leader_that_coordinates_too_may_die(cluster: RunningCluster, kit: Kit) -> None:
    topic = kit.new_topic(2)
    Life(kit.bootstrap, topic).run_to_the_end(None, is_done=False)
    for node_id in cluster.brokers:  # one of them is the coordinator of its transactions, one of its group
        other = kit.new_topic(2)
        life = Life(kit.bootstrap, other, accident=partial(cluster.kill, node_id))
        life.run_to_the_end(12, is_done=True)
        found = sorted(row[1] for row in kit.consumed(other, is_read_committed=True))
        cluster.start(node_id)

        assert found == life.expected, f"broker {node_id} died"


def test_a_batch_is_read_whole_though_the_leader_dies_within_a_task(
    kit: Kit, kill_leader: Callable[[str], int]
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 200)
    (task,) = reader_of(kit, topic, kafka_max_partition_fetch_bytes=1_000).plan()
    batches = read(pickle.loads(pickle.dumps(task)))
    rows = [next(batches)]
    kill_leader(topic)
    rows += list(batches)

    assert cells(rows) == kit.consumed(topic)


def test_a_stream_goes_on_though_leaders_die_between_its_batches(kit: Kit, kill_leader: Callable[[str], int]) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 20)
    reader = stream_reader_of(kit, topic, EARLIEST)
    start = reader.initial_offset()
    end = latest(reader, start)
    kill_leader(topic)

    assert batch(reader, start, end) == offsets(20)
    kit.fill(topic, 10)
    assert batch(reader, end, latest(reader, end)) == offsets(30, start=20)


def test_files_are_read_where_the_new_leader_keeps_them(
    cluster: RunningCluster, kit: Kit, kill_leader: Callable[[str], int]
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 60)
    places = {"dataDir": ",".join(str(broker.data_dir) for broker in cluster.brokers.values()), "readFrom": "segments"}
    before = reader_of(kit, topic, **places).plan()
    old = kill_leader(topic)
    until(lambda: cluster.leader(topic) not in (old, -1))
    after = reader_of(kit, topic, **places).plan()
    rows = kit.consumed(topic)

    assert rows_of(before) == rows_of(after) == rows  # what was planned is committed: it is the same in each copy
    assert kinds(before) == kinds(after) == {SegmentPiece}
    assert {_directory(before), _directory(after)} == {
        str(cluster.brokers[node_id].data_dir / f"{topic}-0") for node_id in (old, cluster.leader(topic))
    }


def test_files_of_another_than_the_leader_are_not_read(
    cluster: RunningCluster, kit: Kit, caplog: pytest.LogCaptureFixture
) -> None:
    topic = kit.new_topic()
    kit.fill(topic, 60)
    leader = cluster.leader(topic)
    follower = next(node_id for node_id in cluster.brokers if node_id != leader)
    data_dir = cluster.brokers[follower].data_dir
    why = f"{data_dir} belongs to node {follower}, and node {leader} leads the partition"
    tasks = reader_of(kit, topic, dataDir=data_dir).plan()

    assert rows_of(tasks) == kit.consumed(topic)
    assert kinds(tasks) == {BrokerPiece}
    assert why in caplog.text
    with pytest.raises(DirectReadError, match="readFrom=segments") as refused:
        reader_of(kit, topic, dataDir=data_dir, readFrom="segments").plan()
    assert why in str(refused.value)


def _directory(tasks: list[ReadTask]) -> str:
    (directory,) = {str(piece.directory) for task in tasks for piece in task.pieces if isinstance(piece, SegmentPiece)}
    return directory
