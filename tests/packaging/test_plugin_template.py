"""A stranger's plugin: built, installed and tested with pip alone, against our wheel; then under real clients."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_S, until

from .building import ROOT, Environment, plain_environment

TEMPLATE = ROOT / "examples/plugin_template"
CONFIG = """
[plugins]
enable = ["assignors", "cleanup", "election_isr", "groups", "storage_segment", "template", "transactions"]

[broker]
"log.cleaner.backoff.ms" = 100
"replica.high.watermark.checkpoint.interval.ms" = 100
"group.initial.rebalance.delay.ms" = 0

[topics.in_sqlite]
"odradek.storage" = "sqlite"
"odradek.batch.limit.records" = 50

[topics.in_segments]
"odradek.storage" = "segment"

[topics.newest]
"odradek.storage" = "sqlite"
"cleanup.policy" = "newest"
"odradek.newest.records" = 2
"internal.segment.bytes" = 1000
"min.cleanable.dirty.ratio" = 0.01
"flush.messages" = 1
"""
TOPICS = ("in_sqlite", "in_segments")


@pytest.fixture(scope="module")
def project(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the template, installed."""
    project = tmp_path_factory.mktemp("stranger") / "project"
    shutil.copytree(TEMPLATE, project, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    environment.install(str(project))
    return project


def test_the_templates_own_tests_pass(environment: Environment, project: Path, tmp_path: Path) -> None:
    own = ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'temporary'}"]
    output = environment.run("python", "-m", "pytest", *own, str(project))

    assert " passed" in output
    assert "skipped" not in output


def test_the_plugin_is_listed(environment: Environment, project: Path) -> None:
    assert project.exists()
    assert "template" in environment.run("odradek", "plugins", "list")


def test_a_new_project_is_written_installed_and_checked(environment: Environment, tmp_path: Path) -> None:
    project = tmp_path / "first-try"
    environment.run("odradek", "plugins", "new", "first_try", "--kind", "stage", "--into", str(project))
    environment.install(str(project))
    checked = environment.run("odradek", "plugins", "check", "first_try")
    own = ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'temporary'}"]
    tested = environment.run("python", "-m", "pytest", *own, str(project))
    environment.uninstall("first-try")

    assert "first_try: quick part of its kit: 6 passed" in checked
    assert " passed" in tested


# ------------------------------------------------------------------------------------------------------- real clients


@contextmanager
def serving(environment: Environment, folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run the installed `odradek serve` in a folder; give its address and its process, which is killed at the end."""
    (folder / "odradek.toml").write_text(CONFIG)
    command = [str(environment.folder / "bin/odradek"), "serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]
    with subprocess.Popen(
        [*command, "--config", "odradek.toml"], cwd=folder, env=plain_environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("ready "), "the broker did not start"
            yield line.split()[1], process
        finally:
            process.kill()


def by_librdkafka(address: str, topic: str, values: list[bytes]) -> list[bytes]:
    """Produce values by confluent-kafka and read the topic as a group."""
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": address, "compression.type": "zstd", "log_level": 0})
    for value in values:
        producer.produce(topic, value, b"key")
    assert producer.flush(PATIENCE_S) == 0
    settings = {"bootstrap.servers": address, "group.id": f"c-{time.time_ns()}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.partition.eof": True, "log_level": 0})
    consumer.subscribe([topic])
    found: list[bytes] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error():
            consumer.close()
            return found
        found.append(message.value() or b"")


def by_kafka_python(address: str, topic: str, values: list[bytes]) -> list[bytes]:
    """Do the same by kafka-python."""
    from kafka import KafkaConsumer, KafkaProducer

    with closing(KafkaProducer(bootstrap_servers=address, acks="all", compression_type="gzip")) as producer:
        for value in values:
            producer.send(topic, value, b"key")
        producer.flush()
    consumer: Any = KafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest", group_id=None)
    with closing(consumer):
        found: list[bytes] = []
        end = None
        while end is None or len(found) < end:
            for records in consumer.poll(timeout_ms=1000).values():
                found += [record.value for record in records]
            end = sum(consumer.end_offsets(consumer.assignment()).values())
        return found


CLIENTS = (by_librdkafka, by_kafka_python)


def test_real_clients_use_it_beside_segments_and_a_kill_costs_nothing(
    environment: Environment, project: Path, tmp_path: Path
) -> None:
    assert project.exists()
    expected: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
    for life in range(2):
        with serving(environment, tmp_path) as (address, process):
            for client in CLIENTS:
                for topic in TOPICS:
                    values = [b"%d %s %d" % (life, client.__name__.encode(), number) for number in range(20)]
                    expected[topic] += values
                    assert client(address, topic, values) == expected[topic]
            process.send_signal(signal.SIGKILL)
            process.wait()
    with serving(environment, tmp_path) as (address, _):
        for topic in TOPICS:
            assert by_kafka_python(address, topic, []) == expected[topic]

    with closing(sqlite3.connect(tmp_path / "data/odradek.sqlite")) as database:
        (batches,) = database.execute(
            "SELECT count(*) FROM batches JOIN segments ON segment = segments.id JOIN logs ON log = logs.id "
            "WHERE topic = 'in_sqlite'"
        ).fetchone()
    assert batches > 0
    assert not (tmp_path / "data/in_sqlite-0").exists()
    assert (tmp_path / "data/in_segments-0").exists()


def test_its_policy_and_its_stage_act_on_their_topics(environment: Environment, project: Path, tmp_path: Path) -> None:
    from confluent_kafka import Producer

    assert project.exists()
    with serving(environment, tmp_path) as (address, _):
        producer = Producer({"bootstrap.servers": address, "linger.ms": 100, "log_level": 0})
        refusals: list[str] = []
        for number in range(60):
            producer.produce(
                "in_sqlite", b"%d" % number, on_delivery=lambda error, _: refusals.append(error.name() if error else "")
            )
        assert producer.flush(PATIENCE_S) == 0
        assert set(refusals) == {"POLICY_VIOLATION"}

        single = Producer({"bootstrap.servers": address, "batch.size": 1, "log_level": 0})
        for number in range(60):
            single.produce("newest", b"%d " % number + b"x" * 100, b"key %d" % (number % 3))
        assert single.flush(PATIENCE_S) == 0
        until(lambda: len(by_librdkafka(address, "newest", [])) < 25)
        kept = by_librdkafka(address, "newest", [])

    assert [int(value.split()[0]) for value in kept][-6:] == [54, 55, 56, 57, 58, 59]
