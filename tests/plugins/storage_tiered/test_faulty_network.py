"""A broker and a real S3 server with a bad network between them: nothing is lost, nothing is wrong, clients go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from odradek.plugins.storage_tiered.stores import open_store
from odradek.plugins.storage_tiered.verify import verify_bucket
from odradek.testing.running_broker import RunningBroker, running_broker
from tests.interop.clients import import_or_skip
from tests.plugins.storage_tiered.faulty_line import FaultyLine, Mode, faulty_line
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.plugins.storage_tiered.s3 import S3Server

kafka = import_or_skip("confluent_kafka")
admin = import_or_skip("confluent_kafka.admin")

pytestmark = pytest.mark.interop

TOPIC = "orders"
TOPIC_CONFIG = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "20000",
    "local.retention.bytes": "1",
    "max.message.bytes": "65536",
}
AWAY = [Mode.CLOSED, Mode.SILENT, Mode.BUSY, Mode.CUT]


@pytest.fixture
def line(s3: S3Server) -> Iterator[FaultyLine]:
    """The way to the S3 server."""
    with faulty_line(s3.port) as made:
        yield made


def settings(url: str, line: FaultyLine, s3: S3Server, tmp_path: Path) -> dict[str, object]:
    named = {f"odradek.tiered.store.{name.replace('_', '.')}": text for name, text in s3.settings.options.items()}
    return {
        **named,
        "odradek.tiered.store": url,
        "odradek.tiered.store.endpoint": f"http://127.0.0.1:{line.port}",
        "odradek.tiered.store.timeout.ms": 1000,
        "odradek.tiered.store.connect.timeout.ms": 300,
        "odradek.tiered.cache.dir": tmp_path / "cache",
        "remote.log.storage.system.enable": True,
        "remote.log.manager.task.interval.ms": 100,
        "remote.log.manager.task.retry.backoff.ms": 50,
        "remote.log.manager.task.retry.backoff.max.ms": 200,
        "log.segment.delete.delay.ms": 0,
    }


def value(number: int) -> bytes:
    return b"%06d" % number + b"x" * 300


def produce(broker: RunningBroker, start: int, end: int) -> None:
    producer = kafka.Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for number in range(start, end):
        producer.produce(TOPIC, value(number), partition=0)
        if number % 20 == 0:
            producer.flush(30)
    assert producer.flush(30) == 0


class Reader:
    """Reads from the beginning, and checks every record."""

    def __init__(self, broker: RunningBroker) -> None:
        self._consumer = kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        self._consumer.assign([kafka.TopicPartition(TOPIC, 0, 0)])
        self.next_offset = 0

    def read_to(self, end: int, timeout_s: float) -> int:
        """Read on to an offset or until the time is up, and return how far it came."""
        for _ in range(int(timeout_s / 0.1)):
            while self.next_offset < end and (message := self._consumer.poll(0.1)) is not None:
                assert message.error() is None, message.error()
                assert (message.offset(), message.value()) == (self.next_offset, value(self.next_offset))
                self.next_offset += 1
            if self.next_offset >= end:
                break
        return self.next_offset

    def close(self) -> None:
        self._consumer.close()


def segments(data_dir: Path) -> list[int]:
    return sorted(int(path.stem) for path in (data_dir / f"{TOPIC}-0").glob("*.log"))


def test_a_store_behind_a_bad_network_costs_no_record(line: FaultyLine, s3: S3Server, tmp_path: Path) -> None:
    url, data_dir = f"s3://{s3.new_bucket()}/tiers", tmp_path / "data"
    line.become(Mode.CLOSED)
    with running_broker(settings(url, line, s3, tmp_path), data_dir=data_dir) as broker:
        client = admin.AdminClient({"bootstrap.servers": broker.bootstrap})
        (created,) = client.create_topics([admin.NewTopic(TOPIC, 1, 1, config=TOPIC_CONFIG)]).values()
        created.result(30)
        end = 0
        for mode in AWAY:
            line.become(mode)
            produce(broker, end, end + 200)
            end += 200
            until(lambda: line.connections >= 4, broker.check)

            assert segments(data_dir)[0] == 0, f"{mode}: what the store has not got stays"
            reader = Reader(broker)
            assert reader.read_to(end, 30) == end
            reader.close()
        line.become(Mode.THROUGH)
        until(lambda: segments(data_dir)[0] > 600, broker.check)
        report = verify_bucket(open_store(url, s3.settings))

        assert [each for each in report.all_findings if each.kind != "orphan"] == []
    local_start = segments(data_dir)[0]
    line.become(Mode.CLOSED)
    with running_broker(settings(url, line, s3, tmp_path), data_dir=data_dir) as broker:
        produce(broker, end, end + 20)
        end += 20
        reader = Reader(broker)
        for mode in (Mode.CLOSED, Mode.SILENT, Mode.BUSY):
            line.become(mode)

            assert reader.read_to(end, 2) < local_start, f"{mode}: what is cold cannot be had"
        line.become(Mode.CUT)
        reader.read_to(end, 2)  # piece by piece it may be had all the same; every record is checked
        line.become(Mode.THROUGH)
        assert reader.read_to(end, 60) == end
        reader.close()
