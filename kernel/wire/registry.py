"""Pure core: the APIs of Kafka 4.3: keys, names, versions, listeners, and where their messages are.

Importing this module imports no message: the classes of an API are imported when somebody asks for them.

*Source:* the message definitions of Apache Kafka 4.3.
"""

from __future__ import annotations

import re
from enum import IntFlag
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from .versions import Versions, parse_versions

if TYPE_CHECKING:
    from .message import Message

API_VERSIONS_KEY: Final = 18
LOWEST_OF_MESSAGES: Final = {0: 3}
"""API key to the lowest version of its messages, where lower ones are advertised: Produce."""


class ListenerKind(IntFlag):
    """Who may be asked: a broker, or a member of the controller quorum."""

    BROKER = 1
    CONTROLLER = 2


class Api:
    """One API: what the broker advertises of it, and its two messages.

    Immutable.

    Attributes:
        key: The API key, as in the request header.
        name: Kafka's name in camel case.
        versions: The versions to advertise. For Produce they begin at 0 although the messages begin at 3: older
            librdkafka turns compression off when 0 is missing (KAFKA-18659).
        lowest_of_messages: The lowest version that its messages have.
        flexible: The versions with compact lengths and tagged fields, also in the headers (KIP-482).
        flexible_from: The first of them; above every version if there is none.
        listeners: The kinds of listener that Kafka answers it on.
    """

    __slots__ = ("_messages", "flexible", "flexible_from", "key", "listeners", "lowest_of_messages", "name", "versions")

    def __init__(self, key: int, name: str, versions: str, flexible: str, listeners: ListenerKind) -> None:
        self.key = key
        self.name = name
        self.versions: Versions = parse_versions(versions)
        self.lowest_of_messages = LOWEST_OF_MESSAGES.get(key, self.versions.lowest)
        self.flexible: Versions = parse_versions(flexible)
        self.flexible_from = self.flexible.lowest
        self.listeners = listeners
        self._messages: tuple[type[Message], type[Message]] | None = None

    @property
    def messages(self) -> tuple[type[Message], type[Message]]:
        """The classes of its request and its response; the first use imports their module."""
        if self._messages is None:
            module = import_module(f".messages.{self.module_name}", __package__)
            found = getattr(module, f"{self.name}Request"), getattr(module, f"{self.name}Response")
            self._messages = cast("tuple[type[Message], type[Message]]", found)
        return self._messages

    @property
    def request(self) -> type[Message]:
        """The class of its request."""
        return self.messages[0]

    @property
    def response(self) -> type[Message]:
        """The class of its response."""
        return self.messages[1]

    @property
    def module_name(self) -> str:
        """The module under `odradek.kernel.wire.messages`, for instance `api_00_produce`."""
        return f"api_{self.key:02d}_{re.sub('(?<=[a-z])(?=[A-Z])', '_', self.name).lower()}"

    def request_header_version(self, version: int) -> int:
        """Return 2 for a flexible version, else 1."""
        return 2 if version >= self.flexible_from else 1

    def response_header_version(self, version: int) -> int:
        """Return 1 for a flexible version, else 0; always 0 for ApiVersions.

        A client that asks with a version we do not know must be able to read the answer (KIP-511).
        """
        return 1 if version >= self.flexible_from and self.key != API_VERSIONS_KEY else 0

    def __repr__(self) -> str:
        return f"<{self.name} ({self.key}) {self.versions}>"


_B: Final = ListenerKind.BROKER
_C: Final = ListenerKind.CONTROLLER
_BC: Final = ListenerKind.BROKER | ListenerKind.CONTROLLER

