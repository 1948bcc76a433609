"""Apache Kafka's own command line tools against three brokers: topics, moves, elections, the quorum, under load too.

What they print and how they end was compared with three brokers of Apache Kafka 4.3.1, which
`ODRADEK_INTEROP_CLUSTER`, a list of addresses, does again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.waiting import until

from ..cluster.test_processes import Served
from .clients import MissingClientError, peers_command, skip_or_fail
from .driver import client_environment
from .kafkas_tools import Step, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from .driver import Driver

pytestmark = [pytest.mark.interop, pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")]

CLUSTER: Final = "ODRADEK_INTEROP_CLUSTER"
HEAP: Final = ("--heap", "128M")
LOAD_COUNT: Final = 3000
SETTINGS: Final = (
    "auto.create.topics.enable=false",
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=5",
)

SCENARIOS: Final = {
    "topics": [
        Step(
            "TopicCommand --create --topic {topic} --replica-assignment 1:2:3,2:3:1 --config min.insync.replicas=2",
            ["Created topic {topic}."],
        ),
        Step("TopicCommand --create --topic {topic}-2 --replica-assignment 1:1", ["duplicate entries: 1"], 1),
        Step("TopicCommand --create --topic {topic}-2 --replica-assignment 1:9", ["no such broker is registered"], 1),
        Step(
            "TopicCommand --create --topic {topic}-2 --replication-factor 4",
            ["The target replication factor of 4 cannot be reached because only 3 broker(s) are registered"],
            1,
        ),
        Step(
            "TopicCommand --describe --topic {topic}",
            [
                "PartitionCount: 2\tReplicationFactor: 3",
                "Partition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3",
                "Partition: 1\tLeader: 2\tReplicas: 2,3,1\tIsr: 2,3,1",
            ],
        ),
        Step("TopicCommand --alter --topic {topic} --partitions 3 --replica-assignment 1:2:3,2:3:1,3:1:2"),
        Step(
            "TopicCommand --alter --topic {topic} --partitions 4 --replica-assignment 1:2:3,2:3:1,3:1:2,1:2",
            ["Partition 3 has different replication factor: [1, 2]"],
            1,
        ),
        Step("TopicCommand --describe --topic {topic}", ["Partition: 2\tLeader: 3\tReplicas: 3,1,2\tIsr: 3,1,2"]),
        Step(
            "LogDirsCommand --describe --topic-list {topic}",
            [
                "Received log directory information from brokers 1,2,3",
                '"partition":"{topic}-2","size":0,"offsetLag":0,"isFuture":false',
            ],
        ),
        Step(
            "LogDirsCommand --describe --topic-list {topic} --broker-list 1,9",
            ["The given brokers do not exist from --broker-list: 9. Current existent brokers: 1,2,3"],
            1,
        ),
        Step("TopicCommand --delete --topic {topic}"),
        Step("TopicCommand --delete --topic {topic}", ["does not exist as expected"], 1),
    ],
    "leaders": [
        Step("TopicCommand --create --topic {topic} --replica-assignment 1:2:3,2:3:1"),
        Step(
            "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/other-order.json",
            ["Successfully started partition reassignments for {topic}-0,{topic}-1"],
        ),
        Step("TopicCommand --describe --topic {topic}", ["Partition: 0\tLeader: 1\tReplicas: 2,1,3"], is_awaited=True),
        Step(
            "LeaderElectionCommand --election-type preferred --topic {topic} --partition 0",
            ["Successfully completed leader election (PREFERRED) for partitions {topic}-0"],
        ),
        Step(
            "LeaderElectionCommand --election-type preferred --path-to-json-file {folder}/elect.json",
            ["Valid replica already elected for partitions {topic}-0"],
        ),
        Step(
            "LeaderElectionCommand --election-type unclean --topic {topic} --partition 0",
            ["Valid replica already elected for partitions {topic}-0"],
        ),
        Step(
            "LeaderElectionCommand --election-type preferred --topic {topic} --partition 9",
            ["No such partition as {topic}-9", "1 replica(s) could not be elected"],
            1,
        ),
        Step("LeaderElectionCommand --election-type preferred --all-topic-partitions"),
        Step("TopicCommand --describe --topic {topic}", ["Partition: 0\tLeader: 2\tReplicas: 2,1,3"]),
    ],
    "a throttled move": [
        Step("TopicCommand --create --topic {topic} --replica-assignment 1:2"),
        Step(
            "ProducerPerformance --topic {topic} --num-records 3000 --record-size 1000 --throughput -1", ["3000 reco"]
        ),
        Step(
            "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/move.json --throttle 20000",
            [
                "The inter-broker throttle limit was set to 20000 B/s",
                "Successfully started partition reassignment for {topic}-0",
            ],
        ),
        Step(
            "ReassignPartitionsCommand --list",
            ["Current partition reassignments:", "{topic}-0: replicas: 2,3,1. adding: 3. removing: 1."],
        ),
        Step(
            "ReassignPartitionsCommand --verify --reassignment-json-file {folder}/move.json --preserve-throttles",
            ["Reassignment of partition {topic}-0 is still in progress."],
        ),
        Step(
            "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/move.json --throttle 30000",
            ["Cannot execute because there is an existing partition assignment."],
            1,
        ),
        Step(
            "ReassignPartitionsCommand --execute --additional --reassignment-json-file {folder}/move.json "
            "--throttle 30000",
            ["The inter-broker throttle limit was set to 30000 B/s"],
        ),
        Step(
            "ConfigCommand --describe --entity-type brokers --entity-name 1",
            ["leader.replication.throttled.rate=30000", "follower.replication.throttled.rate=30000"],
        ),
        Step(
            "TopicCommand --describe --topic {topic}",
            [
                "leader.replication.throttled.replicas=0:1,0:2",
                "follower.replication.throttled.replicas=0:3",
                "Leader: 1\tReplicas: 2,3,1\tIsr: 1,2\tAdding Replicas: 3\tRemoving Replicas: 1",
            ],
        ),
        Step("TopicCommand --describe --topic {topic} --under-replicated-partitions"),
        Step(
            "ReassignPartitionsCommand --cancel --reassignment-json-file {folder}/move.json",
            [
                "Successfully cancelled partition reassignment",
                " for: {topic}-0",
                "Clearing broker-level throttles on brokers 1,2,3",
                "Clearing topic-level throttles on topic {topic}",
            ],
        ),
        Step("ReassignPartitionsCommand --list", ["No partition reassignments found."]),
        Step("TopicCommand --describe --topic {topic}", ["Leader: 1\tReplicas: 2,1\tIsr: 1,2"]),
        Step(
            "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/move.json --throttle 50000000",
            ["Successfully started partition reassignment for {topic}-0"],
        ),
        Step(
            "ReassignPartitionsCommand --verify --reassignment-json-file {folder}/move.json",
            [
                "Reassignment of partition {topic}-0 is completed.",
                "Clearing broker-level throttles on brokers 1,2,3",
                "Clearing topic-level throttles on topic {topic}",
            ],
            is_awaited=True,
        ),
        Step("TopicCommand --describe --topic {topic}", ["Leader: 2\tReplicas: 2,3\tIsr: 2,3"]),
    ],
    "a plan": [
        Step("TopicCommand --create --topic {topic} --replica-assignment 1:2:3,2:3:1"),
        Step(
            "ReassignPartitionsCommand --generate --topics-to-move-json-file {folder}/topics.json --broker-list 1,2,3",
            ["Current partition replica assignment", "Proposed partition reassignment configuration"],
        ),
        Step(
            "ReassignPartitionsCommand --generate --topics-to-move-json-file {folder}/topics.json --broker-list 2,3",
            ["The target replication factor of 3 cannot be reached because only 2 broker(s) are registered"],
            1,
        ),
        Step(
            "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/unknown-broker.json",
            ["Unknown broker id 9"],
            1,
        ),
        Step(
            "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/unknown-topic.json",
            ["Topic {topic}-nope not found."],
            1,
        ),
        Step(
            "ReassignPartitionsCommand --cancel --reassignment-json-file {folder}/move.json",
            ["None of the specified partition reassignments are active."],
        ),
    ],
    "the cluster": [
        Step("ClusterTool cluster-id", ["Cluster ID: "]),
        Step("ClusterTool list-endpoints", ["ENDPOINT_TYPE 1 127.0.0.1", "null unfenced broker 2 127.0.0.1"]),
        Step("ClusterTool unregister --id 9", ["Broker ID 9 is not currently registered"], 1),
        Step("FeatureCommand describe", ["FinalizedVersionLevel: 4.3-IV0"]),
        Step("MetadataQuorumCommand describe --status", ["LeaderId:", "MaxFollowerLag:", 'CurrentVoters: [{{"id": 1']),
        Step("MetadataQuorumCommand describe --replication --human-readable", ["Leader", "Follower", "ms ago"]),
        Step("BrokerApiVersionsCommand", ["(id: 1 rack: null isFenced: false)", "(id: 3 rack: null isFenced: false)"]),
    ],
}

VOTED: Final = (
    Step("TopicCommand --describe --topic {topic}", ["ReplicationFactor: 3", "odradek.election=quorum"]),
    Step("ProducerPerformance --topic {topic} --num-records 3000 --record-size 1000 --throughput -1", ["3000 reco"]),
    Step(
        "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/move.json --throttle 50000000",
        ["Successfully started partition reassignment for {topic}-0"],
    ),
    Step(
        "ReassignPartitionsCommand --verify --reassignment-json-file {folder}/move.json",
        ["Reassignment of partition {topic}-0 is completed.", "Clearing topic-level throttles on topic {topic}"],
        is_awaited=True,
    ),
    Step("TopicCommand --describe --topic {topic}", ["Replicas: 2,3\tIsr: 2,3"]),
    Step(
        "ReassignPartitionsCommand --execute --reassignment-json-file {folder}/back.json",
        ["Successfully started partition reassignment for {topic}-0"],
    ),
    Step(
        "ReassignPartitionsCommand --verify --reassignment-json-file {folder}/back.json",
        ["Reassignment of partition {topic}-0 is completed."],
        is_awaited=True,
    ),
    Step("LeaderElectionCommand --election-type preferred --topic {topic} --partition 0", is_awaited=True),
    Step("TopicCommand --describe --topic {topic}", ["Leader: 3\tReplicas: 3,1\tIsr: 3,1"]),
    Step(
        "LeaderElectionCommand --election-type preferred --topic {topic} --partition 0",
        ["Valid replica already elected for partitions {topic}-0"],
    ),
)
"""What an election of our own answers, which no broker of Kafka's has."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run three brokers; gives the addresses of all."""
    if other := os.environ.get(CLUSTER):
        yield other
        return
    with Served(tmp_path_factory.mktemp("brokers"), *SETTINGS) as served:
        yield ",".join(served.addresses)
        status, said = served.terminate()
    assert status == 0, said


