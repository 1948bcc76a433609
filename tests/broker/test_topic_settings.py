"""What the settings of a topic do to what is taken from producers, and to files: seen from outside, one by one."""

from __future__ import annotations

import os
import random
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.kernel.errors import ErrorCode
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from odradek.kernel.wire.messages.api_20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from odradek.testing.running_broker import running_broker

from ..waiting import until
from .broker_process import Client, batch_of
from .test_process import fetch, produce
from .test_request_limits import create_topic, fetch_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from odradek.kernel.machine.files import Files
    from odradek.testing.running_broker import RunningBroker

EPOCH_MS = 1_700_000_000_000
MEBIBYTE = 1 << 20


def batch_at(timestamp: int, value: bytes = b"v") -> bytes:
    """Return a batch of one record."""
    builder = BatchBuilder()
    builder.append(None, value, timestamp=timestamp)
    return bytes(builder.build())


@contextmanager
def topics(
    data_dir: Path, configs: Mapping[str, Mapping[str, str]], files: Files | None = None
) -> Iterator[tuple[RunningBroker, Client]]:
    """Run a broker with topics of one partition, each with its own settings."""
    with (
        running_broker({"log.retention.ms": -1}, data_dir=data_dir, files=files) as broker,
        Client(broker.bootstrap) as client,
    ):
        for name, config in configs.items():
            assert create_topic(client, name, configs=config) == (ErrorCode.NONE, None)
        yield broker, client


def segments(data_dir: Path, topic: str) -> list[Path]:
    """Return the files of records of a topic's partition."""
    return sorted((data_dir / f"{topic}-0").glob("*.log"))


# --------------------------------------------------------------------------------------------------- what is taken


def stored(client: Client, topic: str) -> memoryview:
    """Return what a consumer gets from a topic's begin."""
    (part,) = fetch_once(client, topic).responses[0].partitions
    assert type(part.records) is memoryview
    return part.records


@pytest.mark.parametrize(("codec", "low", "high"), [("gzip", "1", "9"), ("lz4", "1", "17"), ("zstd", "1", "19")])
def test_records_are_compressed_by_the_topics_codec_and_as_hard_as_it_says(
    tmp_path: Path, codec: str, low: str, high: str
) -> None:
    words = random.Random(7).choices([b"%d %d" % (number, number * number) for number in range(500)], k=4000)
    quick, hard = ({"compression.type": codec, f"compression.{codec}.level": level} for level in (low, high))
    sizes = []
    with topics(tmp_path, {"quick": quick, "hard": hard}) as (_, client):
        for topic in ("quick", "hard"):
            assert produce(client, topic, batch_of(b" ".join(words)))[0] == ErrorCode.NONE
            records = stored(client, topic)
            assert read_header(records).compression_id == CompressionType[codec.upper()]
            sizes.append(len(records))

    assert sizes[1] < sizes[0] < sum(map(len, words))


# ---------------------------------------------------------------------------------------------------- topics as such


def names_of_topics(client: Client) -> list[str | None]:
    response = client.ask(MetadataRequest(topics=None), 9)
    assert isinstance(response, MetadataResponse)
    return [topic.name for topic in response.topics]


def delete_topic(client: Client, name: str) -> int:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=30_000)
    response = client.ask(request, 6)
    assert isinstance(response, DeleteTopicsResponse)
    return response.responses[0].error_code


def test_a_broker_may_be_told_to_make_and_to_delete_no_topics() -> None:
    settings = {"auto.create.topics.enable": False, "delete.topic.enable": False}
    with running_broker(settings) as broker, Client(broker.bootstrap) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="asked-for")])
        response = client.ask(request, 9)
        assert isinstance(response, MetadataResponse)
        assert response.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert create_topic(client, "made")[0] == ErrorCode.NONE

        assert delete_topic(client, "made") == ErrorCode.TOPIC_DELETION_DISABLED
        assert names_of_topics(client) == ["made"]


# ------------------------------------------------------------------------------------------------------------- files


