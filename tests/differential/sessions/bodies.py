"""Bodies that are cut off or say more than the version knows, for every API that is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import codec
from ..group_talk import coordinated

if TYPE_CHECKING:
    from ..conversation import Conversation

ANSWERED: Final = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "DeleteRecords",
    "InitProducerId",
    "OffsetForLeaderEpoch",
    "DescribeConfigs",
    "AlterConfigs",
    "AlterReplicaLogDirs",
    "DescribeLogDirs",
    "CreatePartitions",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "DescribeQuorum",
    "UpdateFeatures",
    "DescribeCluster",
    "DescribeProducers",
    "ListConfigResources",
    "DescribeTopicPartitions",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "ListGroups",
    "DeleteGroups",
    "OffsetDelete",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "UnregisterBroker",
    "DescribeTransactions",
    "ListTransactions",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "SaslHandshake",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "SaslAuthenticate",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "DescribeClientQuotas",
    "AlterClientQuotas",
    "DescribeUserScramCredentials",
    "AlterUserScramCredentials",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "ShareGroupHeartbeat",
    "ShareGroupDescribe",
    "ShareFetch",
    "ShareAcknowledge",
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
)
"""Every API that is advertised, as a test sees to."""

_HARMLESS: Final[dict[str, dict[str, Any]]] = {
    "Produce": {"acks": -1},
    "Fetch": {},
    "ListOffsets": {},
    "CreateTopics": {},
    "DeleteTopics": {},
    "DeleteRecords": {},
    "OffsetForLeaderEpoch": {},
    "DescribeConfigs": {},
    "AlterConfigs": {},
    "AlterReplicaLogDirs": {},
    "DescribeLogDirs": {"topics": []},
    "CreatePartitions": {},
    "ElectLeaders": {"topic_partitions": []},
    "IncrementalAlterConfigs": {},
    "AlterPartitionReassignments": {},
    "ListPartitionReassignments": {},
    "DescribeQuorum": {},
    "DescribeCluster": {},
    "DescribeProducers": {},
    "InitProducerId": {"transactional_id": ""},
    "UpdateFeatures": {},
    "ListConfigResources": {"resource_types": [16]},
    "UnregisterBroker": {"broker_id": 2},
    "AddRaftVoter": {"cluster_id": None, "voter_id": -1, "timeout_ms": 10_000},
    "RemoveRaftVoter": {"cluster_id": None, "voter_id": -1},
    "OffsetCommit": {},
    "JoinGroup": {},
    "Heartbeat": {},
    "LeaveGroup": {},
    "SyncGroup": {},
    "DescribeGroups": {},
    "DeleteGroups": {},
    "OffsetDelete": {},
    "ConsumerGroupHeartbeat": {},
    "ConsumerGroupDescribe": {},
    "AddPartitionsToTxn": {"transactions": [{"transactional_id": ""}]},  # Kafka never answers about none
    "AddOffsetsToTxn": {},
    "EndTxn": {},
    "TxnOffsetCommit": {},
    "WriteTxnMarkers": {},
    "DescribeTransactions": {},
    "ListTransactions": {"state_filters": ["no such state"]},
    "ShareGroupHeartbeat": {},
    "ShareGroupDescribe": {},
    "ShareFetch": {},
    "ShareAcknowledge": {},
    "StreamsGroupHeartbeat": {},
    "StreamsGroupDescribe": {},
    "DescribeShareGroupOffsets": {},
    "AlterShareGroupOffsets": {},
    "DeleteShareGroupOffsets": {},
}
"""Requests about nothing, whose answers say nothing of other sessions' topics."""

_UNKNOWN_TAG: Final = b"\x01\x63\x02hi"
"""In place of no tagged fields: one, number 99, two bytes."""


def bodies_cut_off(talk: Conversation) -> None:
    """The last byte of a body is missing, or all of it."""
    for api in ANSWERED:
        for version in codec.versions(api):
            body = codec.encode_request(api, version, {})
            if body:
                talk.ask(api, version, raw=body[:-1], note="the last byte is missing")
        for version in codec.versions(api):
            if codec.encode_request(api, version, {}):
                talk.ask(api, version, raw=b"", note="no body")


def bodies_with_more(talk: Conversation) -> None:
    """Bytes behind the body, and tagged fields that no version has: both are passed over."""
    name = talk.create("a")
    talk.topic_id(name)
    (group,) = coordinated(talk, "g")
    topics = {"topics": [{"name": name}]}
    about: dict[str, dict[str, Any]] = {
        "Metadata": topics,
        "DescribeTopicPartitions": topics,
        "OffsetFetch": {"group_id": group, "groups": [{"group_id": group}]},
        "FindCoordinator": {"key": group, "coordinator_keys": [group]},
    }
    for api, fields in (_HARMLESS | about).items():
        for version in codec.versions(api):
            body = codec.encode_request(api, version, fields)
            talk.ask(api, version, raw=body + b"\x07more", note="bytes behind the body")
            if codec.request_is_flexible(api, version):
                talk.ask(api, version, raw=body[:-1] + _UNKNOWN_TAG, note="an unknown tagged field")