# fmt: off
_TABLE: Final = (
    (0, "Produce", "0-13", "9+", _B),
    (1, "Fetch", "4-18", "12+", _BC),
    (2, "ListOffsets", "1-11", "6+", _B),
    (3, "Metadata", "0-13", "9+", _B),
    (8, "OffsetCommit", "2-10", "8+", _B),
    (9, "OffsetFetch", "1-10", "6+", _B),
    (10, "FindCoordinator", "0-6", "3+", _B),
    (11, "JoinGroup", "0-9", "6+", _B),
    (12, "Heartbeat", "0-4", "4+", _B),
    (13, "LeaveGroup", "0-5", "4+", _B),
    (14, "SyncGroup", "0-5", "4+", _B),
    (15, "DescribeGroups", "0-6", "5+", _B),
    (16, "ListGroups", "0-5", "3+", _B),
    (17, "SaslHandshake", "0-1", "none", _BC),
    (18, "ApiVersions", "0-4", "3+", _BC),
    (19, "CreateTopics", "2-7", "5+", _BC),
    (20, "DeleteTopics", "1-6", "4+", _BC),
    (21, "DeleteRecords", "0-2", "2+", _B),
    (22, "InitProducerId", "0-5", "2+", _B),
    (23, "OffsetForLeaderEpoch", "2-4", "4+", _B),
    (24, "AddPartitionsToTxn", "0-5", "3+", _B),
    (25, "AddOffsetsToTxn", "0-4", "3+", _B),
    (26, "EndTxn", "0-5", "3+", _B),
    (27, "WriteTxnMarkers", "1-2", "1+", _B),
    (28, "TxnOffsetCommit", "0-5", "3+", _B),
    (29, "DescribeAcls", "1-3", "2+", _BC),
    (30, "CreateAcls", "1-3", "2+", _BC),
    (31, "DeleteAcls", "1-3", "2+", _BC),
    (32, "DescribeConfigs", "1-4", "4+", _BC),
    (33, "AlterConfigs", "0-2", "2+", _BC),
    (34, "AlterReplicaLogDirs", "1-2", "2+", _B),
    (35, "DescribeLogDirs", "1-5", "2+", _B),
    (36, "SaslAuthenticate", "0-2", "2+", _BC),
    (37, "CreatePartitions", "0-3", "2+", _BC),
    (38, "CreateDelegationToken", "1-3", "2+", _BC),
    (39, "RenewDelegationToken", "1-2", "2+", _BC),
    (40, "ExpireDelegationToken", "1-2", "2+", _BC),
    (41, "DescribeDelegationToken", "1-3", "2+", _BC),
    (42, "DeleteGroups", "0-2", "2+", _B),
    (43, "ElectLeaders", "0-2", "2+", _BC),
    (44, "IncrementalAlterConfigs", "0-1", "1+", _BC),
    (45, "AlterPartitionReassignments", "0-1", "0+", _BC),
    (46, "ListPartitionReassignments", "0", "0+", _BC),
    (47, "OffsetDelete", "0", "none", _B),
    (48, "DescribeClientQuotas", "0-1", "1+", _B),
    (49, "AlterClientQuotas", "0-1", "1+", _BC),
    (50, "DescribeUserScramCredentials", "0", "0+", _BC),
    (51, "AlterUserScramCredentials", "0", "0+", _BC),
    (52, "Vote", "0-2", "0+", _C),
    (53, "BeginQuorumEpoch", "0-1", "1+", _C),
    (54, "EndQuorumEpoch", "0-1", "1+", _C),
    (55, "DescribeQuorum", "0-2", "0+", _BC),
    (56, "AlterPartition", "2-3", "0+", _C),
    (57, "UpdateFeatures", "0-2", "0+", _BC),
    (58, "Envelope", "0", "0+", _C),
    (59, "FetchSnapshot", "0-1", "0+", _C),
    (60, "DescribeCluster", "0-2", "0+", _BC),
    (61, "DescribeProducers", "0", "0+", _B),
    (62, "BrokerRegistration", "0-4", "0+", _C),
    (63, "BrokerHeartbeat", "0-2", "0+", _C),
    (64, "UnregisterBroker", "0", "0+", _BC),
    (65, "DescribeTransactions", "0", "0+", _B),
    (66, "ListTransactions", "0-2", "0+", _B),
    (67, "AllocateProducerIds", "0", "0+", _C),
    (68, "ConsumerGroupHeartbeat", "0-1", "0+", _B),
    (69, "ConsumerGroupDescribe", "0-1", "0+", _B),
    (70, "ControllerRegistration", "0", "0+", _C),
    (71, "GetTelemetrySubscriptions", "0", "0+", _B),
    (72, "PushTelemetry", "0", "0+", _B),
    (73, "AssignReplicasToDirs", "0", "0+", _C),
    (74, "ListConfigResources", "0-1", "0+", _B),
    (75, "DescribeTopicPartitions", "0", "0+", _B),
    (76, "ShareGroupHeartbeat", "1", "0+", _B),
    (77, "ShareGroupDescribe", "1", "0+", _B),
    (78, "ShareFetch", "1-2", "0+", _B),
    (79, "ShareAcknowledge", "1-2", "0+", _B),
    (80, "AddRaftVoter", "0-1", "0+", _BC),
    (81, "RemoveRaftVoter", "0", "0+", _BC),
    (82, "UpdateRaftVoter", "0", "0+", _C),
    (83, "InitializeShareGroupState", "0", "0+", _B),
    (84, "ReadShareGroupState", "0", "0+", _B),
    (85, "WriteShareGroupState", "0-1", "0+", _B),
    (86, "DeleteShareGroupState", "0", "0+", _B),
    (87, "ReadShareGroupStateSummary", "0-1", "0+", _B),
    (88, "StreamsGroupHeartbeat", "0", "0+", _B),
    (89, "StreamsGroupDescribe", "0", "0+", _B),
    (90, "DescribeShareGroupOffsets", "0-1", "0+", _B),
    (91, "AlterShareGroupOffsets", "0", "0+", _B),
    (92, "DeleteShareGroupOffsets", "0", "0+", _B),
)
# fmt: on

APIS: Final[dict[int, Api]] = {row[0]: Api(*row) for row in _TABLE}
"""Every API of Kafka 4.3 by its key; keys 4 to 7 went with ZooKeeper."""
