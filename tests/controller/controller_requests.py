"""The conversation with a controller whose answers Apache Kafka gave first: see `golden/controller_answers.json`.

One table: each row is a request with the version it is sent in, in order; later rows count on the topics that
earlier rows made. `python -m tools.record_controller_answers HOST:PORT` asks a fresh Kafka (one broker, defaults).
"""

from __future__ import annotations

from uuid import UUID

from odradek.kernel.types import ZERO_ID
from odradek.kernel.wire.message import Message
from odradek.kernel.wire.messages import (
    api_19_create_topics as create,
)
from odradek.kernel.wire.messages import (
    api_20_delete_topics as delete,
)
from odradek.kernel.wire.messages import (
    api_33_alter_configs as alter,
)
from odradek.kernel.wire.messages import (
    api_37_create_partitions as grow,
)
from odradek.kernel.wire.messages import (
    api_43_elect_leaders as elect,
)
from odradek.kernel.wire.messages import (
    api_44_incremental_alter_configs as incremental,
)
from odradek.kernel.wire.messages import (
    api_45_alter_partition_reassignments as reassign,
)
from odradek.kernel.wire.messages import (
    api_46_list_partition_reassignments as listing,
)
from odradek.kernel.wire.messages import (
    api_57_update_features as features,
)
from odradek.kernel.wire.messages import (
    api_64_unregister_broker as unregister,
)

BROKER, TOPIC = 4, 2


def create_topics(*topics: create.CreatableTopic, validate_only: bool = False) -> create.CreateTopicsRequest:
    return create.CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validate_only)


def topic(
    name: str,
    partitions: int = 1,
    replication: int = 1,
    assignment: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> create.CreatableTopic:
    return create.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication,
        assignments=[
            create.CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assignment or {}).items()
        ],
        configs=[
            create.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )


def delete_topics(*names: str) -> delete.DeleteTopicsRequest:
    return delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name=name) for name in names], timeout_ms=30_000)


def create_partitions(
    *topics: tuple[str, int, list[list[int]] | None], validate_only: bool = False
) -> grow.CreatePartitionsRequest:
    return grow.CreatePartitionsRequest(
        topics=[
            grow.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=None
                if lists is None
                else [grow.CreatePartitionsAssignment(broker_ids=brokers) for brokers in lists],
            )
            for name, count, lists in topics
        ],
        timeout_ms=30_000,
        validate_only=validate_only,
    )


def alter_configs(resource_type: int, name: str, **configs: str | None) -> alter.AlterConfigsRequest:
    return alter.AlterConfigsRequest(
        resources=[
            alter.AlterConfigsResource(
                resource_type=resource_type,
                resource_name=name,
                configs=[alter.AlterableConfig(name=k.replace("_", "."), value=v) for k, v in configs.items()],
            )
        ]
    )


def incremental_alter(
    *resources: tuple[int, str, list[tuple[str, int, str | None]]], validate_only: bool = False
) -> incremental.IncrementalAlterConfigsRequest:
    return incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in configs
                ],
            )
            for kind, name, configs in resources
        ],
        validate_only=validate_only,
    )


def elect_leaders(kind: int, partitions: list[tuple[str, list[int]]] | None) -> elect.ElectLeadersRequest:
    return elect.ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None
        if partitions is None
        else [elect.TopicPartitions(topic=name, partitions=indexes) for name, indexes in partitions],
        timeout_ms=30_000,
    )


def reassign_partitions(*partitions: tuple[str, int, list[int] | None]) -> reassign.AlterPartitionReassignmentsRequest:
    return reassign.AlterPartitionReassignmentsRequest(
        topics=[
            reassign.ReassignableTopic(
                name=name, partitions=[reassign.ReassignablePartition(partition_index=index, replicas=replicas)]
            )
            for name, index, replicas in partitions
        ],
        timeout_ms=30_000,
    )


def list_reassignments(topics: list[tuple[str, list[int]]] | None) -> listing.ListPartitionReassignmentsRequest:
    return listing.ListPartitionReassignmentsRequest(
        topics=None
        if topics is None
        else [
            listing.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in topics
        ],
        timeout_ms=30_000,
    )


def update_features(*updates: tuple[str, int, int], validate_only: bool = False) -> features.UpdateFeaturesRequest:
    return features.UpdateFeaturesRequest(
        feature_updates=[
            features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
            for name, level, kind in updates
        ],
        validate_only=validate_only,
        timeout_ms=30_000,
    )


