"""Who leads, and in which epoch: what others answer to what only a leader may, before and after another one leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..batches import batch, records
from ..cluster_talk import NODES
from ..conversation import NO_ID

if TYPE_CHECKING:
    import uuid
    from collections.abc import Mapping

    from ..cluster_talk import ClusterTalk

_MIB = 1 << 20
_LED = [1, 2]
_WHO = {"1": "the leader", "2": "a follower", "3": "no replica"}
_EPOCHS = (-1, 0, 9)


def _filled(talk: ClusterTalk) -> tuple[str, uuid.UUID]:
    """Create a topic that broker 1 leads and 2 follows, with offsets 0-2, and wait until both show them."""
    name = talk.place("a", _LED)
    talk.produce(name, batch(records(b"a", b"b", b"c")))
    for node in ("1", "2"):
        fields = _fetch(name, NO_ID, max_wait_ms=100, min_bytes=1)
        talk.wait("Fetch", 11, fields, lambda answer: bool(_records(answer)), on=node)
    return name, talk.topic_id(name)


def _records(answer: Mapping[str, Any]) -> Any:
    return answer["responses"] and answer["responses"][0]["partitions"][0]["records"]


def _fetch(name: str, topic_id: uuid.UUID, *, epoch: int = -1, offset: int = 0, **more: Any) -> dict[str, Any]:
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": _MIB, "current_leader_epoch": epoch}
    topic = {"topic": name, "topic_id": topic_id, "partitions": [part]}
    return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": _MIB, "topics": [topic], **more}


def _produce(name: str, topic_id: uuid.UUID, acks: int = -1) -> dict[str, Any]:
    data = {"name": name, "topic_id": topic_id, "partition_data": [{"index": 0, "records": batch(records(b"x"))}]}
    return {"acks": acks, "timeout_ms": 5000, "topic_data": [data]}


def _list_offsets(name: str, timestamp: int, epoch: int = -1) -> dict[str, Any]:
    part = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": epoch}
    return {"replica_id": -1, "topics": [{"name": name, "partitions": [part]}]}


def _epoch_end(name: str, epoch: int, known: int = -1) -> dict[str, Any]:
    part = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": known}
    return {"replica_id": -1, "topics": [{"topic": name, "partitions": [part]}]}


def three_produce_elsewhere(talk: ClusterTalk) -> None:
    """Produce to who does not lead."""
    name, topic_id = _filled(talk)
    for node in ("2", "3"):
        for acks in (-1, 1):
            fields = _produce(name, topic_id, acks)
            talk.every("Produce", fields, note=f"to {_WHO[node]}, acks {acks}", on=node, versions=range(3, 14))


def three_fetch_elsewhere(talk: ClusterTalk) -> None:
    """Fetch from each, as a consumer and as a follower that is none."""
    name, topic_id = _filled(talk)
    for node in NODES:
        for epoch in _EPOCHS:
            fields = _fetch(name, topic_id, epoch=epoch)
            note = f"from {_WHO[node]}, in epoch {epoch}"
            talk.every("Fetch", fields, note=note, on=node, versions=(4, 8, 10, 11, 12, 13, 15, 16, 17, 18))
        beyond = _fetch(name, topic_id, offset=9)
        talk.every("Fetch", beyond, note=f"from {_WHO[node]}, beyond the end", on=node, versions=(4, 11, 12, 18))
        stranger = _fetch(name, topic_id, replica_id=3, replica_state={"replica_id": 3, "replica_epoch": -1})
        talk.every("Fetch", stranger, note=f"from {_WHO[node]}, as broker 3", on=node, versions=(4, 11, 14, 15, 18))
        rack = _fetch(name, topic_id, rack_id="r")
        talk.every("Fetch", rack, note=f"from {_WHO[node]}, of a rack", on=node, versions=(11, 18))


def three_offsets_elsewhere(talk: ClusterTalk) -> None:
    """ListOffsets and OffsetForLeaderEpoch of each."""
    name, _topic_id = _filled(talk)
    for node in NODES:
        for timestamp in (-1, -2, -3):
            fields = _list_offsets(name, timestamp)
            talk.every("ListOffsets", fields, note=f"{timestamp} of {_WHO[node]}", on=node, versions=(1, 4, 7, 11))
        for epoch in _EPOCHS:
            fields = _list_offsets(name, -1, epoch)
            talk.every("ListOffsets", fields, note=f"of {_WHO[node]}, epoch {epoch}", on=node, versions=(4, 7, 11))
            fields = _epoch_end(name, 0, epoch)
            note = f"of {_WHO[node]}, epoch {epoch}"
            talk.every("OffsetForLeaderEpoch", fields, note=note, on=node, versions=(2, 3, 4))


def three_changes_elsewhere(talk: ClusterTalk) -> None:
    """DeleteRecords, DescribeProducers, AlterReplicaLogDirs and DescribeLogDirs of who has no replica, or follows."""
    name, _topic_id = _filled(talk)
    deleted = {"topics": [{"name": name, "partitions": [{"partition_index": 0, "offset": 1}]}], "timeout_ms": 5000}
    producers = {"topics": [{"name": name, "partition_indexes": [0]}]}
    moved = {"dirs": [{"path": "/nowhere", "topics": [{"name": name, "partitions": [0]}]}]}
    shown = {"topics": [{"topic": name, "partitions": [0]}]}
    for node in ("2", "3"):
        talk.every("DeleteRecords", deleted, note=f"of {_WHO[node]}", on=node)
        talk.every("DescribeProducers", producers, note=f"of {_WHO[node]}", on=node)
        talk.every("AlterReplicaLogDirs", moved, note=f"of {_WHO[node]}", on=node)
    for version in (1, 4):
        talk.ask("DescribeLogDirs", version, shown, note="of no replica", on="3")


def three_next_leader(talk: ClusterTalk) -> None:
    """What clients of the former leader are told, in its epoch and in the next, by all three."""
    name, topic_id = _filled(talk)
    partitions = [{"partition_index": 0, "replicas": [2, 1]}]
    moved = {"timeout_ms": 10000, "topics": [{"name": name, "partitions": partitions}]}
    talk.ask("AlterPartitionReassignments", 1, moved, note="another order", on="1")
    elected = {"election_type": 0, "topic_partitions": [{"topic": name, "partitions": [0]}], "timeout_ms": 10000}
    talk.ask("ElectLeaders", 2, elected, note="the preferred one", on="1")
    talk.wait_placed(name, [2, 1])
    who = {"1": "the former leader", "2": "the leader", "3": "no replica"}
    for node in NODES:
        for epoch in (-1, 0, 1, 2):
            note = f"{who[node]}, epoch {epoch}"
            fields = _fetch(name, topic_id, epoch=epoch, offset=3)
            talk.every("Fetch", fields, note=note, on=node, versions=(10, 12, 17))
            talk.every("ListOffsets", _list_offsets(name, -2, epoch), note=note, on=node, versions=(4, 11))
            for wanted in (0, 1, 2):
                fields = _epoch_end(name, wanted, epoch)
                note_of = f"{note}, end of {wanted}"
                talk.every("OffsetForLeaderEpoch", fields, note=note_of, on=node, versions=(2, 4))
    for node in ("1", "3"):
        talk.every("Produce", _produce(name, topic_id), note=f"to {who[node]}", on=node, versions=(7, 10, 12, 13))
    talk.ask("Produce", 13, _produce(name, topic_id), note="to the leader", on="2")
    fields = _fetch(name, topic_id, offset=3, max_wait_ms=5000, min_bytes=1)
    talk.every("Fetch", fields, note="what it took, in its epoch", on="2", versions=(12, 17))
