"""OffsetCommit, OffsetFetch, OffsetDelete: what groups remember."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import codec
from ..conversation import UNKNOWN_ID
from ..group_talk import UNKNOWN_MEMBER, coordinated, join_fields, stable, subscription, sync_fields

if TYPE_CHECKING:
    import uuid

    from ..conversation import Conversation, Fields

_NAMED = range(2, 10)


def _commit(group: str, topic: str, offsets: dict[int, int], *, topic_id: Any = UNKNOWN_ID, **more: Any) -> Fields:
    metadata, epoch = more.pop("metadata", ""), more.pop("epoch", -1)
    partitions = [
        {
            "partition_index": index,
            "committed_offset": offset,
            "committed_metadata": metadata,
            "committed_leader_epoch": epoch,
        }
        for index, offset in offsets.items()
    ]
    topics = [{"name": topic, "topic_id": topic_id, "partitions": partitions}]
    return {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics, **more}


def _fetch(group: str, topics: dict[str, list[int]] | None, topic_id: uuid.UUID | None = None, **more: Any) -> Any:
    """Return a function from the version to the fields of an OffsetFetch."""

    def fields(version: int) -> Fields:
        wanted: list[dict[str, Any]] | None = None
        if topics is not None:
            wanted = [{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()]
        if version < 8:
            return {"group_id": group, "topics": wanted, **more}
        if wanted is not None:
            wanted = [{**each, "topic_id": topic_id or UNKNOWN_ID} for each in wanted]
        require_stable = more.get("require_stable", False)
        rest = {key: value for key, value in more.items() if key != "require_stable"}
        return {"groups": [{"group_id": group, "topics": wanted, **rest}], "require_stable": require_stable}

    return fields


def offset_commit(talk: Conversation) -> None:
    """OffsetCommit and OffsetFetch of a group without members, in every version."""
    topic = talk.create("a", partitions=2)
    topic_id = talk.topic_id(topic)
    group, other, third = coordinated(talk, "g", "other", "third")
    for version in codec.versions("OffsetCommit"):
        fields = _commit(group, topic, {0: version, 1: 7}, topic_id=topic_id, metadata=f"v{version}", epoch=version)
        talk.ask("OffsetCommit", version, fields, note="two partitions")
        asked = _fetch(group, {topic: [0, 1]}, topic_id)
        talk.ask("OffsetFetch", version, asked(version), note="two partitions")
    talk.every("OffsetFetch", _fetch(group, {topic: [0, 5]}, topic_id), note="a partition that was not committed")
    talk.every("OffsetFetch", _fetch(group, None), note="all topics", versions=range(2, 11))
    talk.every("OffsetFetch", _fetch(group, {}), note="no topics")
    talk.every("OffsetFetch", _fetch(other, {topic: [0]}, topic_id), note="unknown group")
    talk.every("OffsetFetch", _fetch(other, None), note="unknown group, all topics", versions=(2, 7, 8, 10))
    talk.every("OffsetFetch", _fetch("", {topic: [0]}, topic_id), note="empty group id")
    talk.every("OffsetFetch", _fetch(group, {talk.topic("none"): [0]}), note="unknown topic")
    stable_only = _fetch(group, {topic: [0]}, topic_id, require_stable=True)
    talk.every("OffsetFetch", stable_only, note="stable only", versions=(7, 8, 10))
    for note, fields in {
        "unknown topic": _commit(group, talk.topic("none"), {0: 1}),
        "unknown partition": _commit(group, topic, {0: 20, 9: 1}, topic_id=topic_id),
        "negative partition": _commit(group, topic, {-1: 1}, topic_id=topic_id),
        "offset -1": _commit(group, topic, {0: -1}, topic_id=topic_id),
        "offset -7": _commit(group, topic, {0: -7}, topic_id=topic_id),
        "null metadata": _commit(group, topic, {0: 21}, topic_id=topic_id, metadata=None),
        "longest metadata": _commit(group, topic, {0: 22}, topic_id=topic_id, metadata="x" * 4096),
        "metadata too long": _commit(group, topic, {0: 23}, topic_id=topic_id, metadata="x" * 4097),
        "empty group id": _commit("", topic, {0: 1}, topic_id=topic_id),
        "no topics": {"group_id": group, "topics": []},
        "retention of an hour": _commit(group, topic, {1: 24}, topic_id=topic_id, retention_time_ms=3_600_000),
        "generation of nobody": _commit(third, topic, {0: 1}, topic_id=topic_id, generation_id_or_member_epoch=3),
        "member of nothing": _commit(third, topic, {0: 1}, topic_id=topic_id, member_id=UNKNOWN_MEMBER),
        "instance of nothing": _commit(third, topic, {0: 1}, topic_id=topic_id, group_instance_id="i"),
    }.items():
        versions = (7, 9, 10) if note.startswith("instance") else (2, 4, 9, 10)
        talk.every("OffsetCommit", fields, note=note, versions=versions)
        talk.ask("OffsetFetch", 8, _fetch(group, {topic: [0, 1]}, topic_id)(8), note=f"after {note}")
    groups = [{"group_id": name, "topics": None} for name in (group, other, "", group)]
    talk.every("OffsetFetch", {"groups": groups}, note="several groups", versions=(8, 9, 10))
    talk.every("OffsetFetch", {"groups": []}, note="no groups", versions=(8, 10))
    internal = _commit(group, "__consumer_offsets", {0: 3})
    talk.ask("OffsetCommit", 8, internal, note="of an internal topic")
    talk.ask("OffsetFetch", 5, _fetch(group, {"__consumer_offsets": [0]})(5), note="of an internal topic")


def offset_commit_of_nothing(talk: Conversation) -> None:
    """An OffsetCommit of which nothing is taken makes no group."""
    topic = talk.create("a")
    (group,) = coordinated(talk, "g")
    for version in (2, 9):
        fields = _commit(group, topic, {0: 5}, metadata="m" * 5000)
        talk.ask("OffsetCommit", version, fields, note="metadata too large")
        talk.ask("DescribeGroups", 5, {"groups": [group]}, note="afterwards")
    talk.ask("OffsetCommit", 9, _commit(group, topic, {0: 5}), note="a good one")
    talk.ask("DescribeGroups", 5, {"groups": [group]}, note="after the good one")


def offsets_of_members(talk: Conversation) -> None:
    """Commits within a generation, and after the member is gone."""
    topic = talk.create("a")
    topic_id = talk.topic_id(topic)
    (group,) = coordinated(talk, "g")
    member = stable(talk, group, protocols={"range": subscription(topic)})
    good = {"generation_id_or_member_epoch": 1, "member_id": member}
    for version in codec.versions("OffsetCommit"):
        talk.ask("OffsetCommit", version, _commit(group, topic, {0: version}, topic_id=topic_id, **good), note="member")
    alone = _commit(group, topic, {0: 77}, topic_id=topic_id)
    talk.every("OffsetCommit", alone, note="nobody's, while there are members", versions=(2, 8, 9, 10))
    for who, epoch in ((None, -1), (member, 1), (member, 0), (member, 2), (UNKNOWN_MEMBER, 1), ("", -1)):
        asked = _fetch(group, {topic: [0]}, topic_id, member_id=who, member_epoch=epoch)
        name = "the member" if who == member else who
        talk.every("OffsetFetch", asked, note=f"of {name!r}, epoch {epoch}", versions=(9, 10))
    delete = {"group_id": group, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
    talk.ask("OffsetDelete", 0, delete, note="of a subscribed topic")
    talk.quietly("LeaveGroup", 1, {"group_id": group, "member_id": member})
    talk.ask("OffsetFetch", 5, _fetch(group, {topic: [0]})(5), note="after all left")
    talk.ask("OffsetCommit", 7, _commit(group, topic, {0: 5}, **good), note="of the member that left")
    talk.ask("OffsetCommit", 7, alone, note="nobody's, the group is empty")
    _delete(talk, group, topic, delete)


def _delete(talk: Conversation, group: str, topic: str, delete: Fields) -> None:
    several = [{"partition_index": index} for index in (0, 0, 4)]
    topics = [
        {"name": topic, "partitions": several},
        {"name": talk.topic("none"), "partitions": [{"partition_index": 0}]},
    ]
    talk.ask("OffsetDelete", 0, {"group_id": group, "topics": topics}, note="empty group, several")
    talk.ask("OffsetFetch", 5, _fetch(group, None)(5), note="deleted")
    talk.ask("OffsetDelete", 0, delete, note="once more")
    talk.ask("OffsetDelete", 0, {**delete, "group_id": talk.topic("none")}, note="unknown group")
    talk.ask("OffsetDelete", 0, {**delete, "group_id": ""}, note="empty group id")
    talk.ask("OffsetDelete", 0, {"group_id": group, "topics": []}, note="no topics")
    odd = talk.topic("odd")
    talk.until_ready("FindCoordinator", 1, {"key": odd, "key_type": 0})
    joined = talk.quietly("JoinGroup", 3, join_fields(odd, protocol_type="connect", protocols={"p": b"\xff"}))
    talk.quietly("SyncGroup", 2, sync_fields(odd, 1, joined["member_id"], {}))
    fields = {**delete, "group_id": odd}
    talk.ask("OffsetDelete", 0, fields, note="members of another protocol type")
