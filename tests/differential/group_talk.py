"""Groups for the sessions: made ready, joined, described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .conversation import Conversation, Fields

UNKNOWN_MEMBER: Final = "nobody"
_SESSION_MS: Final = 30_000
_GROUP_RESOURCE: Final = 32
SUBSCRIPTION: Final = b"\0\1\0\0\0\0\xff\xff\xff\xff\0\0\0\0"
"""ConsumerProtocolSubscription, version 1, of no topics."""


def subscription(*topics: str) -> bytes:
    """Return a ConsumerProtocolSubscription, version 1."""
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\1" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff\0\0\0\0"


def coordinated(talk: Conversation, *suffixes: str) -> list[str]:
    """Return names of groups whose coordinators work."""
    groups = [talk.topic(suffix) for suffix in suffixes]
    for group in groups:
        talk.until_ready("FindCoordinator", 1, {"key": group, "key_type": 0})
        talk.until_ready("Heartbeat", 0, {"group_id": group, "generation_id": 1, "member_id": UNKNOWN_MEMBER})
    return groups


def assigning_at_once(talk: Conversation, *groups: str) -> None:
    """Have groups of the consumer protocol assign at each change, rather than now and then."""
    for group in groups:
        config = {"name": "consumer.assignment.interval.ms", "config_operation": 0, "value": "0"}
        resource = {"resource_type": _GROUP_RESOURCE, "resource_name": group, "configs": [config]}
        talk.quietly("IncrementalAlterConfigs", 1, {"resources": [resource]})
    talk.settle()


def join_fields(group: str, member_id: str = "", **more: Any) -> dict[str, Any]:
    """Return the fields of a usual JoinGroup."""
    protocols = more.pop("protocols", {"range": SUBSCRIPTION})
    return {
        "group_id": group,
        "session_timeout_ms": _SESSION_MS,
        "rebalance_timeout_ms": 5000,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols.items()],
        **more,
    }


def sync_fields(group: str, generation: int, member_id: str, assignments: Mapping[str, bytes], **more: Any) -> Fields:
    """Return the fields of a usual SyncGroup."""
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member_id,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": member, "assignment": data} for member, data in assignments.items()],
        **more,
    }


def join(talk: Conversation, group: str, *, version: int = 5, on: str = "main", **more: Any) -> str:
    """Join as the first member, unnoted, without SyncGroup; return the member id."""
    member_id: str = talk.quietly("JoinGroup", version, join_fields(group, **more), on=on)["member_id"]
    talk.quietly("JoinGroup", version, join_fields(group, member_id, **more), on=on)
    return member_id


def stable(talk: Conversation, group: str, *, on: str = "main", **more: Any) -> str:
    """Make a stable group of one member in generation 1, unnoted; return the member id."""
    member_id = join(talk, group, on=on, **more)
    talk.quietly("SyncGroup", 3, sync_fields(group, 1, member_id, {member_id: b"mine"}), on=on)
    return member_id


def describe(talk: Conversation, group: str, note: str, versions: tuple[int, ...] = (5,)) -> None:
    """Ask how a group stands."""
    talk.every("DescribeGroups", {"groups": [group]}, note=note, versions=versions, on="describe")
