"""A look through a bucket tells everything that is wrong with it, and nothing else."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from crc32c import crc32c

from odradek.kernel.api import ConfigError, StoreUnavailableError
from odradek.kernel.machine import progress
from odradek.plugins.storage_tiered.bucket import StoredTopic, claim, put_topic
from odradek.plugins.storage_tiered.cli import add_tiered_command
from odradek.plugins.storage_tiered.folder_store import FolderStore
from odradek.plugins.storage_tiered.manifest import Manifest, StoredFile
from odradek.plugins.storage_tiered.manifests import put_next
from odradek.plugins.storage_tiered.names import manifest_name, segment_file_name, topic_file_name
from odradek.plugins.storage_tiered.verify import BucketReport, verify_bucket
from odradek.testing.object_stores import FaultyObjectStore, MemoryObjectStore, StoreFault
from tests.plugins.storage_tiered.manifest_values import CLUSTER_ID, PARTITION, manifest, segment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from odradek.kernel.api import ObjectStore

DATA = b"records of a segment"
FILES = {"log": StoredFile(len(DATA), crc32c(DATA)), "index": StoredFile(4, crc32c(b"1234"))}
CONTENTS = {"log": DATA, "index": b"1234"}


def fill(store: ObjectStore, *offsets: tuple[int, int]) -> Manifest:
    """Make a sound bucket with one partition."""
    claim(store, CLUSTER_ID)
    put_topic(store, StoredTopic(CLUSTER_ID, PARTITION.topic, PARTITION.topic_id, 4, {}))
    made = manifest(*(attrs.evolve(segment(*each), files=FILES) for each in offsets))
    for each in made.segments:
        for kind, data in CONTENTS.items():
            store.put(segment_file_name(PARTITION, each.base_offset, each.uid, kind), data)
    return put_next(store, made)


def found(report: BucketReport) -> list[tuple[str, bool]]:
    return [(each.kind, each.is_error) for each in report.all_findings]


def test_a_sound_bucket_is_sound() -> None:
    store = MemoryObjectStore()
    made = fill(store, (0, 10), (10, 20))
    seen: list[tuple[int, int, str]] = []
    report = verify_bucket(store, on_progress=lambda *told: seen.append(told))

    assert (report.is_sound, report.cluster_id, found(report)) == (True, CLUSTER_ID, [])
    assert [each.manifest for each in report.partitions] == [made]
    assert report.bytes_read == 48
    assert seen == [(0, 1, str(PARTITION)), (1, 1, "")]


TOPIC_FILE = topic_file_name(PARTITION.topic, PARTITION.topic_id)
LOG = segment_file_name(PARTITION, 10, "uid-10", "log")


def damage_odradek_json(store: MemoryObjectStore) -> None:
    store.put("odradek.json", b"{}")


def flip_a_bit(store: MemoryObjectStore) -> None:
    store.put(LOG, bytes([DATA[0] ^ 1]) + DATA[1:])


def store_a_later_manifest(store: MemoryObjectStore) -> None:
    data = store.get(manifest_name(PARTITION, 1)).replace(b'"format_version": 1', b'"format_version": 2')
    store.put(manifest_name(PARTITION, 1), data)


@pytest.mark.parametrize(
    ("damage", "kind", "is_error"),
    [
        (lambda store: store.delete("odradek.json"), "bucket", True),
        (damage_odradek_json, "bucket", True),
        (lambda store: store.delete(TOPIC_FILE), "topic", False),
        (lambda store: store.put(TOPIC_FILE, b"?"), "topic", False),
        (lambda store: put_topic(store, StoredTopic("B", "orders", PARTITION.topic_id, 1, {})), "topic", False),
        (lambda store: store.put(manifest_name(PARTITION, 2), b"?"), "manifest", True),
        (store_a_later_manifest, "later-format", True),
        (lambda store: store.delete(LOG), "missing", True),
        (lambda store: store.put(LOG, DATA[:-1]), "size", True),
        (flip_a_bit, "checksum", True),
        (lambda store: store.put(LOG.replace("uid-10", "left"), b"x"), "orphan", False),
        (lambda store: store.put("holiday.jpg", b"x"), "foreign", False),
    ],
)
def test_whatever_is_wrong_is_told_once(damage: Callable[[MemoryObjectStore], None], kind: str, is_error: bool) -> None:
    store = MemoryObjectStore()
    fill(store, (0, 10), (10, 20))
    damage(store)
    report = verify_bucket(store)

    assert found(report) == [(kind, is_error)]
    assert report.is_sound is not is_error


def test_a_gap_is_told_with_its_offsets() -> None:
    store = MemoryObjectStore()
    fill(store, (0, 10), (12, 20))
    (finding,) = verify_bucket(store).all_findings

    assert (finding.kind, finding.is_error) == ("gap", True)
    assert finding.text == "no segment stands for the offsets 10 to 11"


def test_a_compacted_topic_may_have_gaps() -> None:
    store = MemoryObjectStore()
    fill(store, (0, 10), (12, 20))
    put_topic(store, StoredTopic(CLUSTER_ID, "orders", PARTITION.topic_id, 4, {"cleanup.policy": "compact,delete"}))

    assert found(verify_bucket(store)) == [("empty", False)]


def test_sizes_alone_are_compared_without_reading() -> None:
    store = MemoryObjectStore()
    fill(store, (0, 10), (10, 20))
    flip_a_bit(store)
    report = verify_bucket(store, reads_objects=False)

    assert (report.is_sound, report.bytes_read) == (True, 0)


def test_other_topics_are_left_out_when_one_is_asked_for() -> None:
    store = MemoryObjectStore()
    fill(store, (0, 10))
    store.put("holiday.jpg", b"x")

    assert found(verify_bucket(store, topics=["another"])) == []
    assert len(verify_bucket(store, topics=["orders"]).partitions) == 1


def test_a_segment_that_expires_while_it_is_looked_at_is_not_missed() -> None:
    inner = MemoryObjectStore()
    made = fill(inner, (0, 10), (10, 20))
    store = FaultyObjectStore(inner)

    def expire(method: str, name: str) -> None:
        first = segment_file_name(PARTITION, 0, "uid-0", "log")
        if method == "size" and first in inner.objects:
            inner.delete(first)
            put_next(inner, made.without_below(10))

    store.before_each = expire
    report = verify_bucket(store)

    assert report.is_sound


def test_a_store_that_goes_away_is_no_finding() -> None:
    inner = MemoryObjectStore()
    fill(inner, (0, 10), (10, 20))
    counting = FaultyObjectStore(inner)
    verify_bucket(counting)
    for fail_at in range(1, counting.operations + 1):
        with pytest.raises(StoreUnavailableError):
            verify_bucket(FaultyObjectStore(inner, fail_at=fail_at, fault=StoreFault.BUSY))


# -- the command -----------------------------------------------------------------------------------------------------


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_tiered_command(parser.add_subparsers(), lambda topics, **options: None)
    arguments = parser.parse_args(["tiered", *words])
    status: int = arguments.run(arguments)
    return status


def test_the_command_prints_a_table_and_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = FolderStore(tmp_path)
    fill(store, (0, 10), (10, 20))

    assert run("verify", "--store", tmp_path.as_uri()) == 0
    assert capsys.readouterr().out == (
        f"{tmp_path.as_uri()}, cluster cluster-A\n"
        "topic   partition  start  end  segments  bytes\n"
        "orders          3      0   20         2     40  sound\n"
        "errors: 0, notes: 0; 48 bytes were read and compared\n"
    )
    store.delete(LOG)

    assert run("verify", "--store", tmp_path.as_uri(), "--sizes-only") == 1
    assert f"ERROR missing: {LOG}: {LOG} is not there" in capsys.readouterr().out


def test_a_partition_of_which_no_manifest_can_be_read_stands_in_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    fill(store, (0, 10))
    store.put(manifest_name(PARTITION, 2), b"?")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress, "SHOW_EVERY_S", 0)
    status = run("verify", "--store", tmp_path.as_uri(), "--set", "odradek.tiered.store.timeout.ms=5", "--set", "a=b")
    printed = capsys.readouterr()

    assert status == 1
    assert "orders          3  -      -    -         -      1 wrong\n" in printed.out
    assert printed.err == "\r\x1b[Kverifying: 0 of 1 partitions orders-3\r\x1b[Kverifying: 1 of 1 partitions \r\x1b[K"


def test_the_command_writes_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(FolderStore(tmp_path), (0, 10), (12, 20))
    status = run("verify", "--store", tmp_path.as_uri(), "--json")
    told: Any = json.loads(capsys.readouterr().out)

    assert (status, told["is_sound"], told["cluster_id"]) == (1, False, CLUSTER_ID)
    assert told["partitions"][0] == {
        "topic": "orders",
        "topic_id": "AAAAAAAAAE0AAAAAAAAAAA",
        "partition": 3,
        "manifest_version": 1,
        "leader_epoch": 5,
        "log_start_offset": 0,
        "end_offset": 20,
        "segments": 2,
        "abandoned": 0,
        "size_bytes": 40,
        "listing": [
            {
                "base_offset": base,
                "next_offset": end,
                "size_bytes": 20,
                "object": segment_file_name(PARTITION, base, f"uid-{base}", "log"),
            }
            for base, end in ((0, 10), (12, 20))
        ],
    }
    assert [each["kind"] for each in told["findings"]] == ["gap"]


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("nonsense", "expected key=value"),
        ("odradek.tiered.store.timeout.ms=soon", "expected milliseconds above 0"),
        ("odradek.tiered.store.colour=blue", "means nothing for a store of the kind file://"),
    ],
)
def test_a_wrong_option_is_told(tmp_path: Path, option: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        run("verify", "--store", tmp_path.as_uri(), "--set", option)
