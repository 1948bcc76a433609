"""What a restore reads from a bucket, and what it refuses."""

from __future__ import annotations

import argparse
import json
import uuid
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from crc32c import crc32c

from odradek.kernel.api import RestoredTopic, TopicIdPartition, id_text
from odradek.plugins.storage_tiered.bucket import StoredTopic, claim, put_topic
from odradek.plugins.storage_tiered.cli import add_tiered_command
from odradek.plugins.storage_tiered.folder_store import FolderStore
from odradek.plugins.storage_tiered.local_state import COLD_TRANSACTIONS_KIND, TIER_KIND, decode_state
from odradek.plugins.storage_tiered.manifest import Manifest, StoredFile, StoredSegment, new_manifest
from odradek.plugins.storage_tiered.manifests import put_next
from odradek.plugins.storage_tiered.names import segment_file_name, topic_file_name
from odradek.plugins.storage_tiered.restore import RestoreError, read_topics
from odradek.testing.object_stores import MemoryObjectStore
from tests.plugins.storage_tiered.manifest_values import CLUSTER_ID

if TYPE_CHECKING:
    from pathlib import Path

    from odradek.kernel.api import ObjectStore

ORDERS = uuid.UUID(int=77 << 64)
CONTENTS = {"log": b"records", "txnindex": b"aborted", "snapshot": b"producers"}


def put_segment(
    store: ObjectStore, partition: TopicIdPartition, base: int, end: int, kinds: tuple[str, ...]
) -> StoredSegment:
    files = {}
    for kind in kinds:
        store.put(segment_file_name(partition, base, f"u{base}", kind), CONTENTS[kind])
        files[kind] = StoredFile(len(CONTENTS[kind]), crc32c(CONTENTS[kind]))
    return StoredSegment(f"u{base}", base, end, 1, (), files)


def put_partition(
    store: ObjectStore, topic: str = "orders", topic_id: uuid.UUID = ORDERS, number: int = 0, *, start: int = 0
) -> Manifest:
    partition = TopicIdPartition(topic_id, topic, number)
    made = new_manifest(partition, cluster_id=CLUSTER_ID, leader_epoch=7, log_start_offset=start)
    made = made.with_segment(put_segment(store, partition, 0, 10, ("log", "txnindex", "snapshot")))
    return put_next(store, made.with_segment(put_segment(store, partition, 10, 20, ("log", "snapshot"))))


def bucket() -> MemoryObjectStore:
    store = MemoryObjectStore()
    claim(store, CLUSTER_ID)
    put_topic(store, StoredTopic(CLUSTER_ID, "orders", ORDERS, 3, {"retention.ms": "-1"}))
    put_partition(store, number=1, start=4)
    return store


def test_a_topic_comes_with_its_id_its_configs_and_all_partitions() -> None:
    cluster_id, (found,) = read_topics(bucket())
    topic = found.topic

    assert (cluster_id, topic.topic, topic.topic_id) == (CLUSTER_ID, "orders", ORDERS)
    assert topic.configs == {"retention.ms": "-1", "remote.storage.enable": "true"}
    assert [(each.next_offset, each.latest_epoch) for each in topic.partitions] == [(0, -1), (20, 7), (0, -1)]
    assert found.records_end == 16


def test_a_log_gets_its_manifest_its_aborted_transactions_and_its_producers() -> None:
    _, (found,) = read_topics(bucket())
    state, *others = found.topic.partitions[1].sidecars

    assert (state.offset, state.kind) == (0, TIER_KIND)
    assert decode_state(state.data, "it").manifest == found.manifests[1]
    assert decode_state(state.data, "it").log_start_offset == 4
    assert others == [(0, COLD_TRANSACTIONS_KIND, b"aborted"), (20, "snapshot", b"producers")]


def test_a_log_whose_records_were_all_deleted_begins_where_they_ended() -> None:
    store = bucket()
    made = put_partition(store, number=2)
    put_next(store, made.without_below(99))
    _, (found,) = read_topics(store)

    assert found.topic.partitions[2].next_offset == 99


def test_a_topic_that_nothing_is_known_of_has_the_partitions_that_are_there() -> None:
    store = bucket()
    store.delete(topic_file_name("orders", ORDERS))
    _, (found,) = read_topics(store)

    assert len(found.topic.partitions) == 2
    assert found.topic.configs == {"remote.storage.enable": "true"}


