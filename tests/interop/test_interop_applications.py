"""Applications bigger than a client, unmodified: Streams counts words exactly once, Connect copies a file."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import pytest

from ..broker.broker_process import BrokerProcess
from .clients import MissingClientError, cached, import_or_skip, run_installer, skip_or_fail
from .driver import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.interop

TEXT: Final = (ROOT / "LICENSE").read_text()
REPEATED: Final = 20
LIMIT_S: Final = 240.0
QUICK_GROUPS: Final = ("group.initial.rebalance.delay.ms=0", "num.partitions=1")
JAVA: Final = ("java", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp")


def build(folder: Path) -> None:
    """Fetch the jars and compile the word count."""
    copy = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=libs"]
    run_installer("Maven, and Maven Central", copy, folder)
    run_installer("a JDK 17", ["javac", "-cp", "libs/*", "WordCount.java"], folder)


@pytest.fixture(scope="module")
def applications() -> Path:
    """Return the folder of the compiled applications and their jars."""
    try:
        return cached("applications", build)
    except MissingClientError as error:
        skip_or_fail(f"Kafka Streams and Kafka Connect are not on this machine; need {error}")
        raise


@attrs.define
class Application:
    """A Java program; what it says goes to a file."""

    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def kill(self) -> None:
        """End it without a chance to clean up."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def terminate(self) -> None:
        """End it as an operator does."""
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait_until(self, is_done: Callable[[], bool]) -> None:
        """Wait until something has happened, as long as the program lives."""
        deadline = time.monotonic() + LIMIT_S  # noqa: TID251 - a limit for a test that hangs
        while not is_done():
            assert self.process is not None
            assert self.process.poll() is None, f"it ended: {self.said()}"
            assert time.monotonic() < deadline, f"it took too long: {self.said()}"  # noqa: TID251 - as above
            time.sleep(0.1)

    def said(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(errors="replace")[-4000:]


@contextlib.contextmanager
def running(applications: Path, log: Path, *words: str) -> Iterator[Application]:
    """Run a Java program with the applications' jars; it is ended whatever happens."""
    application = Application([*JAVA, f"{applications}/libs/*{os.pathsep}{applications}", *words], log)
    application.start()
    try:
        yield application
    finally:
        if application.process is not None and application.process.poll() is None:
            application.terminate()


@contextlib.contextmanager
def serving(data_dir: Path) -> Iterator[list[BrokerProcess]]:
    """Run a broker; the list's last item is the one that runs."""
    brokers = [BrokerProcess(data_dir, *QUICK_GROUPS)]
    brokers[0].wait_ready()
    try:
        yield brokers
    finally:
        for broker in brokers:
            if broker.process.poll() is None:
                broker.terminate()
            broker.close()


def kill_and_restart(brokers: list[BrokerProcess], data_dir: Path) -> None:
    """Kill the broker and start another one in its place."""
    brokers[-1].kill()
    brokers.append(BrokerProcess(data_dir, *QUICK_GROUPS, listen=brokers[-1].address))
    brokers[-1].wait_ready()


class Counts:
    """Reads the word counts as a client does that sees committed records only."""

    def __init__(self, address: str, topic: str) -> None:
        confluent = import_or_skip("confluent_kafka")
        self._consumer = confluent.Consumer(
            {"bootstrap.servers": address, "group.id": "unused", "isolation.level": "read_committed"}
        )
        self._consumer.assign([confluent.TopicPartition(topic, 0, 0)])
        self.words: dict[str, int] = {}

    def read(self) -> dict[str, int]:
        """Return the newest count of each word; takes in what there is."""
        while (message := self._consumer.poll(0.2)) is not None:
            if message.error() is None:
                self.words[message.key().decode()] = int(message.value())
        return self.words

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def feed(address: str, topic: str, lines: list[str]) -> None:
    """Produce lines to the three partitions of a topic, which is created when it is not there."""
    confluent = import_or_skip("confluent_kafka")
    producer = confluent.Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number, line in enumerate(lines):
        producer.produce(topic, line.encode(), partition=number % 3)
        producer.poll(0)

    assert producer.flush(30) == 0


def create(address: str, topic: str, partitions: int) -> None:
    """Create a topic."""
    admin = import_or_skip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": address})
    for future in client.create_topics([admin.NewTopic(topic, partitions, 1)]).values():
        future.result(30)


def test_streams_counts_words_exactly_once_through_deaths_of_both_sides(applications: Path, tmp_path: Path) -> None:
    lines = TEXT.splitlines() * REPEATED
    words = Counter(word for line in lines for word in re.split("[^a-z]+", line.lower()) if word)
    data_dir = tmp_path / "data"
    with serving(data_dir) as brokers:
        address = brokers[0].address
        create(address, "lines", 3)
        create(address, "counts", 1)
        half = len(lines) // 2
        feed(address, "lines", lines[:half])
        counts = Counts(address, "counts")
        program = ("WordCount", address, "lines", "counts", str(tmp_path / "state"))
        with running(applications, tmp_path / "streams.log", *program) as application:
            application.wait_until(lambda: bool(counts.read()))
            application.kill()
            application.start()
            feed(address, "lines", lines[half:])
            seen = sum(counts.read().values())
            application.wait_until(lambda: sum(counts.read().values()) > seen)
            kill_and_restart(brokers, data_dir)
            application.wait_until(lambda: sum(counts.read().values()) >= words.total())

            assert counts.read() == words

        counts.close()


def properties(path: Path, **settings: str) -> str:
    """Write a file of properties, dots written as underscores; return its path."""
    path.write_text("".join(f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()))
    return str(path)


def test_connect_copies_a_file_through_a_topic_and_goes_on_after_a_restart(applications: Path, tmp_path: Path) -> None:
    original, copy = tmp_path / "original.txt", tmp_path / "copy.txt"
    original.write_text(TEXT)
    with serving(tmp_path / "data") as brokers:
        worker = properties(
            tmp_path / "worker.properties",
            bootstrap_servers=brokers[0].address,
            key_converter="org.apache.kafka.connect.storage.StringConverter",
            value_converter="org.apache.kafka.connect.storage.StringConverter",
            offset_storage_file_filename=str(tmp_path / "offsets"),
            offset_flush_interval_ms="200",
            listeners="http://127.0.0.1:0",
            plugin_discovery="only_scan",
            plugin_path=str(applications / "libs" / "connect-file-4.3.1.jar"),
        )
        connectors = "org.apache.kafka.connect.file.FileStream"
        source = properties(
            tmp_path / "source.properties",
            name="source",
            connector_class=f"{connectors}SourceConnector",
            tasks_max="1",
            file=str(original),
            topic="copied",
        )
        sink = properties(
            tmp_path / "sink.properties",
            name="sink",
            connector_class=f"{connectors}SinkConnector",
            tasks_max="1",
            file=str(copy),
            topics="copied",
        )
        program = ("org.apache.kafka.connect.cli.ConnectStandalone", worker, source, sink)
        with running(applications, tmp_path / "connect.log", *program) as application:
            application.wait_until(lambda: copy.exists() and copy.read_text() == TEXT)
            application.terminate()
            with original.open("a") as more:
                more.write(TEXT)
            application.start()
            application.wait_until(lambda: len(copy.read_text()) >= 2 * len(TEXT))

            assert copy.read_text() == 2 * TEXT
