"""Groups of the consumer protocol (KIP-848): whole lives, each wrong turn, members of both protocols in one group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..group_talk import (
    UNKNOWN_MEMBER,
    assigning_at_once,
    coordinated,
    describe,
    join_fields,
    stable,
    subscription,
    sync_fields,
)

if TYPE_CHECKING:
    import uuid

    from ..conversation import Conversation, Fields

_LEAVE, _JOIN, _LEAVE_FOR_NOW = -1, 0, -2


def _groups(talk: Conversation, *suffixes: str) -> list[str]:
    """Return names of groups that assign at once."""
    groups = coordinated(talk, *suffixes)
    assigning_at_once(talk, *groups)
    return groups


def _join(group: str, member: str, *topics: str, **more: Any) -> Fields:
    """Return the fields of a first heartbeat."""
    return {
        "group_id": group,
        "member_id": member,
        "member_epoch": _JOIN,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": list(topics),
        "topic_partitions": [],
        **more,
    }


def _beat(group: str, member: str, epoch: int, **more: Any) -> Fields:
    """Return the fields of a heartbeat that tells nothing new."""
    return {"group_id": group, "member_id": member, "member_epoch": epoch, **more}


def _ask(talk: Conversation, fields: Fields, note: str, version: int = 1) -> Any:
    return talk.ask("ConsumerGroupHeartbeat", version, fields, note=note)


def _owned(topic_id: uuid.UUID, *partitions: int) -> list[dict[str, Any]]:
    return [{"topic_id": topic_id, "partitions": list(partitions)}]


def _describe(talk: Conversation, group: str, note: str) -> None:
    talk.every("ConsumerGroupDescribe", {"group_ids": [group]}, note=note, on="describe")


def consumer_group_life(talk: Conversation) -> None:
    """One member, then a second one that takes over half, then an empty group."""
    topic = talk.create("a", partitions=2)
    topic_id = talk.topic_id(topic)
    (group,) = _groups(talk, "g")
    first = _ask(talk, _join(group, "first", topic), "the first joins")
    epoch = first["member_epoch"]
    _describe(talk, group, "one member")
    _ask(talk, _beat(group, "first", epoch), "nothing new")
    _ask(talk, _beat(group, "first", epoch, topic_partitions=_owned(topic_id, 0, 1)), "it owns both")
    _describe(talk, group, "one member, stable")
    second = _ask(talk, _join(group, "second", topic), "the second joins")
    _describe(talk, group, "the second waits")
    told = _ask(talk, _beat(group, "first", epoch), "the first hears of it")
    kept = told["assignment"]["topic_partitions"][0]["partitions"] if told["assignment"] else []
    waiting = second["member_epoch"]
    _ask(talk, _beat(group, "second", waiting), "the second asks too early")
    _ask(talk, _beat(group, "first", epoch, topic_partitions=_owned(topic_id, *kept)), "the first gave one back")
    given = _ask(talk, _beat(group, "second", waiting), "the second gets it")
    epoch = given["member_epoch"]
    _describe(talk, group, "shared")
    full = {
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": [topic],
        "topic_partitions": _owned(topic_id, *kept),
    }
    _ask(talk, _beat(group, "first", epoch, **full), "a full heartbeat")
    _ask(talk, _beat(group, "second", _LEAVE), "the second leaves")
    _ask(talk, _beat(group, "first", epoch), "the first gets all again")
    _describe(talk, group, "alone again")
    _ask(talk, _beat(group, "first", _LEAVE), "the first leaves")
    _describe(talk, group, "empty")
    _ask(talk, _beat(group, "first", epoch), "after leaving")
    talk.ask("DeleteGroups", 2, {"groups_names": [group]}, note="the empty group")
    _describe(talk, group, "deleted")


def consumer_group_first_versions(talk: Conversation) -> None:
    """Version 0 draws the member id; topics that are not there, and that come later."""
    topic = talk.create("a")
    (group,) = _groups(talk, "g")
    drawn = _ask(talk, _join(group, "", topic), "without an id", 0)
    _ask(talk, _join(group, "own", topic), "with an id of its own", 0)
    _ask(talk, _join(group, "", topic), "without an id", 1)
    _ask(talk, _beat(group, drawn["member_id"], _LEAVE), "leaves", 0)
    (later,) = _groups(talk, "later")
    missing = talk.topic("later")
    joined = _ask(talk, _join(later, "m", missing), "the topic is not there")
    _describe(talk, later, "nothing to read")
    talk.create("later", partitions=3)
    talk.settle()
    epoch = joined["member_epoch"]

    def has_it(answer: Any) -> bool:
        nonlocal epoch
        epoch = answer["member_epoch"]
        return bool(answer["assignment"] and answer["assignment"]["topic_partitions"])

    talk.until("ConsumerGroupHeartbeat", 1, lambda: _beat(later, "m", epoch), has_it)
    talk.topic_id(missing)
    _describe(talk, later, "the topic came")


def consumer_group_refused(talk: Conversation) -> None:
    """Each wrong turn of a heartbeat."""
    topic = talk.create("a")
    topic_id = talk.topic_id(topic)
    group, classic, missing = _groups(talk, "g", "classic", "missing")
    joined = _ask(talk, _join(group, "m", topic), "joins")
    epoch = joined["member_epoch"]
    whole = _join(missing, "x", topic)
    for note, fields in {
        "empty group id": {**whole, "group_id": ""},
        "blank group id": {**whole, "group_id": "  "},
        "no rebalance time-out": {**whole, "rebalance_timeout_ms": -1},
        "no subscription": {**whole, "subscribed_topic_names": None},
        "empty subscription": {**whole, "subscribed_topic_names": []},
        "owns something already": {**whole, "topic_partitions": _owned(topic_id, 0)},
        "does not say what it owns": {**whole, "topic_partitions": None},
        "empty instance id": {**whole, "instance_id": ""},
        "empty rack": {**whole, "rack_id": ""},
        "blank rack": {**whole, "rack_id": " "},
        "rack of control characters": {**whole, "rack_id": "\x03\t", "rebalance_timeout_ms": -1},
        "rack of a wide space": {**whole, "rack_id": "\u3000", "rebalance_timeout_ms": -1},
        "unknown assignor": {**whole, "server_assignor": "nonsense"},
        "empty assignor": {**whole, "server_assignor": ""},
        "epoch -3": {**whole, "member_epoch": -3},
        "long member id": {**whole, "member_id": "x" * 37},
        "blank member id": {**whole, "member_id": " "},
        "broken regex": {**whole, "subscribed_topic_names": None, "subscribed_topic_regex": "a["},
        "empty regex": {**whole, "subscribed_topic_names": None, "subscribed_topic_regex": ""},
        "a heartbeat in an unknown group": _beat(missing, "x", 3),
        "leaves an unknown group": _beat(missing, "x", _LEAVE),
        "unknown member": _beat(group, UNKNOWN_MEMBER, epoch),
        "unknown member leaves": _beat(group, UNKNOWN_MEMBER, _LEAVE),
        "no member id": _beat(group, "", epoch),
        "an older epoch": _beat(group, "m", epoch - 1),
        "a newer epoch": _beat(group, "m", epoch + 1),
        "static leave without an instance id": _beat(group, "m", _LEAVE_FOR_NOW),
        "owns what it was not given": _beat(group, "m", epoch, topic_partitions=_owned(topic_id, 0, 5)),
    }.items():
        _ask(talk, fields, note)
    _describe(talk, group, "as it was")
    talk.every("ConsumerGroupDescribe", {"group_ids": [missing, "", group]}, note="missing, empty name, found")
    talk.every("ConsumerGroupDescribe", {"group_ids": []}, note="none")
    both = {"group_ids": [group], "include_authorized_operations": True}
    talk.every("ConsumerGroupDescribe", both, note="authorized operations")
    stable(talk, classic, protocol_type="connect", protocols={"p": b"\xff"})
    _ask(talk, _join(classic, "x", topic), "a group of another protocol type")
    _describe(talk, classic, "a classic group")
    describe(talk, group, "a group of the consumer protocol", (0, 5, 6))
    for api, version, fields in (
        ("SyncGroup", 5, sync_fields(group, epoch, "m", {})),
        ("Heartbeat", 4, {"group_id": group, "generation_id": epoch, "member_id": "m"}),
        ("LeaveGroup", 5, {"group_id": group, "members": [{"member_id": "m"}]}),
        ("JoinGroup", 9, join_fields(group, protocol_type="connect", protocols={"p": b"\xff"})),
        ("DeleteGroups", 2, {"groups_names": [group]}),
    ):
        talk.ask(api, version, fields, note="of a consumer group")
    listed = talk.quietly("ListGroups", 5, {"types_filter": ["consumer"]})
    listed["groups"] = [each for each in listed["groups"] if each["group_id"].startswith(f"{talk.name}-")]
    talk.note_answer("ListGroups", 5, "types consumer", listed)


def consumer_group_offsets(talk: Conversation) -> None:
    """Commits and fetches of members by their epoch."""
    topic = talk.create("a")
    topic_id = talk.topic_id(topic)
    (group,) = _groups(talk, "g")
    epoch = _ask(talk, _join(group, "m", topic), "joins")["member_epoch"]
    for version in (8, 9, 10):
        for note, member, at in (
            ("its epoch", "m", epoch),
            ("an older epoch", "m", epoch - 1),
            ("a newer epoch", "m", epoch + 1),
            ("unknown member", UNKNOWN_MEMBER, epoch),
            ("nobody", "", -1),
        ):
            partition = {"partition_index": 0, "committed_offset": 10, "committed_metadata": ""}
            commit = {
                "group_id": group,
                "generation_id_or_member_epoch": at,
                "member_id": member,
                "topics": [{"name": topic, "topic_id": topic_id, "partitions": [partition]}],
            }
            talk.ask("OffsetCommit", version, commit, note=note)
            wanted = [{"name": topic, "topic_id": topic_id, "partition_indexes": [0]}]
            asked = {"group_id": group, "member_id": member, "member_epoch": at, "topics": wanted}
            talk.ask("OffsetFetch", version, {"groups": [asked]}, note=note)
    delete = {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
    talk.ask("OffsetDelete", 0, delete, note="of a subscribed topic")
    _ask(talk, _beat(group, "m", _LEAVE), "leaves")
    talk.ask("OffsetDelete", 0, delete, note="of the empty group")


def consumer_group_large_metadata(talk: Conversation) -> None:
    """Commits with too much metadata, of a member in its own epoch and in others."""
    topic = talk.create("a", partitions=2)
    topic_id = talk.topic_id(topic)
    (group,) = _groups(talk, "g")
    epoch = _ask(talk, _join(group, "m", topic), "joins")["member_epoch"]
    for at in (epoch, epoch - 1, epoch + 1, -1):
        for sizes in ((5000,), (5000, 1), (1, 5000)):
            partitions = [
                {"partition_index": index, "committed_offset": 1, "committed_metadata": "m" * size}
                for index, size in enumerate(sizes)
            ]
            topics = [{"name": topic, "topic_id": topic_id, "partitions": partitions}]
            fields = {"group_id": group, "generation_id_or_member_epoch": at, "member_id": "m", "topics": topics}
            talk.ask("OffsetCommit", 10, fields, note=f"in epoch {at}, metadata of {sizes}")


def consumer_group_static(talk: Conversation) -> None:
    """Static members: away for a while, replaced, refused."""
    topic = talk.create("a", partitions=2)
    talk.topic_id(topic)
    (group,) = _groups(talk, "g")
    static = {"instance_id": "one"}
    epoch = _ask(talk, _join(group, "m", topic, **static), "joins")["member_epoch"]
    _ask(talk, _join(group, "n", topic, **static), "another takes its name")
    _ask(talk, _beat(group, "m", epoch, instance_id="two"), "under another name")
    _ask(talk, _beat(group, "m", _LEAVE_FOR_NOW, **static), "leaves for a while")
    _describe(talk, group, "away")
    back = _ask(talk, _join(group, "n", topic, **static), "another comes back in its place")
    _describe(talk, group, "replaced")
    _ask(talk, _beat(group, "m", epoch, **static), "the one before")
    _ask(talk, _beat(group, "n", back["member_epoch"], **static), "the new one")
    _ask(talk, _beat(group, "n", _LEAVE, **static), "leaves for good")
    _describe(talk, group, "gone")


def consumer_group_migration(talk: Conversation) -> None:
    """A classic group is upgraded by a member of the consumer protocol, and downgraded when it leaves."""
    topic = talk.create("a", partitions=2)
    topic_id = talk.topic_id(topic)
    (group,) = _groups(talk, "g")
    protocols = {"range": subscription(topic)}
    assignment = b"\0\1\0\0\0\1" + len(topic).to_bytes(2, "big") + topic.encode()
    assignment += b"\0\0\0\2\0\0\0\0\0\0\0\1\xff\xff\xff\xff"
    member = talk.quietly("JoinGroup", 9, join_fields(group, protocols=protocols))["member_id"]
    talk.quietly("JoinGroup", 9, join_fields(group, member, protocols=protocols))
    talk.quietly("SyncGroup", 5, sync_fields(group, 1, member, {member: assignment}))
    joined = _ask(talk, _join(group, "modern", topic), "a member of the consumer protocol joins")
    _describe(talk, group, "upgraded")
    heartbeat = {"group_id": group, "generation_id": 1, "member_id": member}
    talk.ask("Heartbeat", 4, heartbeat, note="the classic member")
    again = talk.ask("JoinGroup", 9, join_fields(group, member, protocols=protocols), note="the classic member")
    generation = again["generation_id"]
    talk.ask("SyncGroup", 5, sync_fields(group, generation, member, {}), note="the classic member")
    answer = joined
    for step in range(3):
        answer = _ask(talk, _beat(group, "modern", answer["member_epoch"]), f"the modern member, {step}")
    _describe(talk, group, "both")
    _ask(talk, _beat(group, "modern", answer["member_epoch"], topic_partitions=_owned(topic_id, 1)), "owns one")
    _ask(talk, _beat(group, "modern", _LEAVE), "the modern member leaves")
    describe(talk, group, "downgraded")
    talk.ask("Heartbeat", 4, {**heartbeat, "generation_id": generation}, note="downgraded")


def classic_joins_refused(talk: Conversation) -> None:
    """JoinGroup of the classic protocol that a group of the consumer protocol refuses."""
    topic = talk.create("a")
    (group,) = _groups(talk, "g")
    _ask(talk, _join(group, "modern", topic), "a member of the consumer protocol joins")
    wrong: dict[str, dict[str, Any]] = {
        "no protocols": {"protocols": {}},
        "another protocol": {"protocols": {"other": b""}},
        "a static member that nobody knows": {"group_instance_id": "i"},
    }
    for what, more in wrong.items():
        for member in ("", "nobody"):
            fields = join_fields(group, member, **more)
            talk.every("JoinGroup", fields, note=f"{what}, member id {member!r}", versions=(2, 4))
        if "protocols" in more:
            talk.every("JoinGroup", join_fields(group, "modern", **more), note=f"{what}, a member", versions=(5, 9))


def classic_join_to_empty_group(talk: Conversation) -> None:
    """JoinGroup with the id of no member, to a group of the consumer protocol that has none left."""
    topic = talk.create("a")
    (group,) = _groups(talk, "g")
    _ask(talk, _join(group, "modern", topic), "a member of the consumer protocol joins")
    _ask(talk, _beat(group, "modern", _LEAVE), "it leaves")
    talk.ask("JoinGroup", 9, join_fields(group, "nobody"), note="of a member that nobody knows")
    _describe(talk, group, "afterwards")


def classic_join_without_rebalance_timeout(talk: Conversation) -> None:
    """JoinGroup version 0, which has one time-out for both, to a group of the consumer protocol."""
    topic = talk.create("a")
    (group,) = _groups(talk, "g")
    _ask(talk, _join(group, "modern", topic), "a member of the consumer protocol joins")
    joined = talk.ask("JoinGroup", 0, join_fields(group, protocols={"range": subscription(topic)}), note="joins")
    heartbeat = {"group_id": group, "generation_id": joined["generation_id"], "member_id": joined["member_id"]}
    talk.ask("Heartbeat", 4, heartbeat, note="a moment later, before it syncs")
    _describe(talk, group, "both")
