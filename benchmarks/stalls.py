"""How long another client waits while a request that asks for much is answered.

    python -m benchmarks.stalls [--items 5000] [--rounds 3]

The broker is `odradek serve` in a process of its own. One client asks ApiVersions again and again; beside it another
sends one request for thousands of items, or one of a few kilobytes that is millions of records to look at. A row has
the worst wait of the first client while the second one waited, the least of some rounds: what nobody else on the
machine disturbed. The row `nothing` is what such a wait is where nobody asks for much: what is above it is the
broker's.

| column | what |
|---|---|
| `worst` | the longest wait of the other client, in the round where it was the least |
| `worst of all` | the longest of all rounds |
| `took` | the whole request, in that round |
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from benchmarks.scale import Broker, ask
from odradek.kernel.records.compression import CompressionType
from odradek.kernel.records.record import encode_record
from odradek.kernel.wire.headers import encode_request
from odradek.kernel.wire.messages import api_44_incremental_alter_configs as alter
from odradek.kernel.wire.messages.api_00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.kernel.wire.messages.api_01_fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.kernel.wire.messages.api_02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.kernel.wire.messages.api_03_metadata import MetadataRequest, MetadataRequestTopic
from odradek.kernel.wire.messages.api_18_api_versions import ApiVersionsRequest
from odradek.kernel.wire.messages.api_19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from odradek.kernel.wire.messages.api_20_delete_topics import DeleteTopicsRequest
from odradek.kernel.wire.messages.api_32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.kernel.wire.messages.api_35_describe_log_dirs import DescribeLogDirsRequest
from odradek.kernel.wire.messages.api_37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.kernel.wire.messages.api_43_elect_leaders import ElectLeadersRequest
from odradek.kernel.wire.messages.api_75_describe_topic_partitions import DescribeTopicPartitionsRequest
from tests.records.bombs import NOW, batch_around, bomb, row_of_records

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from odradek.kernel.types import Buffer
    from odradek.kernel.wire.message import Message

TIMEOUT_MS: Final = 120_000
PAUSE_S: Final = 0.0002
"""Between two questions of the other client: it shall find stalls, and not be the load."""

BOMB_RECORDS: Final = 4_700_000
"""Of seven bytes each: just below the 32 MiB to which a batch may be unpacked."""
HOSTILE: Final = {
    "plain": {},
    "keyed": {"cleanup.policy": "compact"},
    "packed": {"compression.type": "gzip", "max.message.bytes": "104857600"},
    "timed": {"max.message.bytes": "104857600"},
}
"""Topics, by what a Produce has to look at in each, with their settings."""


class Ask(NamedTuple):
    """A request that asks for much: its name, its version, and what makes it; anew for each round."""

    name: str
    version: int
    make: Callable[[int], Message]
    settle_s: float = 0.0
    """How long the broker goes on with it after the answer."""


class Other:
    """The client that asks for little. Life: made, `start`, `stop`, which returns its longest wait in seconds."""

    def __init__(self, broker: Broker) -> None:
        self._connection = broker.connect()
        self._frame = encode_request(ApiVersionsRequest(), 0, 1, "other").join()
        self._is_over = threading.Event()
        self._worst_s = 0.0
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.is_set():
            self._worst_s = max(self._worst_s, timed(self._connection, self._frame))
            time.sleep(PAUSE_S)

    def stop(self) -> float:
        """Stop asking."""
        self._is_over.set()
        self._thread.join()
        self._connection.close()
        return self._worst_s


def timed(connection: socket.socket, frame: bytes) -> float:
    """Send a request; return how many seconds its answer took."""
    started = time.perf_counter()
    ask(connection, frame)
    return time.perf_counter() - started


def asks(items: int) -> list[Ask]:
    """Return the requests, in an order in which each finds what it needs; some change the broker in each round."""
    every = range(items)
    offsets = [ListOffsetsPartition(partition_index=number, timestamp=-1) for number in every]
    fetched = [FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=1 << 20) for number in every]
    return [
        Ask(
            "CreateTopics of one wide topic",
            5,
            lambda number: CreateTopicsRequest(
                topics=[CreatableTopic(name=f"wide-{number}", num_partitions=items, replication_factor=1)],
                timeout_ms=TIMEOUT_MS,
            ),
            settle_s=items / 1000,
        ),
        Ask(
            "CreatePartitions of a wide topic",
            2,
            lambda number: CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name=f"wide-{number}", count=items + items // 2, assignments=None)],
                timeout_ms=TIMEOUT_MS,
            ),
            settle_s=items / 1000,
        ),
        Ask("Metadata of everything", 8, lambda _: MetadataRequest(topics=None)),
        Ask("Metadata of a wide topic", 8, lambda _: MetadataRequest(topics=[MetadataRequestTopic(name="wide-0")])),
        Ask(
            "DescribeTopicPartitions of everything",
            0,
            lambda _: DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000, cursor=None),
        ),
        Ask("DescribeLogDirs of everything", 1, lambda _: DescribeLogDirsRequest(topics=None)),
        Ask(
            "DescribeConfigs of a broker, documented",
            3,
            lambda _: DescribeConfigsRequest(
                resources=[DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)],
                include_documentation=True,
            ),
        ),
        Ask(
            "ListOffsets of a wide topic",
            5,
            lambda _: ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name="wide-0", partitions=offsets)], isolation_level=0
            ),
        ),
        Ask(
            "Fetch of a wide topic",
            11,
            lambda _: FetchRequest(
                max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[FetchTopic(topic="wide-0", partitions=fetched)]
            ),
        ),
        Ask(
            "ElectLeaders of everything",
            2,
            lambda _: ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=TIMEOUT_MS),
        ),
        Ask("a config of a wide topic", 1, lambda number: _altered(2, "wide-0", "retention.ms", number)),
        Ask("a default of the cluster", 1, lambda number: _altered(4, "", "log.retention.ms", number)),
        Ask(
            "DeleteTopics of a wide topic",
            4,
            lambda number: DeleteTopicsRequest(topic_names=[f"wide-{number}"], timeout_ms=TIMEOUT_MS),
        ),
    ]


def hostile_asks() -> list[Ask]:
    """Return requests that are small and much work; the last one finds what the one before wrote."""
    ahead = int(time.time() * 1000) + 10**10
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        for name, configs in HOSTILE.items()
    ]
    resources = [
        DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
        for name in (*HOSTILE, *(f"nobody-{number}" for number in range(16))) * 1000
    ]
    by_time = ListOffsetsPartition(partition_index=0, timestamp=NOW + 1)
    return [
        Ask("CreateTopics of a few", 5, lambda _: CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)),
        Ask("Produce, millions of records out of time", 9, _produced("plain", bomb(BOMB_RECORDS, timestamp=ahead))),
        Ask(
            "the same, packed by gzip",
            9,
            _produced("plain", bomb(BOMB_RECORDS, codec=CompressionType.GZIP, timestamp=ahead)),
        ),
        Ask("Produce, more than may be unpacked", 9, _produced("plain", bomb(BOMB_RECORDS + 200_000))),
        Ask("Produce, millions without keys", 9, _produced("keyed", bomb(BOMB_RECORDS))),
        Ask("Produce, a million to be packed anew", 9, _produced("packed", bomb(1_000_000))),
        Ask("DescribeConfigs, 20,000 with duplicates", 3, lambda _: DescribeConfigsRequest(resources=resources)),
        Ask("Produce of a million records", 9, _produced("timed", row_with_a_late_one(1_000_000))),
        Ask(
            "ListOffsets by time in a million records",
            5,
            lambda _: ListOffsetsRequest(
                replica_id=-1, topics=[ListOffsetsTopic(name="timed", partitions=[by_time])], isolation_level=0
            ),
        ),
    ]


def row_with_a_late_one(count: int) -> bytearray:
    """Return a batch of so many records, the last of them a millisecond later: who looks for that looks at all."""
    return batch_around(row_of_records(count - 1) + encode_record(1, count - 1, None, None), count)


def _produced(topic: str, batch: Buffer) -> Callable[[int], ProduceRequest]:
    """Return what makes a Produce of a batch."""
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])]
    return lambda _: ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=data)


def _altered(kind: int, name: str, key: str, number: int) -> alter.IncrementalAlterConfigsRequest:
    config = alter.AlterableConfig(name=key, config_operation=0, value=str(100_000_000 + number))
    resource = alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    return alter.IncrementalAlterConfigsRequest(resources=[resource])


def wait_beside(broker: Broker, work: Callable[[], float]) -> tuple[float, float]:
    """Do some work beside the other client; return its longest wait, and how long the work took, in seconds."""
    other = Other(broker)
    other.start()
    took_s = work()
    return other.stop(), took_s


def measure(broker: Broker, items: int, rounds: int) -> list[tuple[str, list[tuple[float, float]]]]:
    """Return, by request, what `wait_beside` gave in each round."""
    connection = broker.connect()

    def pause() -> float:
        time.sleep(0.5)
        return 0.5

    found = [("nothing", [wait_beside(broker, pause) for _ in range(rounds)])]
    for asked in (*asks(items), *hostile_asks()):
        waits = []
        for number in range(rounds):
            frame = encode_request(asked.make(number), asked.version, number, "asks for much").join()

            def work(frame: bytes = frame, settle_s: float = asked.settle_s) -> float:
                took_s = timed(connection, frame)
                time.sleep(settle_s)
                return took_s

            waits.append(wait_beside(broker, work))
        found.append((asked.name, waits))
    connection.close()
    return found


def table(found: list[tuple[str, list[tuple[float, float]]]]) -> list[str]:
    """Return the lines that are printed."""
    lines = [f"{'':40} {'worst':>10} {'worst of all':>13} {'took':>11}"]
    for name, waits in found:
        worst_s, took_s = min(waits)
        all_s = max(wait for wait, _ in waits)
        lines.append(f"{name:40} {worst_s * 1000:7.1f} ms {all_s * 1000:10.1f} ms {took_s * 1000:8.1f} ms")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=5000, help="how many partitions the wide topics have")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        broker = Broker(Path(directory) / "data")
        broker.start()
        try:
            found = measure(broker, arguments.items, arguments.rounds)
        finally:
            broker.kill()
    print(f"{arguments.items} items, {arguments.rounds} rounds")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
