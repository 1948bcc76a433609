"""What a cluster of one broker answers about quorum, features, elections and reassignments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..conversation import Conversation


def describe_quorum(talk: Conversation) -> None:
    """DescribeQuorum; offsets and epochs are the cluster's own."""

    def ask(note: str, *topics: tuple[str, Sequence[int]], versions: Sequence[int] = (0, 1, 2)) -> None:
        asked = [
            {"topic_name": name, "partitions": [{"partition_index": index} for index in indexes]}
            for name, indexes in topics
        ]
        for version in versions:
            answer = talk.quietly("DescribeQuorum", version, {"topics": asked})
            for topic in answer["topics"]:
                for partition in topic["partitions"]:
                    _hide_positions(partition)
            for node in answer.get("nodes", ()):
                for listener in node["listeners"]:
                    listener["port"] = "<port>"
            talk.note_answer("DescribeQuorum", version, note, answer)

    ask("the metadata topic", ("__cluster_metadata", [0]))
    ask("partition 1 of it", ("__cluster_metadata", [1]))
    ask("partitions 0 and 1 of it", ("__cluster_metadata", [0, 1]), versions=(2,))
    ask("another topic", (talk.create("a"), [0]))
    ask("it and another topic", ("__cluster_metadata", [0]), (talk.topic("a"), [0]), versions=(2,))
    ask("an unknown topic", (talk.topic("none"), [0]), versions=(2,))
    ask("no topics", versions=(0, 2))
    ask("no partitions", ("__cluster_metadata", []), versions=(0, 2))


def _hide_positions(partition: dict[str, Any]) -> None:
    for name in ("leader_epoch", "high_watermark"):
        if partition["error_code"] == 0:
            partition[name] = "<position>"
    for replica in [*partition["current_voters"], *partition["observers"]]:
        replica["log_end_offset"] = "<position>" if replica["log_end_offset"] > 0 else replica["log_end_offset"]
        if "replica_directory_id" in replica:
            replica["replica_directory_id"] = "<directory id>"


def change_voters(talk: Conversation) -> None:
    """AddRaftVoter and RemoveRaftVoter of a quorum whose voters are fixed: all are refused, for some reason."""
    listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 1}
    voter = {"cluster_id": None, "voter_id": 7, "voter_directory_id": UUID(int=7)}
    asked: Sequence[tuple[str, Mapping[str, Any]]] = (
        ("a voter", voter),
        ("no id of a voter", {**voter, "voter_id": -1}),
        ("no directory", {**voter, "voter_directory_id": UUID(int=0)}),
    )
    for note, fields in asked:
        talk.every("AddRaftVoter", {**fields, "timeout_ms": 10_000, "listeners": [listener]}, note=note)
        talk.every("RemoveRaftVoter", fields, note=note)
    for api in ("AddRaftVoter", "RemoveRaftVoter"):
        patience = {"timeout_ms": 10_000} if api == "AddRaftVoter" else {}
        answer = talk.quietly(api, 0, {**voter, **patience, "cluster_id": "another"})
        del answer["error_message"]  # it names the cluster
        talk.note_answer(api, 0, "another cluster's voter", answer)


def update_features(talk: Conversation) -> None:
    """UpdateFeatures that changes nothing."""

    def ask(note: str, *updates: Mapping[str, Any], versions: Sequence[int] = (0, 1, 2)) -> None:
        fields = {"timeout_ms": 10000, "feature_updates": list(updates), "validate_only": True}
        talk.every("UpdateFeatures", fields, note=note, versions=[v for v in versions if v])
        if 0 in versions:
            talk.ask("UpdateFeatures", 0, fields, note=note)

    def level(name: str, to: int, how: int = 1) -> dict[str, Any]:
        return {"feature": name, "max_version_level": to, "upgrade_type": how, "allow_downgrade": how != 1}

    client = {"client_software_name": "diff", "client_software_version": "1"}
    finalized = talk.quietly("ApiVersions", 4, client)["finalized_features"]
    current = next(feature["max_version_level"] for feature in finalized if feature["name"] == "metadata.version")
    ask("unknown feature", level("no.such.feature", 1))
    ask("unknown feature to 0", level("no.such.feature", 0, 2))
    ask("negative level", level("metadata.version", -1))
    ask("metadata.version too high", level("metadata.version", 99))
    ask("metadata.version too low", level("metadata.version", 1, 2))
    ask("no name", level("", 1))
    ask("no updates")
    ask("one twice", level("metadata.version", current), level("metadata.version", current))
    ask("as it is", level("metadata.version", current), versions=(1, 2))
    ask("down without leave", level("metadata.version", current - 1), versions=(1, 2))
    ask("upgrade type 0", level("metadata.version", current, 0), versions=(1, 2))
    ask("upgrade type 9", level("metadata.version", current, 9), versions=(1, 2))
    ask("a good one and a bad one", level("metadata.version", current), level("no.such.feature", 1), versions=(1, 2))


