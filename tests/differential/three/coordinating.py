"""Who coordinates a group or a transactional id, and what those answer who do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..batches import batch, records
from ..cluster_talk import NODES
from ..conversation import NO_ID
from ..group_talk import join_fields, subscription, sync_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..cluster_talk import ClusterTalk

_GROUP, _TRANSACTION = 0, 1


def three_find_coordinator(talk: ClusterTalk) -> None:
    """FindCoordinator of each broker: all name the same one."""
    for key_type in (_GROUP, _TRANSACTION):
        key = talk.topic("key")
        found = talk.coordinator(key, key_type)
        other = talk.topic("other")
        talk.coordinator(other, key_type)
        for node in NODES:
            for version in range(7):
                if version == 0 and key_type == _TRANSACTION:
                    continue
                fields = {"key": key, "key_type": key_type, "coordinator_keys": [key, other]}
                answer = talk.quietly("FindCoordinator", version, fields, on=node)
                for each in (answer, *answer.get("coordinators", ())):
                    _hide(each, found)
                talk.note_answer("FindCoordinator", version, f"type {key_type}, broker {node}", answer)


def _hide(told: dict[str, Any], found: str) -> None:
    """Name the coordinator: where a partition of an internal topic is led is chance."""
    if told.get("node_id") in {int(node) for node in NODES}:
        is_of_other = str(told.get("key", "")).endswith("other")
        told["node_id"] = "<who has it>" if is_of_other or str(told["node_id"]) == found else "<another one>"
        told["port"] = "<port>"


def _elsewhere(talk: ClusterTalk, key: str, key_type: int) -> str:
    """Return a broker that does not coordinate a key."""
    found = talk.coordinator(key, key_type)
    return next(node for node in NODES if node != found)


def three_groups_elsewhere(talk: ClusterTalk) -> None:
    """What is asked of a group's coordinator, asked of another broker."""
    group = talk.topic("group")
    name = talk.place("a", [1])
    on = _elsewhere(talk, group, _GROUP)
    member = {"group_id": group, "member_id": "m"}
    committed = [{"name": name, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]
    fetched = [{"name": name, "partition_indexes": [0]}]
    asked: Mapping[str, tuple[range, Mapping[str, Any]]] = {
        "JoinGroup": (range(10), join_fields(group, protocols={"range": subscription(name)})),
        "SyncGroup": (range(6), sync_fields(group, 1, "m", {"m": b""})),
        "Heartbeat": (range(5), {**member, "generation_id": 1}),
        "LeaveGroup": (range(6), {"group_id": group, "member_id": "m", "members": [{"member_id": "m"}]}),
        "DescribeGroups": (range(7), {"groups": [group]}),
        "DeleteGroups": (range(3), {"groups_names": [group]}),
        "OffsetDelete": (
            range(1),
            {"group_id": group, "topics": [{"name": name, "partitions": [{"partition_index": 0}]}]},
        ),
        "ConsumerGroupDescribe": (range(2), {"group_ids": [group]}),
        "OffsetCommit": (range(2, 10), {**member, "generation_id_or_member_epoch": 1, "topics": committed}),
        "OffsetFetch": (
            range(1, 10),
            {"group_id": group, "topics": fetched, "groups": [{"group_id": group, "topics": fetched}]},
        ),
    }
    for api, (versions, fields) in asked.items():
        talk.every(api, fields, note="elsewhere", on=on, versions=versions)
    beat = {"group_id": group, "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 5000}
    beat |= {"subscribed_topic_names": [name], "topic_partitions": []}
    talk.every("ConsumerGroupHeartbeat", beat, note="elsewhere", on=on)


def three_transactions_elsewhere(talk: ClusterTalk) -> None:
    """What is asked of a transaction's coordinator, asked of another broker."""
    key = talk.topic("id")
    name = talk.place("a", [1])
    on = _elsewhere(talk, key, _TRANSACTION)
    producer = {"transactional_id": key, "producer_id": 1000, "producer_epoch": 0}
    started = {"transactional_id": key, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    added = [{"name": name, "partitions": [0]}]
    batched = {"transactional_id": key, "producer_id": 1000, "producer_epoch": 0, "verify_only": False, "topics": added}
    talk.every("InitProducerId", started, note="elsewhere", on=on)
    fields = {"v3_and_below_transactional_id": key, "v3_and_below_producer_id": 1000, "v3_and_below_producer_epoch": 0}
    talk.every(
        "AddPartitionsToTxn",
        {**fields, "v3_and_below_topics": added, "transactions": [batched]},
        note="elsewhere",
        on=on,
    )
    talk.every("AddOffsetsToTxn", {**producer, "group_id": talk.topic("g")}, note="elsewhere", on=on)
    talk.every("EndTxn", {**producer, "committed": True}, note="elsewhere", on=on)
    talk.every("DescribeTransactions", {"transactional_ids": [key]}, note="elsewhere", on=on)


def three_transaction_over_brokers(talk: ClusterTalk) -> None:
    """A transaction over partitions that three brokers lead: what each tells of it before and after its end."""
    key = talk.topic("id")
    name = talk.place("a", [1, 2], [2, 3], [3, 1])
    topic_id = talk.topic_id(name)
    coordinator = talk.coordinator(key, _TRANSACTION)
    start = {"transactional_id": key, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1}
    begun = talk.wait("InitProducerId", 4, start, lambda answer: answer["error_code"] == 0, on=coordinator)
    producer = {"producer_id": begun["producer_id"], "producer_epoch": begun["producer_epoch"]}
    added = {f"v3_and_below_{field}": value for field, value in producer.items()}
    added |= {"v3_and_below_transactional_id": key, "v3_and_below_topics": [{"name": name, "partitions": [0, 1, 2]}]}
    talk.ask("AddPartitionsToTxn", 3, added, note="three partitions", on=coordinator)
    ids = (begun["producer_id"], begun["producer_epoch"], 0)
    for index, node in enumerate(NODES):
        records_of = batch(records(b"a", b"b"), producer=ids, attributes=0x10)
        data = [{"name": name, "topic_id": topic_id, "partition_data": [{"index": index, "records": records_of}]}]
        fields = {"transactional_id": key, "acks": -1, "timeout_ms": 10000, "topic_data": data}
        talk.ask("Produce", 11, fields, note=f"to broker {node}", on=node)
    _show(talk, name, "open")
    ended = {"transactional_id": key, **producer, "committed": True}
    talk.ask("EndTxn", 3, ended, note="committed", on=coordinator)
    for index, node in enumerate(NODES):
        asked = [{"name": name, "partitions": [{"partition_index": index, "timestamp": -1}]}]
        committed = {"replica_id": -1, "isolation_level": 1, "topics": asked}
        talk.wait("ListOffsets", 4, committed, lambda told: told["topics"][0]["partitions"][0]["offset"] == 3, on=node)
    _show(talk, name, "committed")


def _show(talk: ClusterTalk, name: str, note: str) -> None:
    """Note down what the leader of each partition shows of it to who reads what is committed."""
    for index, node in enumerate(NODES):
        part = {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        topics = [{"topic": name, "topic_id": NO_ID, "partitions": [part]}]
        fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "isolation_level": 1, "topics": topics}
        talk.ask("Fetch", 12, fields, note=f"{note}, broker {node}", on=node)
        producers = {"topics": [{"name": name, "partition_indexes": [index]}]}
        talk.ask("DescribeProducers", 0, producers, note=f"{note}, broker {node}", on=node)
