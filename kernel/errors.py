"""Pure core: Kafka's error codes, and the families of exceptions of this project.

A handler answers with an `ErrorCode`; a `KafkaError` carries one through a call stack. The other families never reach a
client as they are: see each class for who meets it.

*Source:* Kafka protocol guide, "Error Codes"; numbers and names are Kafka 4.3's.
"""

from __future__ import annotations

from enum import IntEnum
from typing import cast


class ErrorCode(IntEnum):
    """One of Kafka's error codes, with what a client should make of it.

    Attributes:
        retriable: Whether the same request may succeed later.
        text: One line for a person, as sent in `error_message` fields where nothing better is known.
    """

    retriable: bool
    text: str

    def __new__(cls, value: int, retriable: bool, text: str) -> ErrorCode:
        """Make a member that is its number and knows its facts."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.retriable = retriable
        member.text = text
        return member

    UNKNOWN_SERVER_ERROR = (-1, False, "The broker met a failure that it has no code for.")
    NONE = (0, False, "No error.")
    OFFSET_OUT_OF_RANGE = (1, False, "The offset asked for lies outside what the replica holds.")
    CORRUPT_MESSAGE = (2, True, "The record batch fails its checksum, or is damaged in another way.")
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, "This broker hosts no such topic or partition.")
    INVALID_FETCH_SIZE = (4, False, "The number of bytes asked for makes no sense.")
    LEADER_NOT_AVAILABLE = (5, True, "The partition has no leader at the moment; an election may be going on.")
    NOT_LEADER_OR_FOLLOWER = (6, True, "This broker does not lead the partition, or holds no replica that may answer.")
    REQUEST_TIMED_OUT = (7, True, "The request was not finished within its time.")
    BROKER_NOT_AVAILABLE = (8, False, "The broker that is needed is not available.")
    REPLICA_NOT_AVAILABLE = (9, True, "The replica asked for is not available on this broker.")
    MESSAGE_TOO_LARGE = (10, False, "The record batch is larger than the topic or the broker allows.")
    STALE_CONTROLLER_EPOCH = (11, False, "The request comes from a controller that has been succeeded by another.")
    OFFSET_METADATA_TOO_LARGE = (12, False, "The metadata beside the committed offset is too long.")
    NETWORK_EXCEPTION = (13, True, "The connection broke before an answer came.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, True, "The coordinator is still reading its state from the log.")
    COORDINATOR_NOT_AVAILABLE = (15, True, "The coordinator cannot be reached, or is not chosen yet.")
    NOT_COORDINATOR = (16, True, "This broker is not the coordinator for that group or transactional id.")
    INVALID_TOPIC_EXCEPTION = (17, False, "The topic's name is illegal, or the topic may not be used in this way.")
    RECORD_LIST_TOO_LARGE = (18, False, "The records together are larger than one segment of the log may be.")
    NOT_ENOUGH_REPLICAS = (19, True, "Fewer replicas are in sync than demanded; nothing was appended.")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, True, "Fewer replicas were in sync than demanded after the append.")
    INVALID_REQUIRED_ACKS = (21, False, "The acks of a produce request must be -1, 0 or 1.")
    ILLEGAL_GENERATION = (22, False, "The generation given is not the group's current one.")
    INCONSISTENT_GROUP_PROTOCOL = (23, False, "The member shares no protocol with the rest of its group.")
    INVALID_GROUP_ID = (24, False, "The group id is empty or otherwise not valid.")
    UNKNOWN_MEMBER_ID = (25, False, "The group knows no member of this id.")
    INVALID_SESSION_TIMEOUT = (26, False, "The session timeout lies outside the bounds that the broker sets.")
    REBALANCE_IN_PROGRESS = (27, False, "The group is rebalancing: join it again.")
    INVALID_COMMIT_OFFSET_SIZE = (28, False, "The committed offset with its metadata does not fit into a record.")
    TOPIC_AUTHORIZATION_FAILED = (29, False, "The principal may not do this with the topic.")
    GROUP_AUTHORIZATION_FAILED = (30, False, "The principal may not do this with the group.")
    CLUSTER_AUTHORIZATION_FAILED = (31, False, "The principal may not do this with the cluster.")
    INVALID_TIMESTAMP = (32, False, "A record's timestamp is too far from the broker's clock, or has the wrong type.")
    UNSUPPORTED_SASL_MECHANISM = (33, False, "The broker does not offer this SASL mechanism.")
    ILLEGAL_SASL_STATE = (34, False, "The request does not fit the state of the SASL exchange.")
    UNSUPPORTED_VERSION = (35, False, "The broker does not speak this version of the API.")
    TOPIC_ALREADY_EXISTS = (36, False, "There is already a topic of this name.")
    INVALID_PARTITIONS = (37, False, "The number of partitions is not valid.")
    INVALID_REPLICATION_FACTOR = (38, False, "The replication factor is below one, or more than there are brokers.")
    INVALID_REPLICA_ASSIGNMENT = (39, False, "The assignment of replicas to brokers is not valid.")
    INVALID_CONFIG = (40, False, "A config key is unknown or its value is not valid.")
    NOT_CONTROLLER = (41, True, "This broker is not the active controller.")
    INVALID_REQUEST = (42, False, "The request contradicts itself, or holds values that its API forbids.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, False, "The format of the stored records does not support this request.")
    POLICY_VIOLATION = (44, False, "The request breaks a policy that this cluster has set.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, False, "The producer's sequence does not follow on the last one appended.")
    DUPLICATE_SEQUENCE_NUMBER = (46, False, "The producer's sequence was appended long ago.")
    INVALID_PRODUCER_EPOCH = (47, False, "The producer's epoch is older than the one on record.")
    INVALID_TXN_STATE = (48, False, "The transaction's state does not allow this operation.")
    INVALID_PRODUCER_ID_MAPPING = (49, False, "The transactional id belongs to another producer id.")
    INVALID_TRANSACTION_TIMEOUT = (50, False, "The transaction timeout is not positive, or above the broker's limit.")
    CONCURRENT_TRANSACTIONS = (51, True, "An earlier operation on this transaction is still being finished.")
    TRANSACTION_COORDINATOR_FENCED = (52, False, "The coordinator of these markers has been succeeded by another.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, False, "The principal may not use this transactional id.")
    SECURITY_DISABLED = (54, False, "This broker has no authorizer, or no security, configured.")
    OPERATION_NOT_ATTEMPTED = (55, False, "The operation was not begun, because another in the same request failed.")
    KAFKA_STORAGE_ERROR = (56, True, "The log directory cannot be read or written.")
    LOG_DIR_NOT_FOUND = (57, False, "The broker has no log directory of this path.")
    SASL_AUTHENTICATION_FAILED = (58, False, "The credentials were not accepted.")
    UNKNOWN_PRODUCER_ID = (59, False, "The broker has no state of this producer id.")
    REASSIGNMENT_IN_PROGRESS = (60, False, "The partition's replicas are being reassigned.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, False, "Delegation tokens are not enabled on this cluster.")
    DELEGATION_TOKEN_NOT_FOUND = (62, False, "There is no such delegation token.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, False, "The principal is neither owner nor renewer of the token.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, False, "This connection may not ask about delegation tokens.")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, False, "The principal may not do this with the delegation token.")
    DELEGATION_TOKEN_EXPIRED = (66, False, "The delegation token has expired.")
    INVALID_PRINCIPAL_TYPE = (67, False, "The type of the principal is not supported.")
    NON_EMPTY_GROUP = (68, False, "The group still has members.")
    GROUP_ID_NOT_FOUND = (69, False, "There is no group of this id.")
    FETCH_SESSION_ID_NOT_FOUND = (70, True, "There is no fetch session of this id.")
    INVALID_FETCH_SESSION_EPOCH = (71, True, "The epoch is not the next one of the fetch session.")
    LISTENER_NOT_FOUND = (72, True, "The leader has no listener of the name by which the client came.")
    TOPIC_DELETION_DISABLED = (73, False, "Topics may not be deleted on this cluster.")
    FENCED_LEADER_EPOCH = (74, True, "The leader epoch of the request is older than the partition's.")
    UNKNOWN_LEADER_EPOCH = (75, True, "The leader epoch of the request is newer than this broker knows of.")
    UNSUPPORTED_COMPRESSION_TYPE = (76, False, "The compression cannot be used with this version of the API.")
    STALE_BROKER_EPOCH = (77, False, "The broker epoch is not the one of the latest registration.")
    OFFSET_NOT_AVAILABLE = (78, True, "The new leader's high watermark has not caught up yet.")
    MEMBER_ID_REQUIRED = (79, False, "Join again with the member id that came with this answer.")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, True, "The preferred leader is not alive or not in sync.")
    GROUP_MAX_SIZE_REACHED = (81, False, "The group has as many members as it may have.")
    FENCED_INSTANCE_ID = (82, False, "Another member has joined with the same group instance id.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, True, "No replica that may become leader is alive.")
    ELECTION_NOT_NEEDED = (84, True, "The partition has the right leader already.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, "The partition is not being reassigned.")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, False, "The group still subscribes to the topic, so its offsets stay.")
    INVALID_RECORD = (87, False, "A record, or the form of its batch, was refused.")
    UNSTABLE_OFFSET_COMMIT = (88, True, "Offsets of a transaction that is not finished are pending.")
    THROTTLING_QUOTA_EXCEEDED = (89, True, "The quota of this kind of request is used up; try again later.")
    PRODUCER_FENCED = (90, False, "A newer producer uses the same transactional id.")
    RESOURCE_NOT_FOUND = (91, False, "The resource that the request names does not exist.")
    DUPLICATE_RESOURCE = (92, False, "The request names the same resource twice.")
    UNACCEPTABLE_CREDENTIAL = (93, False, "The credential does not meet what its mechanism demands.")
    INCONSISTENT_VOTER_SET = (94, False, "Sender and receiver disagree about the set of voters.")
    INVALID_UPDATE_VERSION = (95, False, "The update is based on a version that is not the current one.")
    FEATURE_UPDATE_FAILED = (96, False, "The features could not be updated.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, False, "The principal in the forwarded request cannot be decoded.")
    SNAPSHOT_NOT_FOUND = (98, False, "There is no snapshot of this id.")
    POSITION_OUT_OF_RANGE = (99, False, "The position lies outside the snapshot.")
    UNKNOWN_TOPIC_ID = (100, True, "This broker hosts no topic of this id.")
    DUPLICATE_BROKER_REGISTRATION = (101, False, "Another living broker is registered under this broker id.")
    BROKER_ID_NOT_REGISTERED = (102, False, "No broker is registered under this id.")
    INCONSISTENT_TOPIC_ID = (103, True, "The topic id in the log is not the one in the request.")
    INCONSISTENT_CLUSTER_ID = (104, False, "The cluster id of the request is not this cluster's.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, False, "There is no transaction of this transactional id.")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, True, "Session and request disagree on whether topics go by id or by name.")
    INELIGIBLE_REPLICA = (107, False, "The replica may not join the in-sync replicas now.")
    NEW_LEADER_ELECTED = (108, False, "The change of the in-sync replicas made another replica the leader.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, False, "The offset is no longer on local disks, only in tiered storage.")
    FENCED_MEMBER_EPOCH = (110, False, "The member epoch is fenced: give up all partitions and join again.")
    UNRELEASED_INSTANCE_ID = (111, False, "The group instance id is still held by a member that has not left.")
    UNSUPPORTED_ASSIGNOR = (112, False, "The coordinator and the members have no such assignor in common.")
    STALE_MEMBER_EPOCH = (113, False, "The member epoch is not the current one: try again after the next heartbeat.")
    MISMATCHED_ENDPOINT_TYPE = (114, False, "The request was meant for another kind of endpoint.")
    UNSUPPORTED_ENDPOINT_TYPE = (115, False, "Nothing is known of this kind of endpoint.")
    UNKNOWN_CONTROLLER_ID = (116, False, "There is no controller of this id.")
    UNKNOWN_SUBSCRIPTION_ID = (117, False, "The telemetry subscription is not the one that the broker gave.")
    TELEMETRY_TOO_LARGE = (118, False, "The telemetry is larger than the broker accepts.")
    INVALID_REGISTRATION = (119, False, "The registration is refused by the controller.")
    TRANSACTION_ABORTABLE = (120, False, "The transaction must be aborted; the producer may then go on.")
    INVALID_RECORD_STATE = (121, False, "The state of the shared record does not allow this acknowledgement.")
    SHARE_SESSION_NOT_FOUND = (122, True, "There is no share session of this id.")
    INVALID_SHARE_SESSION_EPOCH = (123, True, "The epoch is not the next one of the share session.")
    FENCED_STATE_EPOCH = (124, False, "The state epoch of the share partition is older than the one on record.")
    INVALID_VOTER_KEY = (125, False, "The voter's id and directory id do not fit the receiver's.")
    DUPLICATE_VOTER = (126, False, "The voter belongs to the set of voters already.")
    VOTER_NOT_FOUND = (127, False, "The voter does not belong to the set of voters.")
    INVALID_REGULAR_EXPRESSION = (128, False, "The regular expression cannot be compiled.")
    REBOOTSTRAP_REQUIRED = (129, False, "The client must begin again from its bootstrap servers.")
    STREAMS_INVALID_TOPOLOGY = (130, False, "The topology of the streams group is not valid.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, False, "The topology epoch is not valid for the streams group.")
    STREAMS_TOPOLOGY_FENCED = (132, False, "The topology epoch is older than the streams group's.")
    SHARE_SESSION_LIMIT_REACHED = (133, True, "The broker holds as many share sessions as it may.")


def error_code(number: int) -> ErrorCode:
    """Return the code that a response carries; UNKNOWN_SERVER_ERROR for one that no version of ours knows."""
    return cast("ErrorCode", ErrorCode._value2member_map_.get(number, ErrorCode.UNKNOWN_SERVER_ERROR))


class OdradekError(Exception):
    """Root of every exception that this project raises on purpose."""


class KafkaError(OdradekError):
    """A failure that a client will see as an error code.

    Attributes:
        code: The code for the answer.
        detail: A sentence for the answer's `error_message`, where the API has one.
    """

    def __init__(self, code: ErrorCode, detail: str = "") -> None:
        super().__init__(detail or code.text)
        self.code = code
        self.detail = detail or code.text

    def __repr__(self) -> str:
        return f"KafkaError({self.code.name}, {self.detail!r})"


class MalformedRequestError(OdradekError):
    """The peer broke the protocol: its connection is closed, nobody else is disturbed."""


class StorageError(OdradekError):
    """A log directory cannot be read or written: its partitions go offline, the broker goes on."""


class CorruptionError(StorageError):
    """Bytes on disk are not what was written there."""


class ConfigError(OdradekError):
    """The operator's settings are wrong; printed without a traceback.

    Attributes:
        where: File and line, environment variable or option that holds the setting; may be empty.
        hint: What to do about it; may be empty.
    """

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.message}{hint}"


class UnansweredError(ConfigError):
    """Nobody answers where the settings say; that may be their fault, or may pass: a new start may succeed."""


class PluginError(OdradekError):
    """A plugin is missing, broken, doubled, or failed while running.

    Attributes:
        plugin: Its name; empty where the failure is that none is there.
        hook: The hook or contract method that failed; may be empty.
    """

    def __init__(self, plugin: str, message: str, *, hook: str = "") -> None:
        culprit = f"plugin {plugin!r}{f' ({hook})' if hook else ''}: " if plugin else ""
        super().__init__(culprit + message)
        self.plugin = plugin
        self.hook = hook
