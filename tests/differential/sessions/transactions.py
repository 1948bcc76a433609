"""Transactions of both protocol versions: whole lives, and each wrong turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .. import codec
from ..batches import TRANSACTIONAL, batch, records
from ..group_talk import coordinated
from ..transaction_talk import Producer

if TYPE_CHECKING:
    from ..conversation import Conversation, Fields

_FIRST_EPOCH: Final = 0


def _show(talk: Conversation, topic: str, note: str) -> None:
    """Note what both kinds of readers see of a topic, its producers, and its offsets."""
    for isolation in (0, 1):
        wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
        fields = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": isolation,
            "topics": [{"topic": topic, "partitions": wanted}],
        }
        talk.ask("Fetch", 11, fields, note=f"{note}, isolation {isolation}", on="fetch")
        asked = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
        offsets = {"replica_id": -1, "isolation_level": isolation, "topics": asked}
        talk.ask("ListOffsets", 7, offsets, note=f"{note}, isolation {isolation}", on="fetch")
    producers = {"topics": [{"name": topic, "partition_indexes": [0]}]}
    talk.ask("DescribeProducers", 0, producers, note=note, on="fetch")


def init_transactional_producer(talk: Conversation) -> None:
    """InitProducerId with a transactional id, in every version."""
    producer = Producer(talk, "t")
    fields = {"transactional_id": producer.transactional_id, "transaction_timeout_ms": 60_000}
    talk.every("InitProducerId", fields, note="once more")
    for timeout_ms in (0, -1, 900_000, 900_001):
        wanted = {**fields, "transactional_id": talk.topic(f"x{timeout_ms}"), "transaction_timeout_ms": timeout_ms}
        talk.ask("InitProducerId", 4, wanted, note=f"time-out {timeout_ms}")
    talk.every("InitProducerId", {**fields, "transactional_id": ""}, note="empty id")
    producer.start()
    for note, producer_id, epoch in (
        ("the epoch that it has", producer.producer_id, producer.epoch),
        ("the epoch before, asked again", producer.producer_id, producer.epoch),
        ("an old epoch", producer.producer_id, _FIRST_EPOCH),
        ("an epoch to come", producer.producer_id, producer.epoch + 7),
        ("another producer id", producer.producer_id + 1_000_000, producer.epoch),
        ("an id without an epoch", producer.producer_id, -1),
        ("an epoch without an id", -1, 3),
    ):
        named = {**fields, "producer_id": producer_id, "producer_epoch": epoch}
        talk.every("InitProducerId", named, note=note, versions=(3, 4, 5))
    unknown = {**fields, "transactional_id": talk.topic("unknown"), "producer_id": 123_456_789, "producer_epoch": 2}
    talk.every("InitProducerId", unknown, note="an unknown id with a producer id", versions=(3, 5))
    producer.start()
    producer.describe("idle")


def transaction_by_steps(talk: Conversation) -> None:
    """Transactions as clients before KIP-890 make them: each partition is added first."""
    topic, other = talk.create("a"), talk.create("b", partitions=2)
    (group,) = coordinated(talk, "g")
    producer = Producer(talk, "t")
    for version in range(4):
        producer.add(version, {topic: [0], other: [1]}, note="two topics")
        producer.add(version, {topic: [0]}, note="again")
    producer.describe("ongoing")
    producer.produce(7, topic, b"a", b"b", note="added")
    _show(talk, topic, "ongoing")
    talk.ask("AddOffsetsToTxn", 3, producer.names(group_id=group), note="a group")
    commit = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 4, "committed_metadata": "m"}]}]
    for version in range(4):
        fields = producer.names(group_id=group, topics=commit)
        talk.ask("TxnOffsetCommit", version, fields, note="offsets")
    _show_offsets(talk, group, topic, "before the end")
    producer.end(3, note="commit")
    producer.describe("committed")
    _show(talk, topic, "committed")
    _show_offsets(talk, group, topic, "after the commit")
    for version in range(5):
        producer.end(version, note="commit, asked again")
        producer.end(version, note="abort after commit", committed=False)
    producer.add(3, {topic: [0]}, note="the next")
    producer.produce(11, topic, b"c", note="the next")
    producer.end(3, note="abort", committed=False)
    producer.describe("aborted")
    _show(talk, topic, "aborted")
    producer.end(3, note="commit after abort")
    talk.ask("AddOffsetsToTxn", 0, producer.names(group_id=group), note="a group, to be aborted")
    nine = {"partition_index": 0, "committed_offset": 9, "committed_metadata": ""}
    fields = producer.names(group_id=group, topics=[{"name": topic, "partitions": [nine]}])
    talk.ask("TxnOffsetCommit", 2, fields, note="offsets, to be aborted")
    _show_offsets(talk, group, topic, "before the abort")
    producer.end(2, note="abort of offsets", committed=False)
    producer.describe("aborted offsets")
    _show_offsets(talk, group, topic, "after the abort")
    producer.start()
    _show(talk, topic, "a new epoch")


def _show_offsets(talk: Conversation, group: str, topic: str, note: str) -> None:
    for stable in (False, True):
        wanted = [{"name": topic, "partition_indexes": [0]}]
        fields = {"group_id": group, "topics": wanted, "require_stable": stable}
        talk.ask("OffsetFetch", 7, fields, note=f"{note}, require_stable {stable}")


def transaction_by_producing(talk: Conversation) -> None:
    """Transactions of version 2 (KIP-890): producing adds the partition, the end raises the epoch."""
    topic = talk.create("a")
    (group,) = coordinated(talk, "g")
    producer = Producer(talk, "t")
    producer.produce(12, topic, b"a", note="first batch")
    producer.produce(12, topic, b"b", note="second batch")
    producer.describe("ongoing")
    commit = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 4, "committed_metadata": ""}]}]
    talk.ask("TxnOffsetCommit", 5, producer.names(group_id=group, topics=commit), note="offsets")
    before = producer.names(committed=True)
    producer.end(5, note="commit")
    producer.describe("committed")
    _show(talk, topic, "committed")
    _show_offsets(talk, group, topic, "after the commit")
    talk.ask("EndTxn", 5, before, note="commit, asked again")
    talk.ask("EndTxn", 5, {**before, "committed": False}, note="abort, of the epoch before")
    producer.produce(12, topic, b"late", note="of the epoch before", epoch=producer.epoch - 1, sequence=2)
    producer.end(5, note="commit of nothing")
    producer.end(5, note="abort of nothing", committed=False)
    producer.describe("nothing")
    producer.produce(12, topic, b"c", note="the next")
    talk.ask("EndTxn", 5, before, note="late end of the first")
    producer.end(5, note="abort", committed=False)
    producer.describe("aborted")
    _show(talk, topic, "aborted")
    producer.produce(12, topic, b"odd", note="sequence 5 at first", sequence=5)
    producer.produce(12, topic, b"even", note="sequence 0")
    producer.start()
    _show(talk, topic, "fenced")


def transaction_refused(talk: Conversation) -> None:
    """Each wrong turn of a transaction."""
    topic = talk.create("a")
    producer = Producer(talk, "t")
    for version in range(6):
        for note, names in _strangers(talk, producer).items():
            producer.add(version, {topic: [0]}, note=note, **names)
        producer.add(version, {talk.topic("none"): [0], topic: [0, 7]}, note="unknown topic, partition")
        producer.add(version, {}, note="no topics")
        producer.add(version, {topic: [0]}, note="verify only", verify_only=version >= 4)
        producer.end(3, note=f"abort after version {version}", committed=False)
        producer.describe(f"aborted after version {version}")
    producer.start()
    for note, names in _strangers(talk, producer).items():
        fields = producer.names(**names)
        talk.every("AddOffsetsToTxn", {**fields, "group_id": talk.topic("g")}, note=note)
        talk.every("EndTxn", {**fields, "committed": True}, note=note)
    talk.every("AddOffsetsToTxn", producer.names(group_id=""), note="empty group id", versions=(3,))
    producer.end(4, note="abort what was added", committed=False)
    fresh = Producer(talk, "fresh")
    talk.every("EndTxn", fresh.names(committed=True), note="nothing has begun", versions=range(5))
    producer.warm_up(topic)
    for version in (7, 11):
        producer.produce(version, topic, b"x", note="not added")
    (group,) = coordinated(talk, "g")
    commit = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 4, "committed_metadata": ""}]}]
    odd: dict[str, dict[str, Any]] = {
        "not added": {},
        "generation of nobody": {"generation_id": 3},
        "member of nothing": {"member_id": "m", "generation_id": 1},
        "empty group id": {"group_id": ""},
    }
    for note, more in odd.items():
        fields = {**producer.names(group_id=group, topics=commit), **more}
        talk.every("TxnOffsetCommit", fields, note=note, versions=(2, 3, 4))
    for note, names in _strangers(talk, producer).items():
        fields = producer.names(group_id=group, topics=commit, **names)
        talk.every("TxnOffsetCommit", fields, note=note, versions=(3, 4, 5))


def _strangers(talk: Conversation, producer: Producer) -> dict[str, dict[str, Any]]:
    """Return ways to be somebody else."""
    return {
        "unknown transactional id": {"transactional_id": talk.topic("nobody")},
        "empty transactional id": {"transactional_id": ""},
        "another producer id": {"producer_id": producer.producer_id + 1_000_000},
        "an older epoch": {"producer_epoch": producer.epoch - 1},
        "a newer epoch": {"producer_epoch": producer.epoch + 1},
    }


def transactional_produce_refused(talk: Conversation) -> None:
    """Transactional batches that do not fit, while a transaction is open."""
    topic = talk.create("a")
    producer = Producer(talk, "t")
    for version in (11, 12):
        if version == 11:
            producer.add(3, {topic: [0]}, note="the topic")
        producer.produce(version, topic, b"a", note="fits")
        producer.produce(version, topic, b"x", note="an older epoch", epoch=producer.epoch - 1)
        producer.produce(version, topic, b"x", note="a sequence too far", sequence=9)
        producer.produce(version, topic, b"x", note="without a transactional id", transactional_id=None)
        producer.produce(version, topic, b"x", note="another transactional id", transactional_id=talk.topic("nobody"))
        plain = batch(records(b"x"), producer=(producer.producer_id, producer.epoch, producer.sequence))
        data = [{"name": topic, "partition_data": [{"index": 0, "records": plain}]}]
        fields = {"acks": -1, "timeout_ms": 5000, "topic_data": data, "transactional_id": producer.transactional_id}
        talk.ask("Produce", version, fields, note="not a transactional batch")
        producer.produce(version, topic, b"x", note="acks 1", acks=1)
        producer.produce(version, topic, b"b", note="still fits")
        producer.produce(version, topic, b"x", note="a newer epoch", epoch=producer.epoch + 1, sequence=0)
        producer.end(3 if version == 11 else 5, note="commit")
        producer.describe(f"after version {version}")
        producer.start()
    _show(talk, topic, "what is in the log")


def plain_after_unverified(talk: Conversation) -> None:
    """Batches of a producer without a transaction, after one of a transaction that the coordinator did not know."""
    topic = talk.create("a", partitions=3)
    producer = Producer(talk, "t")
    talk.until_ready("FindCoordinator", 1, {"key": talk.topic("nobody"), "key_type": 1})
    producer.warm_up(topic)

    def send(note: str, partition: int, sequence: int, *, transactional: bool = False, version: int = 10) -> None:
        names = (producer.producer_id, producer.epoch, sequence)
        content = batch(records(b"v"), attributes=TRANSACTIONAL if transactional else 0, producer=names)
        data = [{"name": topic, "partition_data": [{"index": partition, "records": content}]}]
        fields = {"acks": -1, "timeout_ms": 5000, "topic_data": data}
        if transactional:
            fields["transactional_id"] = talk.topic("nobody")
        talk.ask("Produce", version, fields, note=f"{note}, sequence {sequence}, to partition {partition}")

    send("of a transaction that nobody began", 1, 5, transactional=True)
    for sequence in (7, 6, 5, 6):
        send("plain", 1, sequence)
    send("plain", 2, 0)
    send("of a transaction that nobody began", 2, 0, transactional=True)
    for sequence in (1, 0, 1):
        send("plain", 2, sequence)


def list_transactions(talk: Conversation) -> None:
    """ListTransactions with its filters, DescribeTransactions."""
    topic = talk.create("a")
    idle, busy, done = (Producer(talk, name) for name in ("idle", "busy", "done"))
    for producer in (busy, done):
        producer.add(3, {topic: [0]}, note="begin")
    done.end(3, note="commit")
    done.describe("committed")

    def listed(note: str, **fields: Any) -> None:
        for version in codec.versions("ListTransactions"):
            answer = talk.quietly("ListTransactions", version, fields)
            states = [
                state for state in answer["transaction_states"] if state["transactional_id"].startswith(f"{talk.name}-")
            ]
            answer["transaction_states"] = states
            talk.note_answer("ListTransactions", version, note, answer)

    listed("all")
    for names in (["Ongoing"], ["CompleteCommit", "Empty"], ["nonsense"], ["Ongoing", "nonsense"], ["ongoing"]):
        listed(f"states {names}", state_filters=names)
    listed("one producer", producer_id_filters=[busy.producer_id])
    listed("unknown producer", producer_id_filters=[123_456_789])
    for duration_ms in (0, -1, 3_600_000):
        listed(f"for {duration_ms} ms", duration_filter=duration_ms)
    for pattern in (f"{talk.name}-b.*", ".*", "nothing", "[", ""):
        listed(f"pattern {pattern!r}", transactional_id_pattern=pattern)
    ids = [busy.transactional_id, talk.topic("nobody"), "", idle.transactional_id]
    talk.ask("DescribeTransactions", 0, {"transactional_ids": ids}, note="several")
    talk.ask("DescribeTransactions", 0, {"transactional_ids": []}, note="none")


def write_txn_markers(talk: Conversation) -> None:
    """WriteTxnMarkers, as tools send it to end what hangs."""
    topic = talk.create("a", partitions=2)
    producer = Producer(talk, "t")
    producer.add(3, {topic: [0]}, note="begin")
    producer.produce(7, topic, b"a", note="a batch that hangs")

    def marker(**more: Any) -> Fields:
        one = {
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "transaction_result": False,
            "topics": [{"name": topic, "partition_indexes": [0]}],
            "coordinator_epoch": 5,
            **more,
        }
        return {"markers": [one]}

    for note, fields in {
        "an older epoch": marker(producer_epoch=producer.epoch - 1),
        "unknown topic": marker(topics=[{"name": talk.topic("none"), "partition_indexes": [0]}]),
        "unknown partition": marker(topics=[{"name": topic, "partition_indexes": [0, 9]}]),
        "abort": marker(),
        "an older coordinator": marker(coordinator_epoch=4),
        "unknown producer": marker(producer_id=987_654_321),
        "nothing": {"markers": []},
    }.items():
        talk.every("WriteTxnMarkers", fields, note=note)
        producers = {"topics": [{"name": topic, "partition_indexes": [0]}]}
        talk.ask("DescribeProducers", 0, producers, note=f"after {note}")
    _show(talk, topic, "what is in the log")