def test_a_segment_ends_where_the_topics_limits_say(tmp_path: Path) -> None:
    hour_ms = 3_600_000
    limits = {
        "usual": {},
        "small": {"segment.bytes": str(MEBIBYTE)},
        "brief": {"segment.ms": str(hour_ms)},
        "exact": {"segment.ms": str(hour_ms + 1000)},
    }
    with topics(tmp_path, limits) as (_, client):
        for topic in limits:
            for timestamp in (EPOCH_MS, EPOCH_MS + 1000, EPOCH_MS + hour_ms + 500):
                assert produce(client, topic, batch_at(timestamp, bytes(400_000)))[0] == ErrorCode.NONE

        counts = {topic: len(segments(tmp_path, topic)) for topic in limits}

    assert counts == {"usual": 1, "small": 2, "brief": 2, "exact": 1}


def test_a_segment_ends_with_its_index_which_has_as_many_entries_as_the_topic_says(tmp_path: Path) -> None:
    dense, small = {"index.interval.bytes": "0"}, {"segment.index.bytes": "24"}
    with topics(tmp_path, {"dense": dense, "small": small, "both": {**dense, **small}}) as (_, client):
        for topic in ("dense", "small", "both"):
            for _ in range(5):
                assert produce(client, topic, batch_of(b"a"))[0] == ErrorCode.NONE

        counts = [len(segments(tmp_path, topic)) for topic in ("dense", "small", "both")]

    assert counts == [1, 1, 3]  # of two entries for timestamps, the last stays free for the end of the segment


def test_a_segments_file_may_have_its_size_from_the_begin(tmp_path: Path) -> None:
    small = {"segment.bytes": str(2 * MEBIBYTE)}
    with topics(tmp_path, {"grows": small, "whole": {**small, "preallocate": "true"}}) as (_, client):
        for topic in ("grows", "whole"):
            assert produce(client, topic, batch_of(b"a"))[0] == ErrorCode.NONE
            assert fetch(client, topic) == ([b"a"], 1)

        sizes = [segments(tmp_path, topic)[0].stat().st_size for topic in ("grows", "whole")]

    assert sizes == [len(batch_of(b"a")), 2 * MEBIBYTE]


class Synced(OsFiles):
    """The system's files; remembers which of them reached the disk."""

    def __init__(self) -> None:
        super().__init__()
        self.inodes: set[int] = set()
        self._sync, self.fsync = self.fsync, self._sync_and_note

    def _sync_and_note(self, fd: int, /) -> None:
        self._sync(fd)
        self.inodes.add(os.fstat(fd).st_ino)

    def has(self, path: Path) -> bool:
        """Return whether a file reached the disk."""
        return path.stat().st_ino in self.inodes


def test_records_reach_the_disk_before_they_are_acknowledged_or_in_time_or_when_the_system_likes(
    tmp_path: Path,
) -> None:
    files = Synced()
    at_once, in_time = {"flush.messages": "1"}, {"flush.ms": "1"}
    with topics(tmp_path, {"never": {}, "at_once": at_once, "in_time": in_time}, files) as (broker, client):
        paths = {}
        for topic in ("never", "at_once", "in_time"):
            assert produce(client, topic, batch_of(b"a"))[0] == ErrorCode.NONE
            (paths[topic],) = segments(tmp_path, topic)

        assert files.has(paths["at_once"])
        until(lambda: files.has(paths["in_time"]), broker.check)
        assert not files.has(paths["never"])


def test_files_of_what_was_deleted_go_as_soon_as_the_topic_says(tmp_path: Path) -> None:
    with topics(tmp_path, {"soon": {"file.delete.delay.ms": "0"}, "late": {}}) as (broker, client):
        for topic in ("late", "soon"):
            assert produce(client, topic, batch_of(b"v")) == (ErrorCode.NONE, 0)
            assert delete_topic(client, topic) == ErrorCode.NONE

        until(lambda: not any(name.startswith("soon") for name in names_of_folders(tmp_path)), broker.check)
        assert any(name.startswith("late-0.") for name in names_of_folders(tmp_path))


def names_of_folders(path: Path) -> list[str]:
    return [entry.name for entry in path.iterdir()]
