"""Topics that a plugin found elsewhere come into an empty data directory, all of them or none."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

import attrs
import pytest

from odradek.cli.restoring import restore_topics
from odradek.client import BlockingAdmin, BlockingProducer, ResourceType
from odradek.kernel.api import (
    ConfigError,
    KafkaError,
    RestoredPartition,
    RestoredSidecar,
    RestoredTopic,
)
from odradek.kernel.partitions.producer_snapshot import ProducerSnapshotEntry, encode_snapshot
from odradek.testing.running_broker import running_broker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CLUSTER_ID = "a-cluster-of-before-22"
SNAPSHOT = encode_snapshot([ProducerSnapshotEntry(7, 0, 3, 99, 3, 1_700_000_000_000, -1, -1)])


@pytest.fixture(autouse=True)
def without_its_log_handler() -> Iterator[None]:
    """Take away the handler for log lines that a command leaves: it writes to a stream that ends with the test."""
    before = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = before


def topic(name: str = "orders", configs: Mapping[str, str] | None = None) -> RestoredTopic:
    partitions = [RestoredPartition(100, 8, [RestoredSidecar(100, "snapshot", SNAPSHOT)]), RestoredPartition(0, -1)]
    topic_id = UUID(int=int.from_bytes(name.encode(), "big"))
    return RestoredTopic(name, topic_id, configs or {}, partitions)


def restore(data_dir: Path, *topics: RestoredTopic, settings: tuple[str, ...] = ()) -> None:
    restore_topics(topics, data_dir=data_dir, cluster_id=CLUSTER_ID, config=None, settings=settings)


def test_a_restored_topic_goes_on_where_it_ended(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    restore(data_dir, topic(configs={"retention.ms": "123"}), topic("payments"))
    with running_broker(data_dir=data_dir) as broker:
        to_it = {"bootstrap.servers": broker.bootstrap}
        with BlockingAdmin(to_it) as admin:
            cluster = admin.describe_cluster()
            found = admin.describe_topic("orders")
            configs = admin.describe_configs(ResourceType.TOPIC, "orders")
        with BlockingProducer(to_it) as producer:
            written = [producer.send(name, b"value", partition=0) for name in ("orders", "payments")]
            written.append(producer.send("orders", b"value", partition=1))

    assert cluster.cluster_id == CLUSTER_ID
    assert (found.topic_id, len(found.partitions)) == (topic().topic_id, 2)
    assert configs["retention.ms"].value == "123"
    assert [each.offset for each in written] == [100, 100, 0]


def test_a_directory_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")

    with pytest.raises(ConfigError, match="the data directory is not empty"):
        restore(tmp_path, topic())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("topics", "error", "told"),
    [
        ((topic("orders", {"colour": "blue"}),), KafkaError, "topic orders cannot be adopted: Unknown topic config"),
        (
            (topic("a"), attrs.evolve(topic("b"), topic_id=topic("a").topic_id)),
            KafkaError,
            "is another topic found here",
        ),
    ],
)
def test_what_cannot_be_restored_leaves_the_directory_empty(
    tmp_path: Path, topics: tuple[RestoredTopic, ...], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        restore(tmp_path, *topics)

    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown broker key 'no\.such'"):
        restore(tmp_path / "data", topic(), settings=("no.such=1",))

    assert not (tmp_path / "data").exists()


def test_a_damaged_state_of_producers_knows_no_ids_and_is_left_out(tmp_path: Path) -> None:
    sidecars = [RestoredSidecar(5, "snapshot", b"?"), RestoredSidecar(3, "snapshot", SNAPSHOT)]
    damaged = [RestoredPartition(5, 1, sidecars)]
    restore(tmp_path / "data", attrs.evolve(topic(), partitions=damaged))
    with (
        running_broker(data_dir=tmp_path / "data") as broker,
        BlockingProducer({"bootstrap.servers": broker.bootstrap}) as producer,
    ):
        written = producer.send("orders", b"value")

    assert written.offset == 5
