"""FindCoordinator and groups of the classic protocol: whole lives, and each wrong turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import codec
from ..group_talk import (
    SUBSCRIPTION,
    UNKNOWN_MEMBER,
    coordinated,
    describe,
    join,
    join_fields,
    stable,
    subscription,
    sync_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..conversation import Conversation

_REQUIRES_ID: Final = 79


def find_coordinator(talk: Conversation) -> None:
    """FindCoordinator of every type of key."""
    (group,) = coordinated(talk, "g")
    talk.until_ready("FindCoordinator", 1, {"key": talk.topic("t"), "key_type": 1})
    for kind in (0, 1, 3, -1, 7):
        fields = {"key": group, "coordinator_keys": [group], "key_type": kind}
        talk.every("FindCoordinator", fields, note=f"key type {kind}")
    for key in ("", "\0", "polygenelubricants"):
        fields = {"key": key, "coordinator_keys": [key], "key_type": 0}
        talk.every("FindCoordinator", fields, note=f"group {key!r}")
        talk.every("FindCoordinator", {**fields, "key_type": 1}, note=f"transactional id {key!r}", versions=(2, 6))
    for kind in (0, 1):
        keys = [group, talk.topic("other"), group, ""]
        talk.every("FindCoordinator", {"coordinator_keys": keys, "key_type": kind}, note="keys", versions=(4, 5, 6))
    talk.every("FindCoordinator", {"coordinator_keys": [], "key_type": 0}, note="no keys", versions=(4, 6))


def classic_life(talk: Conversation) -> None:
    """A group of one member, from its first join to its end, in every version."""
    for version in codec.versions("JoinGroup"):
        (group,) = coordinated(talk, f"g{version}")
        first = talk.ask("JoinGroup", version, join_fields(group), note="first join")
        if first["error_code"] == _REQUIRES_ID:
            first = talk.ask("JoinGroup", version, join_fields(group, first["member_id"]), note="join with the id")
        member = first["member_id"]
        describe(talk, group, "before the leader's assignment")
        heartbeat = {"group_id": group, "generation_id": 1, "member_id": member}
        talk.ask("Heartbeat", min(version, 4), heartbeat, note="before the assignment")
        sync = sync_fields(group, 1, member, {member: b"what the leader says"})
        talk.ask("SyncGroup", min(version, 5), sync, note="assignment")
        talk.ask("SyncGroup", min(version, 5), sync_fields(group, 1, member, {}), note="assignment, asked again")
        talk.ask("Heartbeat", min(version, 4), heartbeat, note="stable")
        describe(talk, group, "stable", (0, 3, 4, 5, 6))
        again = talk.ask("JoinGroup", version, join_fields(group, member), note="the leader joins again")
        talk.ask("Heartbeat", min(version, 4), heartbeat, note="generation before")
        generation = again["generation_id"]
        sync = sync_fields(group, generation, member, {})
        talk.ask("SyncGroup", min(version, 5), sync, note="no assignment")
        members = [{"member_id": member}]
        leave = {"group_id": group, "member_id": member, "members": members}
        talk.ask("LeaveGroup", min(version, 5), leave, note="leave")
        talk.ask("LeaveGroup", min(version, 5), leave, note="leave once more")
        talk.ask("Heartbeat", min(version, 4), heartbeat, note="after leaving")
        describe(talk, group, "empty", (0, 5, 6))


def _two(talk: Conversation, group: str, **more: Any) -> tuple[str, str, int]:
    """Make a stable group of two members, noted; return leader, follower and generation."""
    leader = stable(talk, group, on="a", **more)
    follower = talk.quietly("JoinGroup", 5, join_fields(group, **more), on="b")["member_id"]
    joining = talk.ask_later("JoinGroup", 5, join_fields(group, follower, **more), note="the second joins", on="b")
    _until_rebalance(talk, group, leader)
    led = talk.ask("JoinGroup", 5, join_fields(group, leader, **more), note="the first joins again", on="a")
    joining()
    generation: int = led["generation_id"]
    syncing = talk.ask_later(
        "SyncGroup", 3, sync_fields(group, generation, follower, {}), note="the follower's", on="b"
    )
    assignments = {leader: b"leader's", follower: b"follower's"}
    talk.ask("SyncGroup", 3, sync_fields(group, generation, leader, assignments), note="the leader's", on="a")
    syncing()
    return leader, follower, generation


def _until_rebalance(talk: Conversation, group: str, member: str, generation: int = 1) -> None:
    """Wait until a member hears of the rebalance."""
    fields = {"group_id": group, "generation_id": generation, "member_id": member}
    talk.until("Heartbeat", 3, fields, lambda answer: bool(answer["error_code"]))


def classic_two_members(talk: Conversation) -> None:
    """Two members: joins are answered together, the leader assigns, and one leaves."""
    groups = coordinated(talk, "g", "vote", "leaves")
    leader, follower, generation = _two(talk, groups[0])
    describe(talk, groups[0], "two members", (0, 5))
    for member, who in ((leader, "leader"), (follower, "follower")):
        fields = {"group_id": groups[0], "generation_id": generation, "member_id": member}
        talk.ask("Heartbeat", 3, fields, note=f"{who}, stable", on="a")
    talk.ask("JoinGroup", 5, join_fields(groups[0], follower), note="the follower joins again, unchanged", on="b")
    changed = join_fields(groups[0], follower, protocols={"range": subscription("x")})
    joining = talk.ask_later("JoinGroup", 5, changed, note="the follower joins again, changed", on="b")
    _until_rebalance(talk, groups[0], leader, generation)
    fields = {"group_id": groups[0], "generation_id": generation, "member_id": leader}
    talk.ask("Heartbeat", 3, fields, note="rebalancing", on="a")
    talk.ask("SyncGroup", 3, sync_fields(groups[0], generation, leader, {}), note="rebalancing", on="a")
    describe(talk, groups[0], "rebalancing")
    commit = {"group_id": groups[0], "generation_id_or_member_epoch": generation, "member_id": leader, "topics": []}
    talk.ask("OffsetCommit", 7, commit, note="rebalancing", on="a")
    talk.ask("JoinGroup", 5, join_fields(groups[0], leader), note="the leader follows", on="a")
    joining()
    both = {"roundrobin": SUBSCRIPTION, "range": SUBSCRIPTION}
    _two(talk, groups[1], protocols=both)
    third = {"range": SUBSCRIPTION}
    talk.ask("JoinGroup", 3, join_fields(groups[1], protocols={"odd": b""}), note="no common protocol", on="c")
    talk.ask(
        "JoinGroup", 3, join_fields(groups[1], protocols=third, protocol_type="connect"), note="other type", on="c"
    )
    leader, follower, generation = _two(talk, groups[2])
    members = [{"member_id": follower}]
    talk.ask("LeaveGroup", 3, {"group_id": groups[2], "members": members}, note="the follower leaves", on="b")
    fields = {"group_id": groups[2], "generation_id": generation, "member_id": leader}
    talk.ask("Heartbeat", 3, fields, note="the leader hears of it", on="a")
    talk.ask("JoinGroup", 5, join_fields(groups[2], leader), note="the leader is alone", on="a")
    describe(talk, groups[2], "alone again")


def classic_left_behind(talk: Conversation) -> None:
    """A member that does not join again in time is out; one with an instance id is kept."""
    (group,) = coordinated(talk, "g")
    soon: dict[str, Any] = {"rebalance_timeout_ms": 300}
    first = stable(talk, group, **soon)
    talk.ask("JoinGroup", 5, join_fields(group, group_instance_id="one", **soon), note="a static member, in time")
    talk.ask("Heartbeat", 3, {"group_id": group, "generation_id": 2, "member_id": first}, note="who was left behind")
    talk.ask("JoinGroup", 3, join_fields(group, **soon), note="a dynamic one, in time")
    describe(talk, group, "the static one is kept")


def classic_refused(talk: Conversation) -> None:
    """Each wrong turn of a group of the classic protocol."""
    group, missing, empty = coordinated(talk, "g", "missing", "empty")
    _refused_joins(talk, group, missing)
    member = stable(talk, group)
    _refused_of_members(talk, group, missing, member)
    talk.every("DescribeGroups", {"groups": [missing, "", group]}, note="missing, empty name, found", on="describe")
    talk.every("DescribeGroups", {"groups": []}, note="none", versions=(0, 6))
    fields = {"groups": [group], "include_authorized_operations": True}
    talk.every("DescribeGroups", fields, note="authorized operations", versions=(3, 6))
    talk.quietly("LeaveGroup", 0, {"group_id": empty, "member_id": stable(talk, empty)})
    for state in ("join", "sync", "heartbeat"):
        calls: dict[str, Callable[[], Any]] = {
            "join": lambda: talk.ask("JoinGroup", 5, join_fields(empty, UNKNOWN_MEMBER), note="unknown, empty group"),
            "sync": lambda: talk.ask("SyncGroup", 3, sync_fields(empty, 1, UNKNOWN_MEMBER, {}), note="empty group"),
            "heartbeat": lambda: talk.ask(
                "Heartbeat", 3, {"group_id": empty, "generation_id": 1, "member_id": "x"}, note="empty group"
            ),
        }
        calls[state]()


def _refused_joins(talk: Conversation, group: str, missing: str) -> None:
    for session_ms in (0, 5999, 6000, 1_800_001, -1):
        fields = join_fields(group, session_timeout_ms=session_ms)
        talk.every("JoinGroup", fields, note=f"session {session_ms} ms", versions=(4, 9))
    for note, fields in {
        "empty group id": join_fields(""),
        "unknown member, unknown group": join_fields(missing, UNKNOWN_MEMBER),
    }.items():
        talk.every("JoinGroup", fields, note=note, versions=(2, 5, 9))
    wrongs: dict[str, dict[str, Any]] = {
        "no protocols": {"protocols": {}},
        "no protocol type": {"protocol_type": ""},
        "empty instance id": {"group_instance_id": ""},
        "bad instance id": {"group_instance_id": "a b/c"},
        "dots as instance id": {"group_instance_id": ".."},
        "long instance id": {"group_instance_id": "x" * 250},
    }
    for number, (note, wrong) in enumerate(wrongs.items()):
        for version in (2, 5, 9):
            # A group of its own: a second member would wait for the first one, which does not join again.
            (new,) = coordinated(talk, f"wrong{number}-{version}")
            talk.ask("JoinGroup", version, join_fields(new, **wrong), note=note)


def _refused_of_members(talk: Conversation, group: str, missing: str, member: str) -> None:
    for note, where, generation, who in (
        ("unknown group", missing, 1, member),
        ("unknown member", group, 1, UNKNOWN_MEMBER),
        ("no member", group, 1, ""),
        ("empty group id", "", 1, member),
        ("older generation", group, 0, member),
        ("newer generation", group, 2, member),
        ("generation -1", group, -1, member),
    ):
        heartbeat = {"group_id": where, "generation_id": generation, "member_id": who}
        talk.every("Heartbeat", heartbeat, note=note)
        talk.every("SyncGroup", sync_fields(where, generation, who, {}), note=note)
        partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        commit = {
            "group_id": where,
            "generation_id_or_member_epoch": generation,
            "member_id": who,
            "topics": [{"name": "t", "partitions": [partition]}],
        }
        talk.every("OffsetCommit", commit, note=note, versions=(2, 5, 6, 8, 9))
        leave = {"group_id": where, "member_id": who, "members": [{"member_id": who}]}
        if who != member or where != group:
            talk.every("LeaveGroup", leave, note=note)
    talk.every("LeaveGroup", {"group_id": group, "members": []}, note="nobody leaves", versions=(3, 5))
    two = [{"member_id": UNKNOWN_MEMBER}, {"member_id": "", "group_instance_id": "unknown"}]
    talk.every("LeaveGroup", {"group_id": group, "members": two}, note="unknown ones leave", versions=(3, 5))
    for name in ("protocol_type", "protocol_name"):
        sync = sync_fields(group, 1, member, {}, **{name: "other"})
        talk.every("SyncGroup", sync, note=f"another {name}", versions=(4, 5))
        sync = sync_fields(group, 1, member, {}, **{name: None})
        talk.every("SyncGroup", sync, note=f"no {name}", versions=(4, 5))
    talk.ask("SyncGroup", 5, sync_fields(group, 1, member, {UNKNOWN_MEMBER: b"x"}), note="assigned to a stranger")


def static_members(talk: Conversation) -> None:
    """Members with an instance id: they come back, are replaced, fenced, and leave by their name."""
    group, other = coordinated(talk, "g", "changed")
    static = {"group_instance_id": "one"}
    first = talk.ask("JoinGroup", 5, join_fields(group, **static), note="first join")["member_id"]
    sync = sync_fields(group, 1, first, {first: b"mine"}, **static)
    talk.ask("SyncGroup", 3, sync, note="assignment")
    describe(talk, group, "one static member", (0, 4, 5))
    known = talk.ask("JoinGroup", 5, join_fields(group, first, **static), note="again with its id")
    talk.ask("SyncGroup", 3, {**sync, "generation_id": known["generation_id"]}, note="assignment again")
    talk.ask("JoinGroup", 9, join_fields(group, **static), note="comes back without an id")
    back = talk.ask("JoinGroup", 5, join_fields(group, **static), note="comes back without an id")
    second, generation = back["member_id"], back["generation_id"]
    sync = sync_fields(group, generation, second, {}, **static)
    talk.ask("SyncGroup", 3, sync, note="of the new id")
    for api, version, fields in (
        ("Heartbeat", 3, {"group_id": group, "generation_id": generation, "member_id": first, **static}),
        ("SyncGroup", 3, sync_fields(group, generation, first, {}, **static)),
        ("JoinGroup", 5, join_fields(group, first, **static)),
        (
            "OffsetCommit",
            7,
            {
                "group_id": group,
                "generation_id_or_member_epoch": generation,
                "member_id": first,
                "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1}]}],
                **static,
            },
        ),
        ("LeaveGroup", 3, {"group_id": group, "members": [{"member_id": first, **static}]}),
    ):
        talk.ask(api, version, fields, note="of the id before")
    heartbeat = {"group_id": group, "generation_id": generation, "member_id": second}
    talk.ask("Heartbeat", 3, {**heartbeat, **static}, note="of the new id")
    talk.ask("Heartbeat", 3, heartbeat, note="without its instance id")
    talk.ask("Heartbeat", 3, {**heartbeat, "group_instance_id": "other"}, note="of an unknown instance id")
    describe(talk, group, "replaced", (5,))
    leave = {"group_id": group, "members": [{"member_id": "", **static}, {"member_id": "", **static}]}
    talk.ask("LeaveGroup", 5, leave, note="by its instance id, twice")
    describe(talk, group, "left")
    stable(talk, other, version=5, **static)
    moved = join_fields(other, protocols={"range": subscription("x")}, **static)
    talk.ask("JoinGroup", 5, moved, note="comes back with another subscription")
    describe(talk, other, "rebalanced")


def list_and_delete_groups(talk: Conversation) -> None:
    """ListGroups with its filters, DeleteGroups."""
    busy, empty, new, none = coordinated(talk, "busy", "empty", "new", "none")
    member = stable(talk, busy)
    gone = stable(talk, empty)
    talk.quietly("LeaveGroup", 0, {"group_id": empty, "member_id": gone})
    join(talk, new)
    own = {"busy", "empty", "new"}

    def listed(version: int, note: str, **fields: Any) -> None:
        answer = talk.quietly("ListGroups", version, fields)
        answer["groups"] = [group for group in answer["groups"] if group["group_id"].startswith(f"{talk.name}-")]
        talk.note_answer("ListGroups", version, note, answer)

    for version in codec.versions("ListGroups"):
        listed(version, "all")
    for states in (["Stable"], ["stable", "EMPTY"], ["CompletingRebalance"], ["nonsense"], ["Stable", "nonsense"]):
        for version in (4, 5):
            listed(version, f"states {states}", states_filter=states)
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"], ["consumer", "classic"]):
        listed(5, f"types {types}", types_filter=types)
    for name in [*sorted(own), "none"]:
        talk.every("DeleteGroups", {"groups_names": [talk.topic(name)]}, note=name)
    talk.every("DeleteGroups", {"groups_names": []}, note="nothing")
    talk.ask("DeleteGroups", 2, {"groups_names": ["", none, busy]}, note="several")
    talk.ask("LeaveGroup", 2, {"group_id": busy, "member_id": member}, note="the last member leaves")
    talk.ask("DeleteGroups", 2, {"groups_names": [busy, busy]}, note="one twice")
    describe(talk, busy, "deleted", (5, 6))
