"""What any broker of three tells: Metadata, DescribeCluster, DescribeTopicPartitions, the quorum, configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cluster_talk import NODES
from ..conversation import UNKNOWN_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..cluster_talk import ClusterTalk

_SPREAD = ([1, 2, 3], [2, 3, 1], [3, 1, 2])


def three_api_versions(talk: ClusterTalk) -> None:
    """ApiVersions of each."""
    client = {"client_software_name": "diff", "client_software_version": "1.0"}
    for node in NODES:
        talk.every("ApiVersions", client, note=f"broker {node}", on=node)


def three_metadata(talk: ClusterTalk) -> None:
    """Metadata of a spread topic, by name and id, and of none."""
    name = talk.place("a", *_SPREAD)
    topic_id = talk.topic_id(name)
    asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    for node in NODES:
        talk.every("Metadata", asked, note=f"broker {node}", on=node)
    by_id = {"topics": [{"name": None, "topic_id": topic_id}, {"name": None, "topic_id": UNKNOWN_ID}]}
    talk.every("Metadata", {**by_id, "allow_auto_topic_creation": False}, note="by id", on="3", versions=(12, 13))
    unknown = {"topics": [{"name": talk.topic("none")}], "allow_auto_topic_creation": False}
    talk.every("Metadata", unknown, note="unknown topic", on="2", versions=(4, 8, 13))
    everything = {"topics": None, "allow_auto_topic_creation": False}
    talk.every("Metadata", everything, note="all topics", on="2", own="topics", versions=(1, 8, 13))


def three_describe_cluster(talk: ClusterTalk) -> None:
    """DescribeCluster, of brokers and of controllers."""
    for node in NODES:
        for kind in (1, 2):
            talk.every("DescribeCluster", {"endpoint_type": kind}, note=f"endpoints {kind}, broker {node}", on=node)
    fenced = {"endpoint_type": 1, "include_fenced_brokers": True}
    talk.every("DescribeCluster", fenced, note="fenced ones too", on="3")


def three_unregister(talk: ClusterTalk) -> None:
    """UnregisterBroker of brokers that are not there, sent on by whoever is asked; the three stay.

    One that lives is left alone: Kafka forgets it, and the sessions that follow ask it.
    """
    for node in NODES:
        for broker in (9, -1, 2**31 - 1):
            talk.every("UnregisterBroker", {"broker_id": broker}, note=f"broker {broker}, asked of {node}", on=node)
    fenced = {"endpoint_type": 1, "include_fenced_brokers": True}
    talk.every("DescribeCluster", fenced, note="afterwards", on="2")


def three_describe_topic_partitions(talk: ClusterTalk) -> None:
    """DescribeTopicPartitions, whole and page by page."""
    name, other = talk.place("a", *_SPREAD), talk.place("b", [2, 3])
    topics = [{"name": other}, {"name": name}, {"name": talk.topic("none")}]
    for node in NODES:
        talk.every("DescribeTopicPartitions", {"topics": topics}, note=f"broker {node}", on=node)
    for cursor in (None, {"topic_name": name, "partition_index": 1}, {"topic_name": name, "partition_index": 9}):
        fields = {"topics": topics, "response_partition_limit": 2, "cursor": cursor}
        talk.every("DescribeTopicPartitions", fields, note=f"two, from {cursor}", on="2")


def three_describe_quorum(talk: ClusterTalk) -> None:
    """DescribeQuorum of each broker; positions, times and who leads are the cluster's own."""
    asked = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
    for node in NODES:
        for version in (0, 1, 2):
            answer = talk.quietly("DescribeQuorum", version, asked, on=node)
            for partition in answer["topics"][0]["partitions"]:
                _hide_positions(partition)
            for each in answer.get("nodes", ()):
                for listener in each["listeners"]:
                    listener["port"] = "<port>"
            talk.note_answer("DescribeQuorum", version, f"broker {node}", answer)


def _hide_positions(partition: dict[str, Any]) -> None:
    for name in ("leader_id", "leader_epoch", "high_watermark"):
        partition[name] = f"<{name}>"
    for replica in partition["current_voters"]:
        for name in {*replica} - {"replica_id"}:
            replica[name] = f"<{name}>"


def three_broker_configs(talk: ClusterTalk) -> None:
    """DescribeConfigs and IncrementalAlterConfigs of a broker, asked of it and of others."""

    def describe(note: str, broker: str, node: str) -> None:
        resource = {"resource_type": 4, "resource_name": broker, "configuration_keys": ["log.retention.bytes"]}
        talk.every(
            "DescribeConfigs", {"resources": [resource]}, note=f"{note}, broker {node}", on=node, versions=(1, 4)
        )

    def alter(note: str, broker: str, operation: int, value: str | None, **more: Any) -> None:
        config = {"name": "log.retention.bytes", "config_operation": operation, "value": value}
        resource = {"resource_type": 4, "resource_name": broker, "configs": [config]}
        fields: Mapping[str, Any] = {"resources": [resource], **more}
        answer = talk.quietly("IncrementalAlterConfigs", 1, fields, on="1")
        if broker == "9":
            del answer["responses"][0]["error_message"]  # it names the broker that refuses, here the controller's
        talk.note_answer("IncrementalAlterConfigs", 1, note, answer)

    for node in NODES:
        describe("of broker 2", "2", node)
        describe("of all", "", node)
    alter("of another broker, checked", "2", 0, "1000000000000", validate_only=True)
    alter("of another broker", "2", 0, "1000000000000")
    talk.place("known", [2])  # by then broker 2 has seen it
    describe("of broker 2, altered", "2", "2")
    alter("of another broker, given up", "2", 1, None)
    alter("of a broker that is not there", "9", 0, "1000000000000")
    alter("of no number", "x", 0, "1000000000000")
