"""Have Kafka's MirrorMaker 2 copy one cluster to another, and see that all of it is there: ours, or Apache Kafka's.

    python -m tools.mirror_clusters                  ours to ours, ours to Kafka's, Kafka's to ours
    python -m tools.mirror_clusters kafka:ours       one of them

Ours are three brokers, Kafka's is one. A topic with keys, headers and times of its own is filled while MirrorMaker
copies it; a group reads half of it and commits. The copy must have each record once, where and as it was, with the
topic's settings, and the group must go on there behind what it has read. MirrorMaker keeps what it knows in topics of
the target (Connect's, compacted) and writes exactly once, by transactions.

Needs Java 17, Maven and its registry once (the jars go to `$XDG_CACHE_HOME/odradek-mirror`), and the folder of peers
(`ODRADEK_PEERS`) for Apache Kafka. Ends with status 1 when something was not as it should be.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.cluster.test_processes import Served
from tests.interop.brokers import KafkaProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION: Final = "4.3.1"
PAIRS: Final = ("ours:ours", "ours:kafka", "kafka:ours")
POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>odradek</groupId>
  <artifactId>mirror-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-mirror</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""
PROPERTIES: Final = """\
clusters = a, b
a.bootstrap.servers = {source}
b.bootstrap.servers = {target}
a->b.enabled = true
b->a.enabled = false
topics = orders
groups = readers
replication.factor = {replicas}
checkpoints.topic.replication.factor = {replicas}
heartbeats.topic.replication.factor = {replicas}
offset-syncs.topic.replication.factor = {source_replicas}
config.storage.replication.factor = {replicas}
offset.storage.replication.factor = {replicas}
status.storage.replication.factor = {replicas}
offset.storage.partitions = 5
tasks.max = 2
refresh.topics.interval.seconds = 2
refresh.groups.interval.seconds = 2
sync.topic.configs.interval.seconds = 2
emit.checkpoints.interval.seconds = 1
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 1
offset.lag.max = 0
b.exactly.once.source.support = enabled
offset.flush.interval.ms = 1000
"""
SETTINGS: Final = ("auto.create.topics.enable=false", "group.initial.rebalance.delay.ms=0")
PARTITIONS: Final = 3
COUNT: Final = 3000
FIRST_TIME_MS: Final = 1_700_000_000_000
LIMIT_S: Final = 180.0
BUILD_LIMIT_S: Final = 600

Seen = dict[tuple[int, int], tuple[Any, ...]]


class MirrorError(Exception):
    """The copy is not what it should be, or could not be made."""


@attrs.frozen
class Cluster:
    """One that runs: where it is, and how many replicas its topics have."""

    addresses: str
    replicas: int


@contextlib.contextmanager
def ours(folder: Path) -> Iterator[Cluster]:
    """Run three brokers of ours."""
    with Served(folder, *SETTINGS) as served:
        yield Cluster(",".join(served.addresses), 3)
        served.terminate()


@contextlib.contextmanager
def kafkas(folder: Path) -> Iterator[Cluster]:
    """Run Apache Kafka, one broker."""
    folder.mkdir()
    kafka = KafkaProcess(folder, *SETTINGS)
    try:
        yield Cluster(kafka.wait_ready(), 1)
    finally:
        kafka.end()


CLUSTERS: Final = {"ours": ours, "kafka": kafkas}


def jars() -> Path:
    """Return the folder of MirrorMaker's jars; Maven is asked once.

    Raises:
        MirrorError: They cannot be had here.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "odradek-mirror" / VERSION
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    pom = folder.parent / "pom.xml"
    pom.write_text(POM.format(version=VERSION))
    part = folder.with_name(f"{VERSION}.part")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={part}"]
    try:
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", str(pom), *goal],
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILD_LIMIT_S,
        )
    except OSError as error:
        raise MirrorError(f"Maven is not on this machine: {error}") from error
    if done.returncode:
        raise MirrorError(f"Maven could not resolve MirrorMaker {VERSION}: {done.stdout[-300:].strip()}")
    part.rename(folder)
    return folder