def written(folder: Path, topic: str) -> Path:
    """Write what the tools are given as files."""

    def plan(*replicas: Sequence[int], of: str = topic) -> dict[str, Any]:
        partitions = [{"topic": of, "partition": index, "replicas": each} for index, each in enumerate(replicas)]
        return {"version": 1, "partitions": partitions}

    files = {
        "move": plan([2, 3]),
        "back": plan([3, 1]),
        "other-order": plan([2, 1, 3], [2, 3, 1]),
        "unknown-broker": plan([1, 9]),
        "unknown-topic": plan([1, 2], of=f"{topic}-nope"),
        "elect": {"partitions": [{"topic": topic, "partition": 0}]},
        "topics": {"version": 1, "topics": [{"topic": topic}]},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_kafkas_tools_take_three_of_our_brokers_for_kafkas(
    scenario: Sequence[Step], tools: Driver, brokers: str, topic: str, tmp_path: Path
) -> None:
    for step in scenario:
        run(tools, step, brokers, topic=topic, folder=written(tmp_path, topic))


@pytest.mark.skipif(CLUSTER in os.environ, reason="these are no brokers of ours")
def test_kafkas_tools_move_and_elect_where_replicas_vote(
    tools: Driver, brokers: str, topic: str, tmp_path: Path
) -> None:
    create = [sys.executable, "-m", "odradek", "topics", "create", topic, "-p", "1", "-r", "3"]
    # Kafka's TopicCommand knows no such key.
    subprocess.run([*create, "-c", "odradek.election=quorum", "-b", brokers], check=True, capture_output=True)
    for step in VOTED:
        run(tools, step, brokers, topic=topic, folder=written(tmp_path, topic))


class Running:
    """A tool of Kafka's that goes on while others work, and what it has printed."""

    def __init__(self, path: Path, *words: str) -> None:
        try:
            command = peers_command("tool", *HEAP, *words)
        except MissingClientError as error:
            skip_or_fail(f"Apache Kafka's tools are not on this machine; need {error}")
            raise
        self._path = path
        with path.open("wb") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, env=client_environment()
            )

    @property
    def printed(self) -> str:
        return self._path.read_text()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what a verifiable client has told of one kind, but for a last line that is not whole."""
        lines = [line for line in self.printed.splitlines(keepends=True) if line.startswith("{") and line[-1] == "\n"]
        return [event for line in lines if (event := json.loads(line))["name"] == name]

    def check(self) -> None:
        assert self._process.poll() in (None, 0), self.printed[-3000:]

    def end(self) -> None:
        """Have it end as Ctrl-C does, whatever has become of it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self._process.wait()


