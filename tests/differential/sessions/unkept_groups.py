"""Share groups and streams groups where `share.version` and `streams.version` are 0: advertised, and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..conversation import Conversation

_MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAA"


def share_groups(talk: Conversation) -> None:
    """What members of share groups ask, and what is asked about them."""
    name = talk.create("a")
    topic_id = talk.topic_id(name)
    member = {"group_id": "g", "member_id": _MEMBER}
    shared = [{"topic_id": topic_id, "partitions": [{"partition_index": 0}, {"partition_index": 9}]}]
    talk.every("ShareGroupHeartbeat", {**member, "subscribed_topic_names": [name]}, note="a member joins")
    talk.every("ShareGroupHeartbeat", {}, note="of nobody")
    for note, ids in (("none", []), ("one", ["g"]), ("two, one twice", ["g", "h", "g"]), ("of no name", [""])):
        talk.every("ShareGroupDescribe", {"group_ids": ids}, note=note)
        groups = [{"group_id": each, "topics": None} for each in ids]
        talk.every("DescribeShareGroupOffsets", {"groups": groups}, note=note)
    for api in ("ShareFetch", "ShareAcknowledge"):
        talk.every(api, {**member, "topics": shared}, note="of two partitions")
        talk.every(api, {}, note="of nobody")
    partitions = [{"topic_name": name, "partitions": [{"partition_index": 0, "start_offset": 1}]}]
    for note, altered, deleted in (("none", [], []), ("of a topic", partitions, [{"topic_name": name}])):
        talk.every("AlterShareGroupOffsets", {"group_id": "g", "topics": altered}, note=note)
        talk.every("DeleteShareGroupOffsets", {"group_id": "g", "topics": deleted}, note=note)


def share_group_state(talk: Conversation) -> None:
    """What coordinators of share groups are asked about the state of partitions."""
    topic_id = talk.topic_id(talk.create("a"))
    partitions = [{"topic_id": topic_id, "partitions": [{"partition": 0}, {"partition": 1}]}]
    for api in ("Initialize", "Read", "Write", "Delete"):
        talk.every(f"{api}ShareGroupState", {"group_id": "g", "topics": partitions}, note="of two partitions")
    talk.every("ReadShareGroupStateSummary", {"group_id": "g", "topics": partitions}, note="of two partitions")


def streams_groups(talk: Conversation) -> None:
    """What members of streams groups ask, and what is asked about them."""
    talk.every("StreamsGroupHeartbeat", {"group_id": "g", "member_id": _MEMBER}, note="a member joins")
    for note, ids in (("none", []), ("one", ["g"]), ("two, one twice", ["g", "h", "g"])):
        talk.every("StreamsGroupDescribe", {"group_ids": ids}, note=note)
