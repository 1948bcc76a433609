"""Apache Kafka's own command line tools, one after another in a JVM of their own.

What they print and how they end was compared with Apache Kafka 4.3.1; `ODRADEK_INTEROP_ADDRESS` does it again.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import pytest

from .brokers import OTHER
from .kafkas_tools import Step, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .driver import Driver

pytestmark = pytest.mark.interop

KEYED: Final = "--reader-property parse.key=true --reader-property key.separator=:"
PRINTED: Final = " ".join(
    f"--formatter-property print.{part}=true" for part in ("key", "offset", "partition", "headers", "timestamp")
)

SCENARIOS: Final = {
    "topics": [
        Step(
            "TopicCommand --create --topic {topic} --partitions 2 --config retention.ms=99999",
            ["Created topic {topic}."],
        ),
        Step("TopicCommand --create --topic {topic}", ["Topic '{topic}' already exists."], 1),
        Step("TopicCommand --create --topic {topic} --if-not-exists"),
        Step("TopicCommand --create --topic {topic}-2 --config nope=1", ["Unknown topic config name: nope"], 1),
        Step(
            "TopicCommand --create --topic {topic}-2 --replica-assignment 1,1:2",
            ["Partition 1 has different replication factor"],
            1,
        ),
        Step(
            "TopicCommand --create --topic {topic}-2 --replication-factor 2",
            ["target replication factor of 2 cannot be reached"],
            1,
        ),
        Step("TopicCommand --describe --topic {topic}", ["PartitionCount: 2", "retention.ms=99999", "Isr: 1"]),
        Step("TopicCommand --describe --topic {topic} --topics-with-overrides", ["retention.ms=99999"]),
        Step("TopicCommand --describe --topic {topic} --at-min-isr-partitions", ["Topic: {topic}\tPartition: 1"]),
        Step("TopicCommand --alter --topic {topic} --partitions 3"),
        Step("TopicCommand --alter --topic {topic} --partitions 2", ["would not be an increase"], 1),
        Step("GetOffsetShell --topic {topic}", ["{topic}:0:0\n{topic}:1:0\n{topic}:2:0\n"]),
        Step("LogDirsCommand --describe --topic-list {topic}", ['"partition":"{topic}-2","size":0,"offsetLag":0']),
        Step("TopicCommand --delete --topic {topic}"),
        Step("TopicCommand --delete --topic {topic}", ["does not exist as expected"], 1),
    ],
    "configs": [
        Step("TopicCommand --create --topic {topic}"),
        Step(
            "ConfigCommand --alter --topic {topic} --add-config cleanup.policy=[compact,delete],retention.ms=5000",
            ["Completed updating config for topic {topic}."],
        ),
        Step("ConfigCommand --alter --topic {topic} --add-config retention.ms=x", ["Not a number of type LONG"], 1),
        Step("ConfigCommand --alter --topic {topic} --add-config nope=1", ["Unknown topic config name: nope"], 1),
        Step("ConfigCommand --alter --topic {topic} --delete-config nope", ["Completed updating config"]),
        Step("ConfigCommand --alter --topic {topic} --delete-config cleanup.policy"),
        Step(
            "ConfigCommand --describe --topic {topic}", ["retention.ms=5000 sensitive=false synonyms={{DYNAMIC_TOPIC_"]
        ),
        Step("ConfigCommand --describe --broker 1 --all", ["log.segment.bytes=1073741824", "num.io.threads=8"]),
        Step("ConfigCommand --alter --broker 1 --add-config num.io.threads=17", ["greater than double"], 1),
        Step("ConfigCommand --alter --broker 1 --add-config node.id=2", ["Cannot update these configs dynam"], 1),
        Step("ConfigCommand --alter --group {topic} --add-config consumer.session.timeout.ms=50000"),
        Step("ConfigCommand --describe --group {topic}", ["consumer.session.timeout.ms=50000"]),
        Step("ConfigCommand --alter --group {topic} --delete-config consumer.session.timeout.ms"),
        Step("ClientMetricsCommand --alter --name {topic} --metrics a. --interval 100 --match client_id=a.*"),
        Step("ClientMetricsCommand --alter --name {topic} --match nope=a", ["Illegal client matching pattern"], 1),
        Step("ClientMetricsCommand --describe --name {topic}", ["interval.ms=100", "match=client_id=a.*"]),
        Step("ClientMetricsCommand --delete --name {topic}"),
    ],
    "records": [
        Step("TopicCommand --create --topic {topic}"),
        Step(f"ConsoleProducer --topic {{topic}} {KEYED}", stdin="k1:v1\nk2:v2\nk3:v3\n"),
        Step("ConsoleProducer --topic {topic} --reader-property parse.headers=true", stdin="h:1\tv4\n"),
        Step(
            f"ConsoleConsumer --topic {{topic}} --from-beginning --max-messages 4 {PRINTED}",
            ["Partition:0\tOffset:1\tNO_HEADERS\tk2\tv2\n", "Partition:0\tOffset:3\th:1\tnull\tv4\n"],
        ),
        Step("ConsoleConsumer --topic {topic} --partition 0 --offset 2 --max-messages 1", ["v3\n"]),
        Step("GetOffsetShell --topic {topic} --time earliest", ["{topic}:0:0"]),
        Step("GetOffsetShell --topic {topic} --time -1", ["{topic}:0:4"]),
        Step("GetOffsetShell --topic {topic} --time max-timestamp", ["{topic}:0:3"]),
        Step("GetOffsetShell --topic {topic} --time 1", ["{topic}:0:0"]),
        Step("GetOffsetShell --topic-partitions {topic}:5", ["Could not match any topic-partitions"], 1),
        Step(
            "DeleteRecordsCommand --offset-json-file {folder}/before.json", ["partition: {topic}-0\tlow_watermark: 2"]
        ),
        Step("GetOffsetShell --topic {topic} --time earliest", ["{topic}:0:2"]),
        Step(
            "ProducerPerformance --topic {topic} --num-records 1000 --record-size 100 --throughput -1",
            ["1000 records sent"],
        ),
        Step("ConsumerPerformance --topic {topic} --num-records 1000 --timeout 10000", ["data.consumed.in.MB"]),
    ],
    "groups": [
        Step("TopicCommand --create --topic {topic}"),
        Step("ConsoleProducer --topic {topic}", stdin="a\nb\nc\n"),
        Step("ConsoleConsumer --topic {topic} --group {topic} --from-beginning --max-messages 3", ["a\nb\nc\n"]),
        Step("ConsumerGroupCommand --list --type --state", ["{topic}"]),
        Step("ConsumerGroupCommand --describe --group {topic} --state", ["Empty"]),
        Step("ConsumerGroupCommand --describe --group {topic} --members", ["has no active members"]),
        Step(
            "ConsumerGroupCommand --reset-offsets --group {topic} --topic {topic} --to-offset 1 --execute", ["{topic}"]
        ),
        Step(
            "ConsumerGroupCommand --reset-offsets --group {topic} --topic {topic} --shift-by 9 --dry-run", ["{topic}"]
        ),
        Step(
            "ConsumerGroupCommand --reset-offsets --group {topic} --topic {topic} --to-latest --dry-run --export",
            ['"{topic}",0,3\n'],
        ),
        Step("ConsumerGroupCommand --reset-offsets --group {topic} --from-file {folder}/offsets.csv --execute"),
        Step("ConsumerGroupCommand --describe --group {topic} --offsets", ["{topic}"]),
        Step("ConsumerGroupCommand --delete-offsets --group {topic} --topic {topic}", ["Successful"]),
        Step("ConsumerGroupCommand --delete --group {topic}", ["was successful"]),
        Step("ConsumerGroupCommand --describe --group {topic}", ["Group {topic} not found."]),
    ],
    "transactions": [
        Step("TopicCommand --create --topic {topic}"),
        Step(
            "ProducerPerformance --topic {topic} --num-records 10 --record-size 10 --throughput -1 "
            "--transactional-id {topic} --transaction-duration-ms 60000",
            ["10 records sent"],
        ),
        Step("TransactionsCommand list", ["{topic}"]),
        Step("TransactionsCommand describe --transactional-id {topic}", ["CompleteCommit"]),
        Step("TransactionsCommand describe --transactional-id {topic}-2", ["because the ID could not be found"], 1),
        Step("TransactionsCommand describe-producers --topic {topic} --partition 0", ["ProducerId", "None"]),
        Step("TransactionsCommand find-hanging --broker-id 1", ["Topic"]),
        Step(
            "TransactionsCommand abort --topic {topic} --partition 0 --start-offset 0",
            ["Could not find any open transactions starting at offset 0"],
            1,
        ),
    ],
    "the cluster": [
        Step("TopicCommand --create --topic {topic} --partitions 2"),
        Step("ClusterTool cluster-id", ["Cluster ID: "]),
        Step("ClusterTool list-endpoints", ["127.0.0.1"]),
        Step("FeatureCommand describe", ["FinalizedVersionLevel: 4.3-IV0"]),
        Step("FeatureCommand upgrade --feature transaction.version=2 --dry-run", ["can be upgraded to 2"]),
        Step("FeatureCommand downgrade --metadata 4.2-IV0 --dry-run", ["can be downgraded to"]),
        Step("MetadataQuorumCommand describe --status", ["LeaderId:", "HighWatermark:"]),
        Step("MetadataQuorumCommand describe --replication", ["Leader"]),
        Step("BrokerApiVersionsCommand", ["Produce(0): 0 to 13 [usable: 13]"]),
        Step(
            "LeaderElectionCommand --election-type preferred --topic {topic} --partition 0",
            ["Valid replica already elected for partitions {topic}-0"],
        ),
        Step(
            "ReassignPartitionsCommand --reassignment-json-file {folder}/same.json --execute",
            ["Successfully started partition reassignments for {topic}-0,{topic}-1"],
        ),
        Step(
            "ReassignPartitionsCommand --reassignment-json-file {folder}/same.json --verify",
            ["Reassignment of partition {topic}-1 is completed."],
        ),
        Step(
            "ReassignPartitionsCommand --reassignment-json-file {folder}/two.json --execute", ["Unknown broker id 2"], 1
        ),
        Step("ReassignPartitionsCommand --list", ["No partition reassignments found."]),
    ],
}

NOT_BUILT: Final = [
    Step("AclCommand --list", ["No Authorizer is configured on the broker"], 1),
    Step("ConfigCommand --describe --entity-type users", [], 0),
    Step("ConfigCommand --describe --ip 127.0.0.1", [], 0),
    Step(
        "MetadataQuorumCommand remove-controller -i 1 -d AAAAAAAAAAAAAAAAAAAAAg", ["the kraft.version feature is 0"], 1
    ),
    Step("FeatureCommand upgrade --feature share.version=1", ["does not support this feature"], 1),
]
"""What a tool says where the part that it is for is not there."""


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_kafkas_tools_take_us_for_kafka(
    scenario: Sequence[Step], tools: Driver, address: str, topic: str, tmp_path: Path
) -> None:
    partitions = [{"topic": topic, "partition": index, "replicas": [1]} for index in range(2)]
    moved = [{"topic": topic, "partition": 0, "replicas": [1, 2]}]
    (tmp_path / "same.json").write_text(json.dumps({"version": 1, "partitions": partitions}))
    (tmp_path / "two.json").write_text(json.dumps({"version": 1, "partitions": moved}))
    (tmp_path / "before.json").write_text(
        json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]})
    )
    (tmp_path / "offsets.csv").write_text(f"{topic},0,2\n")

    for step in scenario:
        run(tools, step, address, topic=topic, folder=tmp_path)


@pytest.mark.skipif(OTHER in os.environ, reason="Apache Kafka has these parts")
def test_a_tool_for_what_is_not_built_says_so(tools: Driver, address: str) -> None:
    for step in NOT_BUILT:
        run(tools, step, address)