@contextmanager
def running(path: Path, *words: str) -> Iterator[Running]:
    tool = Running(path, *words)
    try:
        yield tool
    finally:
        tool.end()


@pytest.mark.sweep  # a JVM for each client
def test_kafkas_verifiable_clients_lose_nothing_while_its_tools_move_and_elect(
    tools: Driver, brokers: str, topic: str, tmp_path: Path
) -> None:
    """The partition moves twice, by Kafka's tool, while one of Kafka's clients produces and another one reads."""
    written(tmp_path, topic)
    run(tools, Step("TopicCommand --create --topic {topic} --replica-assignment 1:2"), brokers, topic=topic)
    common = ("--bootstrap-server", brokers, "--topic", topic)
    (tmp_path / "retries").write_text("retries=1000\nenable.idempotence=true\n")  # without it the tool tries once
    counted = ("--max-messages", str(LOAD_COUNT))
    tries = ("--throughput", "500", "--acks", "-1", "--command-config", str(tmp_path / "retries"))
    produce = ("VerifiableProducer", *common, *counted, *tries)
    consume = ("VerifiableConsumer", *common, "--group-id", topic, "--reset-policy", "earliest", "--verbose")
    with (
        running(tmp_path / "produced", *produce) as producer,
        running(tmp_path / "consumed", *consume, *counted) as consumer,
    ):
        until(lambda: bool(producer.events("producer_send_success")), producer.check)
        for step in (
            Step("ReassignPartitionsCommand --execute --reassignment-json-file {folder}/move.json --throttle 9000000"),
            Step(
                "ReassignPartitionsCommand --verify --reassignment-json-file {folder}/move.json",
                ["Reassignment of partition {topic}-0 is completed."],
                is_awaited=True,
            ),
            Step("LeaderElectionCommand --election-type preferred --topic {topic} --partition 0"),
        ):
            run(tools, step, brokers, topic=topic, folder=tmp_path)
        until(lambda: bool(producer.events("tool_data")), producer.check)
        until(lambda: len(consumer.events("record_data")) >= LOAD_COUNT, consumer.check)

    (told,) = producer.events("tool_data")
    assert (told["sent"], told["acked"], producer.events("producer_send_error")) == (LOAD_COUNT, LOAD_COUNT, [])
    sent = {event["offset"]: event["value"] for event in producer.events("producer_send_success")}
    read = {event["offset"]: event["value"] for event in consumer.events("record_data")}
    assert read == sent
    assert [*read.values()] == [str(number) for number in range(LOAD_COUNT)]


@pytest.mark.sweep
def test_kafkas_replica_verification_tool_finds_no_lag(tools: Driver, brokers: str, topic: str, tmp_path: Path) -> None:
    run(tools, Step("TopicCommand --create --topic {topic} --replica-assignment 1:2:3,2:3:1"), brokers, topic=topic)
    load = "ProducerPerformance --topic {topic} --num-records 500 --record-size 100 --throughput -1"
    run(tools, Step(load), brokers, topic=topic)
    words = ("--broker-list", brokers, "--topics-include", topic, "--report-interval-ms", "200")
    with running(tmp_path / "verified", "ReplicaVerificationTool", *words) as tool:
        until(lambda: f"max lag is 0 for partition {topic}-" in tool.printed, tool.check)