def elect_leaders(talk: Conversation) -> None:
    """ElectLeaders of a cluster where every leader stands."""
    name = talk.create("a", partitions=2)

    def ask(
        note: str, topics: Sequence[tuple[str, Sequence[int]]] | None, kind: int = 0, timeout_ms: int = 10000
    ) -> None:
        asked = None if topics is None else [{"topic": t, "partitions": list(p)} for t, p in topics]
        fields = {"election_type": kind, "topic_partitions": asked, "timeout_ms": timeout_ms}
        talk.every("ElectLeaders", fields, note=note, own="replica_election_results")

    ask("preferred", [(name, [0, 1])])
    ask("unclean", [(name, [0, 1])], 1)
    ask("unknown partition", [(name, [9])])
    ask("no partitions", [(name, [])])
    ask("no topics", [])
    for kind in (2, -1):
        ask(f"no topics, election type {kind}", [], kind)
        ask(f"no partitions, election type {kind}", [(name, [])], kind)
    for timeout_ms in (0, -1):
        ask(f"preferred, timeout {timeout_ms}", [(name, [0, 1])], timeout_ms=timeout_ms)
        ask(f"no topics, timeout {timeout_ms}", [], timeout_ms=timeout_ms)
    for version in (1, 2):
        unknown = [{"topic": "none", "partitions": [0]}]
        fields = {"election_type": 0, "topic_partitions": unknown, "timeout_ms": 10000}
        talk.ask("ElectLeaders", version, fields, note="unknown topic")
        for kind in (2, -1):
            fields = {**fields, "election_type": kind}
            talk.ask("ElectLeaders", version, fields, note=f"election type {kind}")


def reassignments(talk: Conversation) -> None:
    """AlterPartitionReassignments and ListPartitionReassignments with one broker."""
    name = talk.create("a", partitions=2)

    def ask(note: str, topic: str, *partitions: tuple[int, Sequence[int] | None], **more: Any) -> None:
        moved = [{"partition_index": index, "replicas": replicas} for index, replicas in partitions]
        fields = {"timeout_ms": 10000, "topics": [{"name": topic, "partitions": moved}], **more}
        talk.every("AlterPartitionReassignments", fields, note=note)

    ask("where they are", name, (0, [1]), (1, [1]))
    ask("cancel what is not", name, (0, None))
    ask("an unknown broker", name, (0, [2]))
    ask("one broker more", name, (0, [1, 2]))
    ask("one broker more, counts may not change", name, (0, [1, 2]), allow_replication_factor_change=False)
    ask("one broker twice", name, (0, [1, 1]))
    ask("nobody", name, (0, []))
    ask("a negative broker", name, (0, [-1]))
    ask("unknown partition", name, (9, [1]))
    ask("unknown topic", talk.topic("none"), (0, [1]))
    ask("good and bad", name, (0, [1]), (1, [2]))
    ask("no partitions", name)
    ask("one partition twice", name, (0, [1]), (0, [1]))
    talk.every("AlterPartitionReassignments", {"timeout_ms": 10000, "topics": []}, note="no topics")
    for timeout_ms in (0, -1):
        ask(f"where they are, timeout {timeout_ms}", name, (0, [1]), timeout_ms=timeout_ms)
        ask(f"an unknown broker, timeout {timeout_ms}", name, (0, [2]), timeout_ms=timeout_ms)
        nothing: dict[str, Any] = {"timeout_ms": timeout_ms, "topics": []}
        talk.every("AlterPartitionReassignments", nothing, note=f"no topics, timeout {timeout_ms}")
    for what, topics in (
        ("all", None),
        ("none", []),
        ("two partitions", [{"name": name, "partition_indexes": [0, 1]}]),
        ("unknown partition", [{"name": name, "partition_indexes": [9]}]),
        ("unknown topic", [{"name": talk.topic("none"), "partition_indexes": [0]}]),
    ):
        fields = {"timeout_ms": 10000, "topics": topics}
        talk.every("ListPartitionReassignments", fields, note=f"list {what}")


def unregister_broker(talk: Conversation) -> None:
    """UnregisterBroker of brokers that are not there; of itself nobody asks a broker."""
    for broker in (2, -1, 0, 2**31 - 1):
        talk.every("UnregisterBroker", {"broker_id": broker}, note=f"broker {broker}")
