"""Pure core: which APIs a session by chance asks, and how often each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

THEMES: Final[Mapping[str, Mapping[str, int]]] = {
    "data": {
        "Produce": 14,
        "Fetch": 10,
        "ListOffsets": 6,
        "OffsetForLeaderEpoch": 3,
        "DeleteRecords": 2,
        "DescribeProducers": 2,
        "InitProducerId": 2,
        "Metadata": 1,
        "DescribeLogDirs": 1,
    },
    "fetch_sessions": {"Fetch": 14, "Produce": 5, "DeleteRecords": 1},
    "admin": {
        "CreateTopics": 8,
        "IncrementalAlterConfigs": 5,
        "CreatePartitions": 4,
        "DescribeConfigs": 4,
        "DescribeTopicPartitions": 4,
        "Metadata": 4,
        "Produce": 4,
        "AlterConfigs": 3,
        "AlterPartitionReassignments": 3,
        "DeleteTopics": 3,
        "ElectLeaders": 2,
        "ListOffsets": 2,
        "ListPartitionReassignments": 2,
        "AlterReplicaLogDirs": 1,
        "ApiVersions": 1,
        "DescribeCluster": 1,
        "DescribeLogDirs": 1,
        "DescribeProducers": 1,
    },
    "classic_groups": {
        "JoinGroup": 10,
        "SyncGroup": 8,
        "OffsetCommit": 5,
        "OffsetFetch": 5,
        "Heartbeat": 4,
        "DescribeGroups": 3,
        "LeaveGroup": 3,
        "DeleteGroups": 2,
        "ListGroups": 2,
        "OffsetDelete": 2,
        "FindCoordinator": 1,
        "TxnOffsetCommit": 1,
    },
    "consumer_groups": {
        "ConsumerGroupHeartbeat": 14,
        "ConsumerGroupDescribe": 4,
        "OffsetCommit": 4,
        "OffsetFetch": 4,
        "JoinGroup": 3,
        "DeleteGroups": 2,
        "DescribeGroups": 2,
        "Heartbeat": 2,
        "LeaveGroup": 2,
        "ListGroups": 2,
        "SyncGroup": 2,
        "OffsetDelete": 1,
    },
    "transactions": {
        "Produce": 8,
        "AddPartitionsToTxn": 6,
        "EndTxn": 6,
        "InitProducerId": 6,
        "TxnOffsetCommit": 5,
        "AddOffsetsToTxn": 4,
        "DescribeTransactions": 4,
        "DescribeProducers": 3,
        "Fetch": 3,
        "OffsetFetch": 3,
        "ListOffsets": 2,
        "ListTransactions": 2,
        "FindCoordinator": 1,
        "OffsetCommit": 1,
    },
}

TIMED: Final = frozenset({"classic_groups", "consumer_groups"})
"""Themes in which members run out of time: on a busy machine two brokers may see a request on either side of that."""