@contextlib.contextmanager
def mirroring(source: Cluster, target: Cluster, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run MirrorMaker from one cluster to the other."""
    properties = folder / "mirror.properties"
    properties.write_text(
        PROPERTIES.format(
            source=source.addresses,
            target=target.addresses,
            replicas=target.replicas,
            source_replicas=source.replicas,
        )
    )
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    command = ["java", "-Xmx512M", quiet, "-cp", f"{jars()}/*", "org.apache.kafka.connect.mirror.MirrorMaker"]
    with (
        (folder / "mirror.log").open("wb") as log,
        subprocess.Popen([*command, str(properties)], stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


def create(cluster: Cluster) -> None:
    """Make the topic that is copied, with a setting of its own."""
    admin = AdminClient({"bootstrap.servers": cluster.addresses})
    topic = NewTopic(
        "orders", PARTITIONS, cluster.replicas, config={"retention.ms": "-1", "max.message.bytes": "100000"}
    )
    for done in admin.create_topics([topic]).values():
        done.result(timeout=LIMIT_S)


def produce(cluster: Cluster, first: int, count: int) -> None:
    """Fill the topic with records that tell their number."""
    producer = Producer({"bootstrap.servers": cluster.addresses, "enable.idempotence": True, "compression.type": "lz4"})
    for number in range(first, first + count):
        producer.produce(
            "orders",
            f"value {number}",
            key=f"key {number % 100}",
            partition=number % PARTITIONS,
            timestamp=FIRST_TIME_MS + number,
            headers=[("number", str(number).encode())],
        )
        producer.poll(0)
    if producer.flush(LIMIT_S):
        raise MirrorError("not all records were acknowledged")


def read(cluster: Cluster, topic: str, count: int) -> Seen:
    """Return so many committed records of a topic, by partition and offset, and what comes within a moment more."""
    consumer = Consumer({"bootstrap.servers": cluster.addresses, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen: Seen = {}
    deadline = time.perf_counter() + LIMIT_S
    while time.perf_counter() < deadline:
        found = consumer.consume(1000, 2.0)
        if len(seen) >= count and not found:
            break
        for record in found:
            if record.error() is None:
                where = (record.partition() or 0, record.offset() or 0)
                seen[where] = (record.key(), record.value(), record.timestamp(), record.headers())
    consumer.close()
    return seen


def commit_half(cluster: Cluster) -> dict[int, int]:
    """Have a group read the first half of what is there, and commit; return where it is."""
    consumer = Consumer({"bootstrap.servers": cluster.addresses, "group.id": "readers", "enable.auto.commit": False})
    half = dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS // 2)
    consumer.commit(offsets=[TopicPartition("orders", *each) for each in half.items()], asynchronous=False)
    consumer.close()
    return half


def until(what: str, look: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until something is so, while MirrorMaker runs."""
    deadline = time.perf_counter() + LIMIT_S
    while not look():
        if process.poll() is not None:
            raise MirrorError(f"MirrorMaker ended with status {process.returncode}")
        if time.perf_counter() > deadline:
            raise MirrorError(f"{what}: never")
        time.sleep(0.5)


def committed(cluster: Cluster, topic: str) -> dict[int, int]:
    """Return where the group is in a topic."""
    consumer = Consumer({"bootstrap.servers": cluster.addresses, "group.id": "readers", "enable.auto.commit": False})
    found = consumer.committed([TopicPartition(topic, partition) for partition in range(PARTITIONS)], LIMIT_S)
    consumer.close()
    return {each.partition: each.offset for each in found}


def has_topic(cluster: Cluster, topic: str) -> bool:
    """Return whether there is a topic with all its partitions."""
    topics = AdminClient({"bootstrap.servers": cluster.addresses}).list_topics(timeout=LIMIT_S).topics
    return topic in topics and len(topics[topic].partitions) == PARTITIONS


def limit_of(cluster: Cluster, topic: str) -> str:
    """Return the setting that the copy takes over."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": cluster.addresses})
    (done,) = admin.describe_configs([resource]).values()
    return str(done.result(timeout=LIMIT_S)["max.message.bytes"].value)


def mirror(source: Cluster, target: Cluster, folder: Path) -> None:
    """Copy one cluster to the other, and check it.

    Raises:
        MirrorError: Something is not as it should be.
    """
    create(source)
    produce(source, 0, COUNT // 2)
    with mirroring(source, target, folder) as process:
        until("the copy is there", lambda: has_topic(target, "a.orders"), process)
        produce(source, COUNT // 2, COUNT - COUNT // 2)
        original, copied = read(source, "orders", COUNT), read(target, "a.orders", COUNT)
        if len(original) != COUNT or sorted(original.values(), key=str) != sorted(copied.values(), key=str):
            raise MirrorError(f"{len(original)} records, and {len(copied)} in the copy, or others")
        for partition in range(PARTITIONS):
            orders = [[seen[where] for where in sorted(seen) if where[0] == partition] for seen in (original, copied)]
            if orders[0] != orders[1]:
                raise MirrorError(f"partition {partition} is not in order")
        wanted = commit_half(source)
        until("the group is translated", lambda: min(committed(target, "a.orders").values()) > 0, process)
        for partition, end in committed(target, "a.orders").items():
            count = sum(where < (partition, end) for where in copied if where[0] == partition)
            if not 0 < count <= wanted[partition]:
                raise MirrorError(f"of partition {partition} the group has read {wanted[partition]}, and {count} there")
        until("the topic's settings are there", lambda: limit_of(target, "a.orders") == "100000", process)


def run(pair: str) -> bool:
    """Copy between two clusters; print what came of it, and return whether all was well."""
    began_s = time.perf_counter()
    kinds = pair.split(":")
    with tempfile.TemporaryDirectory(prefix="odradek-mirror-") as name, contextlib.ExitStack() as running:
        folder = Path(name)
        source, target = (
            running.enter_context(CLUSTERS[kind](folder / f"{index}-{kind}")) for index, kind in enumerate(kinds)
        )
        try:
            mirror(source, target, folder)
        except MirrorError as error:
            log = (folder / "mirror.log").read_text(errors="replace") if (folder / "mirror.log").exists() else ""
            print(f"{pair}: {error}\n{log[-4000:]}", file=sys.stderr)
            return False
    print(f"{pair}: ok, {COUNT} records and a group, {time.perf_counter() - began_s:.0f} s")
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "pairs", nargs="*", metavar="FROM:TO", help=f"ours or kafka, twice; by default {' '.join(PAIRS)}"
    )
    chosen = parser.parse_args(arguments).pairs or PAIRS
    for pair in chosen:
        if len(pair.split(":")) != 2 or not {*pair.split(":")} <= {*CLUSTERS}:
            parser.error(f"{pair} is no pair of clusters")
    came = [run(pair) for pair in chosen]
    return 0 if all(came) else 1


if __name__ == "__main__":
    sys.exit(main())
