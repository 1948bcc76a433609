"""Pure core: what each field of a request by chance may hold: mostly something usual, now and then something rare."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import attrs

from ..batches import T0
from ..conversation import NO_ID, UNKNOWN_ID
from ..group_talk import SUBSCRIPTION

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX32: Final = 2**31 - 1
_MAX64: Final = 2**63 - 1


class Drawn(Enum):
    """What depends on the session: names, and what its brokers drew."""

    TOPIC = auto()
    NEW_TOPIC = auto()
    TOPIC_ID = auto()
    GROUP = auto()
    TRANSACTIONAL_ID = auto()
    PRODUCER_ID = auto()
    PRODUCER_EPOCH = auto()
    MEMBER_ID = auto()
    GENERATION = auto()
    MEMBER_EPOCH = auto()
    FETCH_SESSION = auto()
    RECORDS = auto()
    CONFIG = auto()
    RESOURCE = auto()
    NAME_OR_ID = auto()


@attrs.frozen
class Mix:
    """Mostly one of `usual`, which may name one more than once; sometimes one of `rare`."""

    usual: tuple[object, ...]
    rare: tuple[object, ...] = ()


@attrs.frozen
class Some:
    """A list: mostly of one, sometimes of none up to three, each another."""

    of: object
    usual_count: int = 1


_PARTITION: Final = Mix((0, 0, 0, 0, 1), (2, 3, -1, _MAX32))
PARTITIONS: Final = Some(_PARTITION)
"""Every list of numbers that is not among the choices is one of partitions."""
_EPOCH: Final = Mix((-1,), (0, 0, 1, 5, -2, _MAX32))
_PRODUCER_EPOCH: Final = Mix((Drawn.PRODUCER_EPOCH,), (0, 1, 2, -1, -2, 32767))
_NO_TRANSACTION: Final = Mix((None, None, Drawn.TRANSACTIONAL_ID), ("",))

CHOICES: Final[Mapping[str, object]] = {
    # Topics and partitions.
    "name": Drawn.TOPIC,
    "topic": Drawn.TOPIC,
    "topic_name": Drawn.TOPIC,
    "topic_names": Some(Drawn.TOPIC),
    "topic_id": Mix((Drawn.TOPIC_ID,), (NO_ID, UNKNOWN_ID)),
    "index": _PARTITION,
    "partition": _PARTITION,
    "partition_index": _PARTITION,
    "current_leader_epoch": _EPOCH,
    "leader_epoch": _EPOCH,
    "last_fetched_epoch": _EPOCH,
    # Produce and fetch.
    "records": Drawn.RECORDS,
    "acks": Mix((-1, -1, 1), (2, -2)),
    "timeout_ms": Mix((2000,), (100,)),
    "max_wait_ms": Mix((0,), (20, -1)),
    "min_bytes": Mix((0, 1), (100, -1)),
    "max_bytes": Mix((1 << 20,), (0, 1, 300)),
    "partition_max_bytes": Mix((1 << 20,), (0, 1, 300)),
    "isolation_level": (0, 1),
    "session_id": Mix((0, Drawn.FETCH_SESSION), (77,)),
    "session_epoch": Mix((-1, 0), (1, 2, 3, -2)),
    "replica_id": Mix((-1,), (-2, 0, 7)),
    "replica_state": ({"replica_id": -1, "replica_epoch": -1},),
    "replica_directory_id": (NO_ID,),
    "high_watermark": (_MAX64,),
    "fetch_offset": Mix((0, 0, 1, 2, 3), (5, 10, 100, -1, -2)),
    "offset": Mix((0, 1, 2), (-1, 100, -2)),
    "log_start_offset": Mix((-1,), (0, 1)),
    "timestamp": Mix((-1, -2, -3, 0, T0), (-4, -5, -6, -7, T0 - 1, T0 + 1, 2**62)),
    "cluster_id": Mix((None,), ("", "other")),
    "rack_id": Mix(("",), ("r1",)),
    "forgotten_topics_data": Some({"topic": Drawn.TOPIC, "topic_id": Drawn.TOPIC_ID, "partitions": [_PARTITION]}, 0),
    # Producers and transactions.
    "transactional_id": Drawn.TRANSACTIONAL_ID,
    "v3_and_below_transactional_id": Drawn.TRANSACTIONAL_ID,
    "transactional_ids": Some(Drawn.TRANSACTIONAL_ID),
    "transaction_timeout_ms": Mix((60_000,), (0, -1, 900_001, _MAX32)),
    "producer_id": Drawn.PRODUCER_ID,
    "v3_and_below_producer_id": Drawn.PRODUCER_ID,
    "producer_epoch": _PRODUCER_EPOCH,
    "v3_and_below_producer_epoch": _PRODUCER_EPOCH,
    "producer_id_filters": Some(Drawn.PRODUCER_ID),
    "state_filters": Some(("Ongoing", "Empty", "ongoing", "nope"), 0),
    "duration_filter": Mix((-1,), (0, 10**9, -2)),
    "transactional_id_pattern": Mix((None, "z.*"), ("(", "")),
    # Groups.
    "group_id": Drawn.GROUP,
    "groups_names": Some(Drawn.GROUP),
    "group_ids": Some(Drawn.GROUP),
    "member_id": Drawn.MEMBER_ID,
    "group_instance_id": Mix((None,), ("i1", "i2", "")),
    "instance_id": Mix((None,), ("i1", "i2", "")),
    "generation_id": Mix((Drawn.GENERATION,), (-1, 0, 1, 2, -2)),
    "generation_id_or_member_epoch": Mix((-1, Drawn.GENERATION), (0, 1, 2, -2)),
    "member_epoch": Mix((Drawn.MEMBER_EPOCH,), (-1, 0, 1, 2, 9)),
    "session_timeout_ms": Mix((6000,), (0, -1, 1_800_001)),
    "rebalance_timeout_ms": (250,),
    "protocol_type": Mix(("consumer",), ("connect", "")),
    "protocol_name": Mix(("range", None), ("roundrobin", "")),
    "protocols": Mix(
        ([{"name": "range", "metadata": SUBSCRIPTION}],),
        ([], [{"name": "roundrobin", "metadata": b"junk"}, {"name": "range", "metadata": b""}]),
    ),
    "assignment": (b"", b"x"),
    "reason": (None, "because"),
    "committed_offset": Mix((0, 5), (-1, -2, _MAX64)),
    "committed_leader_epoch": Mix((-1, 0), (5,)),
    "committed_metadata": Mix((None, "", "m"), ("m" * 4096, "m" * 4097)),
    "retention_time_ms": Mix((-1,), (1000,)),
    "subscribed_topic_names": Mix((None, [Drawn.TOPIC]), ([], ["bad name"])),
    "subscribed_topic_regex": Mix((None,), ("", "z.*", "(")),
    "server_assignor": Mix((None,), ("uniform", "range", "nope", "")),
    "states_filter": Some(("Stable", "Empty", "stable", "nope"), 0),
    "types_filter": Some(("classic", "Consumer", "nope"), 0),
    "key": Drawn.GROUP,
    "key_type": Mix((0, 1), (3, -1)),
    "coordinator_keys": Some(Drawn.GROUP),
    # Administration.
    "num_partitions": Mix((1, 2, -1), (0, -2)),
    "replication_factor": Mix((1, -1), (0, 2, -2)),
    "count": Mix((2, 3, 4), (1, 0, -1)),
    "replicas": Mix((None, [1]), ([2], [], [1, 1], [-1])),
    "broker_ids": Mix(([1],), ([], [2], [1, 1])),
    "configs": Some(Drawn.CONFIG, 0),
    "resources": Some(Drawn.RESOURCE),
    "resource_types": Some((2, 4, 8, 16, 32, 99)),
    "election_type": Mix((0, 1), (2, -1)),
    "path": ("/nonexistent",),
    "response_partition_limit": Mix((2000,), (0, 1, 2, -1)),
    "cursor": Mix((None,), ({"topic_name": Drawn.TOPIC, "partition_index": _PARTITION},)),
    "endpoint_type": Mix((1,), (2, 0)),
    "client_software_name": Mix(("a", "1.0"), ("", "-", "a b", ".a")),
    "client_software_version": Mix(("a", "1.0"), ("", "-", "a b", ".a")),
    "validate_only": Mix((False,), (True,)),
    "allow_auto_topic_creation": Mix((False,), (True,)),
}
"""By name of the field. A tuple is a choice of equals; a field that is not here is drawn by its type."""

OF_API: Final[Mapping[tuple[str, str], object]] = {
    ("AlterPartitionReassignments", "allow_replication_factor_change"): (True,),
    ("ConsumerGroupHeartbeat", "member_epoch"): Mix((Drawn.MEMBER_EPOCH, Drawn.MEMBER_EPOCH, 0), (-1, -2, 1, 9)),
    ("ConsumerGroupHeartbeat", "member_id"): Mix(("m", "m", "n"), ("",)),
    ("ConsumerGroupHeartbeat", "rack_id"): Mix((None,), ("r1", "")),
    ("ConsumerGroupHeartbeat", "topic_partitions"): Mix(
        ([], [], None), ([{"topic_id": Drawn.TOPIC_ID, "partitions": [0]}],)
    ),
    ("ConsumerGroupHeartbeat", "subscribed_topic_names"): Mix(([Drawn.TOPIC],), (None, [], ["bad name"])),
    ("CreatePartitions", "assignments"): Mix((None,), ([], [{"broker_ids": [1]}], [{"broker_ids": [2]}])),
    ("CreateTopics", "assignments"): Mix(([],), ([{"partition_index": 0, "broker_ids": [1]}],)),
    ("CreateTopics", "name"): Drawn.NEW_TOPIC,
    ("DeleteTopics", "topics"): Some(Drawn.NAME_OR_ID),
    ("DescribeGroups", "groups"): Some(Drawn.GROUP),
    ("Fetch", "topic_id"): Drawn.TOPIC_ID,
    ("InitProducerId", "producer_epoch"): (-1, -1, -1, Drawn.PRODUCER_EPOCH),
    ("InitProducerId", "producer_id"): (-1, -1, -1, Drawn.PRODUCER_ID),
    ("InitProducerId", "transactional_id"): _NO_TRANSACTION,
    ("Metadata", "topic_id"): Mix((NO_ID,), (Drawn.TOPIC_ID, UNKNOWN_ID)),
    ("Produce", "transactional_id"): _NO_TRANSACTION,
    ("SyncGroup", "protocol_type"): Mix(("consumer", None), ("connect", "")),
    ("TxnOffsetCommit", "generation_id"): Mix((-1,), (0, 1)),
    ("TxnOffsetCommit", "member_id"): Mix(("",), (Drawn.MEMBER_ID,)),
}
"""Where an API's field is another than its namesakes. (What a Fetch with an unknown id is answered has no order.)"""

TOPIC_CONFIGS: Final[tuple[tuple[str, str | None], ...]] = (
    ("cleanup.policy", ""),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete,compact"),
    ("cleanup.policy", "delete,,compact"),
    ("compression.gzip.level", "5"),
    ("compression.gzip.level", "99"),
    ("compression.type", "gzip"),
    ("compression.type", "none"),
    ("delete.retention.ms", None),
    ("leader.replication.throttled.replicas", "*"),
    ("leader.replication.throttled.replicas", "x"),
    ("max.message.bytes", "-1"),
    ("max.message.bytes", "1e3"),
    ("max.message.bytes", "2000"),
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.type", "createtime"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("min.insync.replicas", "0"),
    ("nonsense", "1"),
    ("remote.storage.enable", "true"),
    ("retention.bytes", "100"),
    ("retention.ms", ""),
    ("retention.ms", "-2"),
    ("retention.ms", "1000000000"),
    ("segment.bytes", "1000"),
    ("segment.bytes", "2000000"),
    ("unclean.leader.election.enable", "TRUE"),
    ("unclean.leader.election.enable", "maybe"),
)
"""Configs of topics to set, right and wrong."""