def test_only_the_topics_that_are_wanted_are_read() -> None:
    store = bucket()
    put_partition(store, "payments", uuid.UUID(int=5))

    assert [each.topic.topic for each in read_topics(store)[1]] == ["orders", "payments"]
    assert [each.topic.topic for each in read_topics(store, only=["payments"])[1]] == ["payments"]
    with pytest.raises(RestoreError, match="holds no topic paiments; it has orders, payments"):
        read_topics(store, only=["paiments"])


def test_of_two_topics_with_one_name_one_has_to_be_chosen() -> None:
    store = bucket()
    other = uuid.UUID(int=5)
    put_partition(store, "orders", other)

    with pytest.raises(RestoreError, match=f"say which with --topic orders/{id_text(other)} or --topic orders/"):
        read_topics(store)
    _, (found,) = read_topics(store, only=[f"orders/{id_text(other)}"])
    assert found.topic.topic_id == other


def test_a_bucket_of_nobody_is_refused() -> None:
    with pytest.raises(RestoreError, match=r"there is no odradek\.json"):
        read_topics(MemoryObjectStore())


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("log", None, "there is nothing"),
        ("log", b"half", "there is 4 bytes"),
        ("snapshot", b"Producers", "has the CRC-32C"),
        ("txnindex", b"Aborted", "has the CRC-32C"),
    ],
)
def test_a_partition_with_a_hole_is_refused(kind: str, data: bytes | None, told: str) -> None:
    store = bucket()
    base = 10 if kind == "snapshot" else 0
    name = segment_file_name(TopicIdPartition(ORDERS, "orders", 1), base, f"u{base}", kind)
    store.delete(name)
    if data is not None:
        store.put(name, data)

    with pytest.raises(RestoreError, match=rf"orders-1 cannot be restored: .*{told}"):
        read_topics(store)


@attrs.define
class Restorer:
    """Takes note of what it is to restore."""

    topics: list[RestoredTopic] = attrs.field(factory=list)
    options: dict[str, Any] = attrs.field(factory=dict)

    def __call__(self, topics: Any, **options: Any) -> None:
        self.topics, self.options = list(topics), options


def run(restorer: Restorer, *words: str) -> int:
    parser = argparse.ArgumentParser()
    add_tiered_command(parser.add_subparsers(), restorer)
    arguments = parser.parse_args(["tiered", "restore", *words])
    status: int = arguments.run(arguments)
    return status


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bucket in a folder."""
    place = tmp_path / "bucket of tiers"
    store = FolderStore(place)
    for name, (data, _) in bucket().objects.items():
        store.put(name, data)
    return place


def test_the_command_says_what_it_restored_and_how_to_start(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    restorer, data_dir = Restorer(), tmp_path / "data"
    status = run(restorer, "--store", folder.as_uri(), "--data-dir", str(data_dir), "--set", "node.id=3")

    assert status == 0
    assert restorer.options == {
        "data_dir": data_dir,
        "cluster_id": CLUSTER_ID,
        "config": None,
        "settings": [
            f"odradek.tiered.store={folder.as_uri()}",
            "remote.log.storage.system.enable=true",
            "node.id=3",
        ],
    }
    assert capsys.readouterr().out == (
        "topic   partitions  offsets  segments  bytes  topic id\n"
        "orders           3       16         2     14  AAAAAAAAAE0AAAAAAAAAAA\n"
        f"restored into {data_dir}, cluster cluster-A; start it with\n"
        "\n"
        f"  odradek serve --data-dir {data_dir} --set odradek.tiered.store={folder.as_uri()} "
        "--set remote.log.storage.system.enable=true\n"
    )


def test_the_command_writes_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(Restorer(), "--store", folder.as_uri(), "--data-dir", str(tmp_path / "data"), "--json")
    told: Any = json.loads(capsys.readouterr().out)

    assert told["cluster_id"] == CLUSTER_ID
    assert told["topics"][0]["partitions"][1] == {
        "partition": 1,
        "log_start_offset": 4,
        "end_offset": 20,
        "segments": 2,
        "size_bytes": 14,
    }
