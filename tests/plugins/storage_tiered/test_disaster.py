"""A data directory is lost; its topics come back from the bucket alone, and librdkafka reads and writes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from odradek.testing.running_broker import RunningBroker, running_broker
from tests.interop.clients import import_or_skip
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugins.storage_tiered.s3 import S3Server

kafka = import_or_skip("confluent_kafka")
admin = import_or_skip("confluent_kafka.admin")

pytestmark = pytest.mark.interop

TOPIC = "orders"
PARTITIONS = 2
TOPIC_CONFIG = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "20000",
    "local.retention.bytes": "1",
    "retention.ms": "-1",
    "max.message.bytes": "65536",
}


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store, which every client of this process finds."""
    if request.param == "folder":
        return (tmp_path / "bucket").as_uri()
    s3: S3Server = request.getfixturevalue("s3")
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return f"s3://{s3.new_bucket()}/tiers"


def settings(url: str, tmp_path: Path) -> dict[str, object]:
    return {
        "odradek.tiered.store": url,
        "odradek.tiered.cache.dir": tmp_path / "cache",
        "remote.log.storage.system.enable": True,
        "remote.log.manager.task.interval.ms": 100,
        "log.segment.delete.delay.ms": 0,
    }


def write(broker: RunningBroker) -> None:
    """Write records by a plain producer and by transactions, of which every third is aborted."""
    client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    (created,) = client.create_topics(
        [admin.NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1, config=TOPIC_CONFIG)]
    ).values()
    created.result(30)
    plain = kafka.Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    transactions = kafka.Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    transactions.init_transactions(30)
    for turn in range(30):
        transactions.begin_transaction()
        for partition in range(PARTITIONS):
            for number in range(10):
                text = f"{turn} {number} ".encode()
                plain.produce(TOPIC, b"plain " + text + b"x" * 150, partition=partition)
                transactions.produce(TOPIC, b"transaction " + text + b"x" * 150, partition=partition)
        plain.flush(30)
        transactions.flush(30)
        if turn % 3:
            transactions.commit_transaction(30)
        else:
            transactions.abort_transaction(30)


def read(broker: RunningBroker, isolation: str) -> list[list[tuple[int, bytes]]]:
    """Return the offsets and values of all records, for each partition."""
    reader = kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    reader.assign([kafka.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found: list[list[tuple[int, bytes]]] = [[] for _ in range(PARTITIONS)]
    ends: set[int] = set()
    deadline_polls = 600
    while len(ends) < PARTITIONS and deadline_polls:
        message = reader.poll(0.1)
        deadline_polls -= message is None
        if message is None:
            continue
        if message.error() is None:
            found[message.partition()].append((message.offset(), message.value()))
            continue
        assert message.error().code() == kafka.KafkaError._PARTITION_EOF, message.error()
        ends.add(message.partition())
    reader.close()
    assert len(ends) == PARTITIONS
    return found


def local_starts(data_dir: Path) -> list[int]:
    """Return where each partition's local log begins; [] while one has more than its active segment."""
    logs = [sorted((data_dir / f"{TOPIC}-{number}").glob("*.log")) for number in range(PARTITIONS)]
    return [int(paths[0].stem) for paths in logs] if all(len(paths) == 1 for paths in logs) else []


def odradek(*words: str) -> tuple[int, str]:
    """Run a command, and return its exit status and what it said of errors."""
    done = subprocess.run([sys.executable, "-m", "odradek", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_topics_come_back_from_the_bucket_alone(url: str, tmp_path: Path) -> None:
    lost, restored = tmp_path / "lost", tmp_path / "restored"
    with running_broker(settings(url, tmp_path), data_dir=lost) as broker:
        write(broker)
        until(lambda: bool(local_starts(lost)) and min(local_starts(lost)) > 0, broker.check)
        before = {isolation: read(broker, isolation) for isolation in ("read_committed", "read_uncommitted")}
    ends = local_starts(lost)
    shutil.rmtree(lost)
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)

    assert odradek("tiered", "verify", "--store", url) == (0, "")
    assert odradek("tiered", "restore", "--store", url, "--data-dir", str(restored)) == (0, "")
    status, told = odradek("tiered", "restore", "--store", url, "--data-dir", str(restored))

    assert (status, "the data directory is not empty" in told) == (2, True)
    with running_broker(settings(url, tmp_path), data_dir=restored) as broker:
        for isolation, seen in before.items():
            kept = [[each for each in part if each[0] < end] for part, end in zip(seen, ends, strict=True)]

            assert read(broker, isolation) == kept
        written: list[int] = []
        producer = kafka.Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for number in range(PARTITIONS):
            producer.produce(
                TOPIC,
                b"new",
                partition=number,
                on_delivery=lambda error, message: written.append(message.offset() if error is None else -1),
            )
        producer.flush(30)

        assert sorted(written) == sorted(ends)
        assert [part[-1][1] for part in read(broker, "read_committed")] == [b"new"] * PARTITIONS