LONG = "x" * 250

REQUESTS: list[tuple[str, int, Message]] = [
    # --- CreateTopics -----------------------------------------------------------------------------------------------
    ("create a plain topic", 7, create_topics(topic("plain", 2))),
    ("create it again", 7, create_topics(topic("plain", 2))),
    ("create it again, in the oldest version", 2, create_topics(topic("plain", 2))),
    ("defaults by -1", 7, create_topics(topic("defaults", -1, -1))),
    ("empty request", 7, create_topics()),
    ("bad names", 7, create_topics(topic(""), topic("."), topic(".."), topic("a b"), topic("ä"), topic(LONG))),
    ("longest name", 7, create_topics(topic("y" * 249))),
    ("dots and underscores", 7, create_topics(topic("a.b_c"))),
    ("a name that collides", 7, create_topics(topic("a_b.c"))),
    ("two that collide in one request", 7, create_topics(topic("p.q"), topic("p_q"))),
    ("the same name twice", 7, create_topics(topic("twice"), topic("twice"), topic("once"))),
    ("internal names", 7, create_topics(topic("__cluster_metadata"), topic("__consumer_offsets", 2))),
    ("no partitions", 7, create_topics(topic("zero", 0), topic("minus-two", -2))),
    ("no replicas", 7, create_topics(topic("zero-r", 1, 0), topic("minus-two-r", 1, -2))),
    ("more replicas than brokers", 7, create_topics(topic("three-r", 1, 3))),
    ("many partitions", 7, create_topics(topic("many", 10_001))),
    ("assigned by hand", 7, create_topics(topic("hand", -1, -1, {0: [1], 1: [1]}))),
    ("assigned and counted", 7, create_topics(topic("both", 2, 1, {0: [1], 1: [1]}))),
    ("assigned and replication given", 7, create_topics(topic("both-r", -1, 1, {0: [1]}))),
    ("assigned and partitions given", 7, create_topics(topic("both-p", 1, -1, {0: [1]}))),
    ("assigned with a gap", 7, create_topics(topic("gap", -1, -1, {0: [1], 2: [1]}))),
    ("assigned not from zero", 7, create_topics(topic("one", -1, -1, {1: [1]}))),
    ("assigned to an unknown broker", 7, create_topics(topic("stranger", -1, -1, {0: [9]}))),
    ("assigned to a broker twice", 7, create_topics(topic("double", -1, -1, {0: [1, 1]}))),
    ("assigned to nobody", 7, create_topics(topic("nobody", -1, -1, {0: []}))),
    ("assigned unevenly", 7, create_topics(topic("uneven", -1, -1, {0: [1], 1: [1, 9]}))),
    ("assigned to a negative broker", 7, create_topics(topic("negative", -1, -1, {0: [-1]}))),
    ("with configs", 7, create_topics(topic("configured", 1, 1, None, retention_ms="1000", cleanup_policy="compact"))),
    ("unknown config", 7, create_topics(topic("bad-config", 1, 1, None, no_such_key="1"))),
    ("config out of range", 7, create_topics(topic("bad-value", 1, 1, None, retention_ms="-2"))),
    ("config not a number", 7, create_topics(topic("bad-number", 1, 1, None, retention_ms="soon"))),
    ("config not in the list", 7, create_topics(topic("bad-word", 1, 1, None, cleanup_policy="burn"))),
    ("config null", 7, create_topics(topic("null-config", 1, 1, None, retention_ms=None))),
    ("config above replicas", 7, create_topics(topic("high-isr", 1, 1, None, min_insync_replicas="2"))),
    ("validate only", 7, create_topics(topic("dry", 3), topic("plain", 1), validate_only=True)),
    ("validate only, same name again", 7, create_topics(topic("dry", 3), validate_only=True)),
    ("old version without counts", 4, create_topics(topic("version-four", -1, -1))),
    ("two errors at once", 7, create_topics(topic("a b", 0, 0))),
    ("partitions and configs wrong", 7, create_topics(topic("wrong-both", 0, 1, None, no_such_key="1"))),
    # --- CreatePartitions -------------------------------------------------------------------------------------------
    ("grow a topic", 3, create_partitions(("plain", 4, None))),
    ("grow to the same count", 3, create_partitions(("plain", 4, None))),
    ("shrink a topic", 3, create_partitions(("plain", 1, None))),
    ("grow to nothing", 3, create_partitions(("plain", 0, None))),
    ("grow to less than nothing", 3, create_partitions(("plain", -1, None))),
    ("grow a topic that is not there", 3, create_partitions(("missing", 4, None))),
    ("grow one topic twice", 3, create_partitions(("plain", 6, None), ("plain", 8, None), ("hand", 3, None))),
    ("grow nothing", 3, create_partitions()),
    ("grow with an assignment", 3, create_partitions(("plain", 6, [[1], [1]]))),
    ("grow with too few assignments", 3, create_partitions(("plain", 9, [[1]]))),
    ("grow with too many assignments", 3, create_partitions(("plain", 7, [[1], [1]]))),
    ("grow onto an unknown broker", 3, create_partitions(("plain", 7, [[9]]))),
    ("grow onto a broker twice", 3, create_partitions(("plain", 7, [[1, 1]]))),
    ("grow onto nobody", 3, create_partitions(("plain", 7, [[]]))),
    ("grow with no assignments at all", 3, create_partitions(("plain", 7, []))),
    ("grow, validate only", 3, create_partitions(("plain", 20, None), validate_only=True)),
    ("grow, validate only, wrong", 3, create_partitions(("plain", 2, None), validate_only=True)),
    ("grow a bad name", 3, create_partitions(("a b", 2, None))),
    # --- AlterConfigs -----------------------------------------------------------------------------------------------
    ("alter a topic", 2, alter_configs(TOPIC, "plain", retention_ms="5000")),
    ("alter a missing topic", 2, alter_configs(TOPIC, "missing", retention_ms="5000")),
    ("alter a topic with an unknown key", 2, alter_configs(TOPIC, "plain", no_such_key="5000")),
    ("alter a topic with a null value", 2, alter_configs(TOPIC, "plain", retention_ms=None)),
    ("alter a topic without a name", 2, alter_configs(TOPIC, "", retention_ms="1")),
    ("alter a topic of a bad name", 2, alter_configs(TOPIC, "a b", retention_ms="1")),
    ("alter the broker", 2, alter_configs(BROKER, "1", log_cleaner_threads="2")),
    ("alter an unknown broker", 2, alter_configs(BROKER, "9", log_cleaner_threads="2")),
    ("alter a broker without a number", 2, alter_configs(BROKER, "x", log_cleaner_threads="2")),
    ("alter a read-only broker key", 2, alter_configs(BROKER, "1", log_dirs="/tmp")),
    ("alter all brokers", 2, alter_configs(BROKER, "", log_retention_ms="100000")),
    ("alter a key of one broker for all", 2, alter_configs(BROKER, "", listener_security_protocol_map="A:PLAINTEXT")),
    ("alter the unknown type", 2, alter_configs(0, "x", a="b")),
    ("alter a strange type", 2, alter_configs(77, "x", a="b")),
    ("alter a broker's loggers", 2, alter_configs(8, "1", root="INFO")),
    ("alter client metrics", 2, alter_configs(16, "metrics", interval_ms="1000")),
    ("alter client metrics wrongly", 2, alter_configs(16, "metrics", interval="1000")),
    ("alter a group", 2, alter_configs(32, "group", consumer_session_timeout_ms="50000")),
    ("alter a group wrongly", 2, alter_configs(32, "group", consumer_session="50000")),
    ("alter a group without a name", 2, alter_configs(32, "", consumer_session_timeout_ms="50000")),
    # --- IncrementalAlterConfigs ------------------------------------------------------------------------------------
    ("set", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 0, "7000")]))),
    ("set an unknown key", 1, incremental_alter((TOPIC, "plain", [("no.such.key", 0, "7000")]))),
    ("set null", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 0, None)]))),
    ("delete", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 1, None)]))),
    ("delete what is not set", 1, incremental_alter((TOPIC, "plain", [("segment.ms", 1, None)]))),
    ("delete an unknown key", 1, incremental_alter((TOPIC, "plain", [("no.such.key", 1, None)]))),
    ("append to a list", 1, incremental_alter((TOPIC, "plain", [("cleanup.policy", 2, "compact")]))),
    ("append it again", 1, incremental_alter((TOPIC, "plain", [("cleanup.policy", 2, "compact")]))),
    ("subtract from a list", 1, incremental_alter((TOPIC, "plain", [("cleanup.policy", 3, "delete")]))),
    ("append to a number", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 2, "1")]))),
    ("subtract from a number", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 3, "1")]))),
    ("append null", 1, incremental_alter((TOPIC, "plain", [("cleanup.policy", 2, None)]))),
    ("append an empty text", 1, incremental_alter((TOPIC, "plain", [("cleanup.policy", 2, "")]))),
    ("an unknown operation", 1, incremental_alter((TOPIC, "plain", [("cleanup.policy", 9, "x")]))),
    (
        "a key twice",
        1,
        incremental_alter((TOPIC, "plain", [("retention.ms", 0, "1"), ("retention.ms", 0, "2")])),
    ),
    (
        "a resource twice",
        1,
        incremental_alter((TOPIC, "plain", [("retention.ms", 0, "1")]), (TOPIC, "plain", [("segment.ms", 0, "2")])),
    ),
    ("a wrong value", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 0, "-7")]))),
    ("an empty list of changes", 1, incremental_alter((TOPIC, "plain", []))),
    ("a missing topic", 1, incremental_alter((TOPIC, "missing", [("retention.ms", 0, "1")]))),
    ("set, validate only", 1, incremental_alter((TOPIC, "plain", [("retention.ms", 0, "1")]), validate_only=True)),
    ("set for the broker", 1, incremental_alter((BROKER, "1", [("log.cleaner.threads", 0, "1")]))),
    ("set for all brokers", 1, incremental_alter((BROKER, "", [("log.retention.ms", 0, "200000")]))),
    ("set an unknown key for the broker", 1, incremental_alter((BROKER, "1", [("my.own.key", 0, "1")]))),
    ("set a wrong value for the broker", 1, incremental_alter((BROKER, "1", [("log.cleaner.threads", 0, "x")]))),
    ("set a read-only key for the broker", 1, incremental_alter((BROKER, "1", [("node.id", 0, "4")]))),
    ("set a read-only key for all", 1, incremental_alter((BROKER, "", [("node.id", 0, "4")]))),
    ("set a key of one broker for all", 1, incremental_alter((BROKER, "", [("listeners", 0, "PLAINTEXT://:1")]))),
    ("set for an unknown broker", 1, incremental_alter((BROKER, "9", [("log.cleaner.threads", 0, "1")]))),
    ("set for the unknown type", 1, incremental_alter((0, "x", [("a", 0, "1")]))),
    ("set for a strange type", 1, incremental_alter((77, "x", [("a", 0, "1")]))),
    ("set client metrics", 1, incremental_alter((16, "m", [("interval.ms", 0, "1000")]))),
    ("set a group", 1, incremental_alter((32, "g", [("consumer.session.timeout.ms", 0, "50000")]))),
    ("set a group out of bounds", 1, incremental_alter((32, "g", [("consumer.session.timeout.ms", 0, "1")]))),
    ("min.insync.replicas above replicas", 1, incremental_alter((TOPIC, "plain", [("min.insync.replicas", 0, "3")]))),
    # --- ElectLeaders -----------------------------------------------------------------------------------------------
    ("elect, not needed", 2, elect_leaders(0, [("plain", [0, 1])])),
    ("elect uncleanly, not needed", 2, elect_leaders(1, [("plain", [0])])),
    ("elect for a missing topic", 2, elect_leaders(0, [("missing", [0])])),
    ("elect for a missing partition", 2, elect_leaders(0, [("plain", [77])])),
    ("elect for all", 2, elect_leaders(0, None)),
    ("elect all uncleanly", 2, elect_leaders(1, None)),
    ("elect for none", 2, elect_leaders(0, [])),
    ("elect strangely", 2, elect_leaders(7, [("plain", [0])])),
    ("elect in the oldest version", 0, elect_leaders(0, [("plain", [0])])),
    # --- Reassignments ----------------------------------------------------------------------------------------------
    ("reassign to itself", 1, reassign_partitions(("plain", 0, [1]))),
    ("reassign to an unknown broker", 1, reassign_partitions(("plain", 0, [9]))),
    ("reassign to a broker twice", 1, reassign_partitions(("plain", 0, [1, 1]))),
    ("reassign to nobody", 1, reassign_partitions(("plain", 0, []))),
    ("reassign to a negative broker", 1, reassign_partitions(("plain", 0, [-1]))),
    ("cancel nothing", 1, reassign_partitions(("plain", 0, None))),
    ("reassign a missing topic", 1, reassign_partitions(("missing", 0, [1]))),
    ("reassign a missing partition", 1, reassign_partitions(("plain", 77, [1]))),
    ("reassign nothing", 1, reassign_partitions()),
    ("list reassignments", 0, list_reassignments(None)),
    ("list reassignments of a topic", 0, list_reassignments([("plain", [0])])),
    ("list reassignments of a missing topic", 0, list_reassignments([("missing", [0])])),
    # --- Features, brokers ------------------------------------------------------------------------------------------
    ("unknown feature", 2, update_features(("no.such.feature", 1, 1))),
    ("metadata.version too high", 2, update_features(("metadata.version", 99, 1))),
    ("metadata.version too low", 2, update_features(("metadata.version", 1, 2))),
    ("metadata.version downgrade as upgrade", 2, update_features(("metadata.version", 27, 1))),
    ("metadata.version down", 2, update_features(("metadata.version", 29, 2), validate_only=True)),
    ("metadata.version unsafe down", 2, update_features(("metadata.version", 7, 3), validate_only=True)),
    ("the same metadata.version", 2, update_features(("metadata.version", 30, 1), validate_only=True)),
    ("metadata.version zero", 2, update_features(("metadata.version", 0, 2), validate_only=True)),
    ("a feature twice", 2, update_features(("no.a", 1, 1), ("no.a", 1, 1))),
    ("an unknown upgrade type", 2, update_features(("metadata.version", 29, 9), validate_only=True)),
    ("a negative level", 2, update_features(("metadata.version", -1, 2), validate_only=True)),
    ("no features", 2, update_features()),
    ("an unknown feature, version 1", 1, update_features(("no.such.feature", 1, 1))),
    ("kraft.version up", 2, update_features(("kraft.version", 1, 1), validate_only=True)),
    ("kraft.version too far", 2, update_features(("kraft.version", 2, 1), validate_only=True)),
    ("kraft.version", 2, update_features(("kraft.version", 0, 2), validate_only=True)),
    ("kraft.version up for good", 2, update_features(("kraft.version", 1, 1))),
    ("kraft.version down", 2, update_features(("kraft.version", 0, 2))),
    ("kraft.version unsafe down", 2, update_features(("kraft.version", 0, 3))),
    ("kraft.version down as upgrade", 2, update_features(("kraft.version", 0, 1))),
    ("kraft.version as it is", 2, update_features(("kraft.version", 1, 1))),
    ("transaction.version down", 2, update_features(("transaction.version", 1, 2))),
    ("group.version down", 2, update_features(("group.version", 0, 2))),
    ("group.version up", 2, update_features(("group.version", 1, 1))),
    ("unregister an unknown broker", 0, unregister.UnregisterBrokerRequest(broker_id=9)),
    # --- DeleteTopics -----------------------------------------------------------------------------------------------
    ("delete a topic by name", 6, delete_topics("hand")),
    ("delete it again", 6, delete_topics("hand")),
    ("delete it again, in an old version", 3, delete.DeleteTopicsRequest(topic_names=["hand"], timeout_ms=30_000)),
    ("delete a bad name", 6, delete_topics("a b")),
    ("delete the empty name", 6, delete_topics("")),
    ("delete a topic twice in one request", 6, delete_topics("plain", "plain", "defaults")),
    ("delete nothing", 6, delete_topics()),
    (
        "delete by an unknown id",
        6,
        delete.DeleteTopicsRequest(
            topics=[delete.DeleteTopicState(name=None, topic_id=UUID(int=77))], timeout_ms=30_000
        ),
    ),
    (
        "delete by the zero id",
        6,
        delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name=None, topic_id=ZERO_ID)], timeout_ms=30_000),
    ),
    (
        "delete by name and id",
        6,
        delete.DeleteTopicsRequest(
            topics=[delete.DeleteTopicState(name="configured", topic_id=UUID(int=77))],
            timeout_ms=30_000,
        ),
    ),
    ("delete by name, oldest version", 1, delete.DeleteTopicsRequest(topic_names=["configured"], timeout_ms=30_000)),
]
