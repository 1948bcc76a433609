"""Replicas that come and go, leaders that are chosen, topics that are placed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..batches import batch, record
from ..cluster_talk import NODES
from ..conversation import NO_ID, SetupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..cluster_talk import ClusterTalk

_LARGE = 900_000
"""Of two such batches a fetch brings one."""
_BATCHES = 8


def _moves(name: str, *partitions: tuple[int, Sequence[int] | None], **more: Any) -> dict[str, Any]:
    moved = [{"partition_index": index, "replicas": replicas} for index, replicas in partitions]
    return {"timeout_ms": 10000, "topics": [{"name": name, "partitions": moved}], **more}


def _list(talk: ClusterTalk, note: str, name: str, *, on: str) -> None:
    fields = {"timeout_ms": 10000, "topics": [{"name": name, "partition_indexes": [0]}]}
    talk.ask("ListPartitionReassignments", 0, fields, note=note, on=on)


def _show(talk: ClusterTalk, note: str, name: str, *, on: str) -> None:
    """Note down who has a topic's partitions; the order of the in-sync set is whose who came when."""
    answer = talk.quietly("Metadata", 9, {"topics": [{"name": name}], "allow_auto_topic_creation": False}, on=on)
    for partition in answer["topics"][0]["partitions"]:
        partition["isr_nodes"].sort()
    talk.note_answer("Metadata", 9, note, answer)


def three_reassign_refused(talk: ClusterTalk) -> None:
    """AlterPartitionReassignments that change nothing."""
    name = talk.place("a", [1, 2], [2, 3])

    def ask(note: str, topic: str, *partitions: tuple[int, Sequence[int] | None], **more: Any) -> None:
        talk.every("AlterPartitionReassignments", _moves(topic, *partitions, **more), note=note, on="3")

    ask("an unknown broker", name, (0, [1, 9]))
    ask("one twice", name, (0, [1, 1]))
    ask("nobody", name, (0, []))
    ask("a negative one", name, (0, [-1, 1]))
    ask("an unknown partition", name, (7, [1, 2]))
    ask("an unknown topic", talk.topic("none"), (0, [1, 2]))
    ask("to cancel what is not", name, (0, None), (1, None))
    ask("a good one and a bad one", name, (0, [1, 2]), (1, [9]))
    talk.ask(
        "AlterPartitionReassignments",
        1,
        _moves(name, (0, [1, 2, 3]), (1, [2]), allow_replication_factor_change=False),
        note="as many as there were, and they are not",
        on="3",
    )
    _list(talk, "nothing moves", name, on="2")


def three_reassign(talk: ClusterTalk) -> None:
    """AlterPartitionReassignments that grow, move and shrink, each until it is done."""
    name = talk.place("a", [1, 2])
    steps: Mapping[str, Sequence[int]] = {
        "as it is": [1, 2],
        "one more": [1, 2, 3],
        "one less": [1, 3],
        "another follower": [1, 2],
        "another leader": [2, 3],
        "all others": [1],
    }
    for note, replicas in steps.items():
        talk.ask("AlterPartitionReassignments", 1, _moves(name, (0, replicas)), note=note, on="2")
        talk.wait_placed(name, replicas)
        _list(talk, f"{note}, done", name, on="1")
        _show(talk, f"{note}, done", name, on="3")


def _throttle(talk: ClusterTalk, name: str, operation: int) -> None:
    """Hold back, or let go (1), what broker 3 copies of a topic."""

    def config(key: str, value: str) -> dict[str, Any]:
        return {"name": key, "config_operation": operation, "value": None if operation else value}

    wanted = (
        (2, name, config("follower.replication.throttled.replicas", "*")),
        (4, "3", config("follower.replication.throttled.rate", "1")),
    )
    for kind, resource, value in wanted:
        resources = [{"resource_type": kind, "resource_name": resource, "configs": [value]}]
        answer = talk.quietly("IncrementalAlterConfigs", 1, {"resources": resources}, on="3")
        if answer["responses"][0]["error_code"]:
            raise SetupError(f"not throttled: {answer}")


