"""What lies on the disk: Apache Kafka's tool reads what clients had us write, and we read what Kafka wrote."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ..broker.broker_process import broker_process
from ..kafka_tools import damage_that_kafka_sees, kafka_command, kafka_says
from .brokers import kafka_at
from .clients import CLIENTS, CODECS, MissingClientError, skip_or_fail
from .driver import Driver
from .drivers.json_lines import to_bytes
from .records import PRODUCE, create_topic, odd_records, plain_records, read_partition, without_offsets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

pytestmark = pytest.mark.interop

WRITERS = ("librdkafka", "kafka-python", "franz-go", "java")


def output_of(command: Sequence[str]) -> str:
    """Run a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    return done.stdout


@contextmanager
def driver_at(name: str, address: str, folder: Path) -> Iterator[Driver]:
    """Run a client's driver against another broker than the shared one."""
    try:
        command = CLIENTS[name].command()
    except MissingClientError as error:
        skip_or_fail(f"{name} is not on this machine; needs {error}")
        raise
    driver = Driver(name, [*command, address], folder / f"{name}.log")
    try:
        yield driver
    finally:
        driver.close()


def write_all(driver: Driver, topic: str) -> int:
    """Have a client write in every way it has; return the number of records."""
    cannot = frozenset(CLIENTS[driver.name].cannot)
    records = odd_records(cannot) + plain_records(60)
    for codec in CODECS:
        settings = {**PRODUCE, "compression": codec, "idempotent": codec in ("none", "zstd")}
        driver.do("produce", topic=topic, records=records, **settings)
    return len(records) * len(CODECS)


def fill_segments(driver: Driver, topic: str) -> None:
    """Write more than two of the smallest segments."""
    records = [
        {**each, "value": (each["value"] or "")[:8] * 2_000, "timestamp": each["timestamp"] + 100_000}
        for each in plain_records(200)
    ]
    driver.do("produce", topic=topic, records=records, **PRODUCE)


def test_kafka_reads_what_clients_had_us_write(tmp_path: Path) -> None:
    kafka_command()
    data = tmp_path / "data"
    counts: dict[str, int] = {}
    with broker_process(data, "log.index.interval.bytes=512") as broker:
        for name in WRITERS:
            create_topic(broker.address, name, segment_bytes=str(1 << 20))
            with driver_at(name, broker.address, tmp_path) as driver:
                counts[name] = write_all(driver, name)
        with driver_at("librdkafka", broker.address, tmp_path) as driver:
            fill_segments(driver, "librdkafka")
            driver.do("delete_records", topic="librdkafka", before=20)
        broker.kill()
    with broker_process(data, "log.index.interval.bytes=512") as broker:
        with driver_at("kafka-python", broker.address, tmp_path) as driver:
            fill_segments(driver, "kafka-python")
        broker.terminate()

    assert len(list((data / "librdkafka-0").glob("*.log"))) >= 3
    assert damage_that_kafka_sees(data) == []

    segment = data / "java-0" / f"{0:020}.log"
    dump = kafka_says("tool", "DumpLogSegments", "--print-data-log", "--files", str(segment))
    assert dump.count("| offset:") == counts["java"]


@pytest.fixture(scope="session")
def kafka_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """Have Apache Kafka keep the topic `kept`; return its log directory, the broker ended, and what was produced."""
    folder = tmp_path_factory.mktemp("kafka")
    with kafka_at(folder, "log.index.interval.bytes=512") as kafka:
        create_topic(kafka.address, "kept", segment_bytes=str(1 << 20))
        with driver_at("librdkafka", kafka.address, folder) as driver:
            write_all(driver, "kept")
            fill_segments(driver, "kept")
        records = read_partition(kafka.address, "kept").records
    return folder / "kafka" / "1", records


def test_log_dump_reads_what_kafka_wrote(kafka_data: tuple[Path, list[dict[str, Any]]]) -> None:
    data, records = kafka_data
    command = [sys.executable, "-m", "odradek", "log", "dump", "--records", "--json", str(data)]

    dumped = [json.loads(line) for line in output_of(command).splitlines()]

    assert [line for line in dumped if line["kind"] == "problem"] == []
    assert {"directory", "offset", "epoch", "partition", "producer"} <= {line["kind"] for line in dumped}
    kept = [line for line in dumped if "kept-0" in line["file"]]
    found = [{name: line[name] for name in records[0]} for line in kept if line["kind"] == "record"]
    assert found == [as_dumped(record) for record in records]


def as_dumped(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as `log dump` shows it: bytes as text, what is no UTF-8 escaped."""

    def shown(text: str | None) -> str | None:
        data = to_bytes(text)
        return None if data is None else data.decode(errors="backslashreplace")

    headers = [[name, shown(value)] for name, value in record["headers"]]
    return {**record, "key": shown(record["key"]), "value": shown(record["value"]), "headers": headers}


def test_log_dump_and_kafka_read_the_same_in_indexes(kafka_data: tuple[Path, list[dict[str, Any]]]) -> None:
    data, _ = kafka_data
    indexes = sorted(str(path) for path in (data / "kept-0").glob("*index"))

    ours = output_of([sys.executable, "-m", "odradek", "log", "dump", "--json", *indexes]).splitlines()
    entries = [{**json.loads(line), "kind": ""} for line in ours]
    kafkas = kafka_says("tool", "DumpLogSegments", "--files", ",".join(indexes)).splitlines()
    file, expected = "", []
    for line in kafkas:
        if line.startswith("Dumping "):
            file = line.removeprefix("Dumping ")
        elif found := re.fullmatch(r"(\w+): (\d+) (\w+): (\d+)", line):
            expected.append({"file": file, "kind": "", found[1]: int(found[2]), found[3]: int(found[4])})

    assert len(expected) > len(indexes)
    assert expected == entries


def test_a_directory_that_kafka_wrote_serves_its_records(
    kafka_data: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    theirs, records = kafka_data
    backup = tmp_path / "backup"
    shutil.copytree(theirs / "kept-0", backup / "kept-0")
    output_of([sys.executable, "-m", "odradek", "topics", "adopt", str(backup), "--data-dir", str(tmp_path / "data")])

    with broker_process(tmp_path / "data") as broker, driver_at("librdkafka", broker.address, tmp_path) as driver:
        count = len(records)
        found = driver.do("consume", topic="kept", position="beginning", count=count, isolation="read_committed")
        assert found == records
        driver.do("produce", topic="kept", records=plain_records(3), **PRODUCE)
        position = {"offset": records[-1]["offset"] + 1}
        after = driver.do("consume", topic="kept", position=position, count=3, isolation="read_committed")

    assert without_offsets(after) == plain_records(3)