def three_reassign_under_way(talk: ClusterTalk) -> None:
    """A move that is held back: what is told of it, changed, and cancelled."""
    name = talk.place("a", [1, 2])
    talk.produce(name, *(batch([record(b"0" * _LARGE)]) for _ in range(_BATCHES)))
    _throttle(talk, name, 0)
    unknown = talk.topic("none")

    def all_tell(note: str) -> None:
        for node in NODES:
            talk.wait_told(name, 1, lambda partition: partition["replica_nodes"] == told, node)
            _list(talk, f"{note}, broker {node}", name, on=node)
            _show(talk, f"{note}, broker {node}", name, on=node)

    told = [2, 3, 1]
    talk.ask("AlterPartitionReassignments", 1, _moves(name, (0, [2, 3])), note="a move", on="2")
    all_tell("under way")
    talk.ask("AlterPartitionReassignments", 1, _moves(name, (0, [2, 3])), note="the same again", on="1")
    fields = {"timeout_ms": 10000, "topics": [{"name": name, "partition_indexes": [0, 9]}]}
    talk.ask("ListPartitionReassignments", 0, fields, note="an unknown partition, too", on="1")
    fields = {"timeout_ms": 10000, "topics": [{"name": unknown, "partition_indexes": [0]}]}
    talk.ask("ListPartitionReassignments", 0, fields, note="an unknown topic", on="1")
    talk.ask("DescribeTopicPartitions", 0, {"topics": [{"name": name}]}, note="under way", on="3")
    told = [1, 3, 2]
    talk.ask("AlterPartitionReassignments", 1, _moves(name, (0, [1, 3])), note="another goal", on="3")
    all_tell("to another goal")
    told = [1, 2]
    talk.ask("AlterPartitionReassignments", 0, _moves(name, (0, None)), note="cancelled", on="2")
    all_tell("cancelled")
    talk.ask("AlterPartitionReassignments", 0, _moves(name, (0, None)), note="cancelled twice", on="2")
    _throttle(talk, name, 1)


def three_elect_leaders(talk: ClusterTalk) -> None:
    """ElectLeaders where another one is preferred."""
    name = talk.place("a", [1, 2, 3], [2, 3, 1])

    def ask(note: str, version: int, *partitions: int, kind: int = 0) -> None:
        asked = [{"topic": name, "partitions": list(partitions)}]
        fields = {"election_type": kind, "topic_partitions": asked, "timeout_ms": 10000}
        talk.ask("ElectLeaders", version, fields, note=note, on="3")

    for version, order in ((0, [2, 1, 3]), (1, [3, 1, 2]), (2, [1, 3, 2])):
        note = f"{order} is the order"
        talk.ask("AlterPartitionReassignments", 0, _moves(name, (0, order)), note=note, on="2")
        ask("the preferred one", version, 0, 1)
        ask("again", version, 0)
        ask("unclean", version, 0, kind=1)
        ask("an unknown partition", version, 9)
        talk.wait_placed(name, order, [2, 3, 1])
        _show(talk, note, name, on="3")


def three_topics_by_hand(talk: ClusterTalk) -> None:
    """CreateTopics and CreatePartitions that say who has which replica."""

    def placed(*replicas: Sequence[int]) -> list[dict[str, Any]]:
        return [{"partition_index": index, "broker_ids": list(ids)} for index, ids in enumerate(replicas)]

    def create(note: str, name: str, **more: Any) -> None:
        topic = {"name": talk.topic(name), "num_partitions": -1, "replication_factor": -1, **more}
        fields = {"topics": [topic], "timeout_ms": 10000, "validate_only": False}
        talk.ask("CreateTopics", 7, fields, note=note, on="2")

    create("unequal", "a", assignments=placed([1, 2], [1]))
    create("one twice", "a", assignments=placed([1, 1]))
    create("an unknown broker", "a", assignments=placed([1, 9]))
    create("four replicas", "a", num_partitions=1, replication_factor=4)
    create("good", "a", assignments=placed([3, 1], [1, 2]))
    create("there already", "a", assignments=placed([3, 1]))
    name = talk.topic("a")
    talk.wait_placed(name, [3, 1], [1, 2])

    def grow(note: str, count: int, *replicas: Sequence[int]) -> None:
        assignments = [{"broker_ids": list(ids)} for ids in replicas] or None
        fields = {"topics": [{"name": name, "count": count, "assignments": assignments}], "timeout_ms": 10000}
        talk.ask("CreatePartitions", 3, fields, note=note, on="1")

    grow("fewer", 1)
    grow("as many", 2)
    grow("too few places", 4, [1, 2])
    grow("another number of replicas", 3, [1])
    grow("an unknown broker", 3, [1, 9])
    grow("one twice", 3, [2, 2])
    grow("good", 3, [2, 3])
    talk.wait_placed(name, [3, 1], [1, 2], [2, 3])
    _show(talk, "grown", name, on="3")
    by_id = {"topics": [{"name": None, "topic_id": talk.topic_id(name)}], "timeout_ms": 10000}
    talk.ask("DeleteTopics", 6, by_id, note="by id", on="3")
    by_name = {"topics": [{"name": name, "topic_id": NO_ID}], "timeout_ms": 10000}
    talk.ask("DeleteTopics", 6, by_name, note="once more, by name", on="1")
