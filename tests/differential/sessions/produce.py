"""Produce, InitProducerId, DescribeProducers: what is taken or refused, and what is in the log afterwards."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from ..batches import (
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    SNAPPY,
    T0,
    TRANSACTIONAL,
    ZSTD,
    batch,
    compress,
    legacy_message_set,
    record,
    records,
)
from ..conversation import UNKNOWN_ID
from .discovery import BAD_NAMES

if TYPE_CHECKING:
    from ..conversation import Conversation, Fields

_ALL = range(3, 14)
_CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
_SEQUENCE_MAX = 2**31 - 1


def _fields(topic: str, content: bytes | None, *, partition: int = 0, acks: int = -1, **more: Any) -> Fields:
    topic_id = more.pop("topic_id", uuid.UUID(int=0))
    data = [{"name": topic, "topic_id": topic_id, "partition_data": [{"index": partition, "records": content}]}]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": data, **more}


def _show_log(talk: Conversation, topic: str, note: str = "the log afterwards") -> None:
    wanted = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    fields = {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1 << 20,
        "topics": [{"topic": topic, "partitions": wanted}],
    }
    talk.ask("Fetch", 11, fields, note=note, on="fetch")


def produce_plain(talk: Conversation) -> None:
    """Produce of sound batches in every version."""
    topic = talk.create("a", partitions=2)
    topic_id = talk.topic_id(topic)
    three = batch(records(b"one", b"two", None))
    talk.every("Produce", _fields(topic, three, topic_id=topic_id), note="three records", versions=_ALL)
    talk.every("Produce", _fields(topic, three, topic_id=topic_id, acks=1), note="acks 1", versions=(3, 8, 13))
    for version in (3, 8, 9, 13):
        fields = _fields(topic, three, topic_id=topic_id, acks=0)
        talk.ask("Produce", version, fields, note="acks 0", expects_silence=True)
        talk.ask("Produce", version, _fields(topic, three, topic_id=topic_id), note="after acks 0")
    talk.every("Produce", {"acks": -1, "timeout_ms": 1, "topic_data": []}, note="no topics", versions=(3, 9, 13))
    no_partitions = [{"name": topic, "topic_id": topic_id, "partition_data": []}]
    fields = {"acks": -1, "timeout_ms": 1, "topic_data": no_partitions}
    talk.every("Produce", fields, note="no partitions", versions=(3, 9, 13))
    talk.every("Produce", _fields(topic, three, topic_id=topic_id, timeout_ms=0), note="timeout 0", versions=(3, 13))
    talk.every("Produce", _fields(topic, three, topic_id=topic_id, timeout_ms=-1), note="timeout -1", versions=(3, 13))
    both = [{"index": 1, "records": three}, {"index": 0, "records": three}]
    data = [{"name": topic, "topic_id": topic_id, "partition_data": both}]
    talk.every("Produce", {"acks": -1, "timeout_ms": 5, "topic_data": data}, note="two partitions", versions=(3, 9, 13))
    twice = [{"index": 1, "records": three}, {"index": 1, "records": three}]
    data = [{"name": topic, "topic_id": topic_id, "partition_data": twice}]
    talk.every(
        "Produce", {"acks": -1, "timeout_ms": 5, "topic_data": data}, note="one partition twice", versions=(3, 13)
    )
    full = batch([record(b"", b"", headers=[(b"h", b"1"), (b"h", None), (b"", b"")])])
    talk.ask("Produce", 9, _fields(topic, full), note="headers, empty key and value")
    _show_log(talk, topic)


def produce_errors(talk: Conversation) -> None:
    """Produce to what does not exist, or asked wrongly."""
    topic = talk.create("a")
    topic_id = talk.topic_id(topic)
    sound = batch()
    for version in (3, 8, 10, 12, 13):
        known: dict[str, Any] = {"topic_id": topic_id}
        talk.ask("Produce", version, _fields(talk.topic("none"), sound, topic_id=UNKNOWN_ID), note="unknown topic")
        talk.ask("Produce", version, _fields("", sound), note="no topic")
        for partition in (1, -1):
            talk.ask(
                "Produce", version, _fields(topic, sound, partition=partition, **known), note=f"partition {partition}"
            )
        for acks in (2, -2, 32767):
            talk.ask("Produce", version, _fields(topic, sound, acks=acks, **known), note=f"acks {acks}")
        fields = _fields(talk.topic("none"), sound, acks=2, topic_id=UNKNOWN_ID)
        talk.ask("Produce", version, fields, note="acks 2, unknown topic")
        talk.ask("Produce", version, _fields(topic, sound, acks=2, partition=1, **known), note="acks 2, partition 1")
        talk.ask("Produce", version, _fields(topic, b"", acks=2, **known), note="acks 2, records of no bytes")
        talk.ask("Produce", version, _fields(topic, b"", **known), note="records of no bytes")
        talk.ask("Produce", version, _fields(topic, sound, transactional_id="", **known), note="transactional id empty")
        fields = _fields(topic, sound, transactional_id="t", **known)
        talk.ask("Produce", version, fields, note="transactional id, plain batch")
    for what, name in BAD_NAMES.items():
        talk.ask("Produce", 9, _fields(name, sound), note=f"name {what}")
    talk.ask("Produce", 7, _fields(talk.topic("none"), sound, acks=0), note="acks 0, unknown topic", on="zero")
    talk.ask("Produce", 7, _fields(topic, batch(crc_change=1), acks=0), note="acks 0, bad CRC", on="zero")
    talk.ask("Produce", 7, _fields(topic, sound, acks=2), note="acks 2 again", on="zero")
    damaged = batch(crc_change=1)
    talk.ask("Produce", 9, _fields(topic, damaged, acks=2), note="acks 2, bad CRC")
    mixed = [
        {"name": topic, "partition_data": [{"index": 0, "records": sound}, {"index": 5, "records": sound}]},
        {"name": talk.topic("none"), "partition_data": [{"index": 0, "records": sound}]},
    ]
    talk.ask("Produce", 9, {"acks": -1, "timeout_ms": 5, "topic_data": mixed}, note="good and bad partitions")
    talk.ask("Produce", 3, raw=b"\xff\xff\xff\xff", note="body cut off")
    talk.ask("Produce", 9, raw=b"\x00\xff\xff\x00\x00", note="body cut off")
    _show_log(talk, topic)


_SOUND = batch()
CORRUPT: dict[str, bytes] = {
    "bad CRC": batch(crc_change=1),
    "magic 0": legacy_message_set(0),
    "magic 1": legacy_message_set(1),
    "magic 0 in a v2 batch": batch(magic=0),
    "magic 1 in a v2 batch": batch(magic=1),
    "magic 3": batch(magic=3),
    "magic -1": batch(magic=-1),
    "two batches": _SOUND + _SOUND,
    "three batches": _SOUND * 3,
    "second batch corrupt": _SOUND + batch(crc_change=1),
    "no records": batch([]),
    "no records, last offset delta 0": batch([], last_offset_delta=0),
    "count 1 of 2": batch(records(b"a", b"b"), count=1),
    "count 3 of 2": batch(records(b"a", b"b"), count=3),
    "count 0 of 1": batch(count=0, last_offset_delta=0),
    "count -1": batch(count=-1, last_offset_delta=0),
    "count 2^31 - 1": batch(count=_SEQUENCE_MAX, last_offset_delta=0),
    "count 1 of 2, last offset delta 1": batch(records(b"a", b"b"), count=1, last_offset_delta=1),
    "last offset delta too large": batch(records(b"a", b"b"), last_offset_delta=2),
    "last offset delta too small": batch(records(b"a", b"b"), last_offset_delta=0),
    "last offset delta -1": batch(last_offset_delta=-1),
    "gap in offset deltas": batch([record(), record(offset_delta=2)]),
    "gap, last offset delta to match": batch([record(), record(offset_delta=2)], last_offset_delta=2),
    "offset deltas repeat": batch([record(), record()]),
    "offset deltas go back": batch([record(offset_delta=1), record()]),
    "offset deltas from 5": batch([record(offset_delta=5)]),
    "one byte too few": _SOUND[:-1],
    "header only, cut off": _SOUND[:40],
    "10 bytes": _SOUND[:10],
    "1 byte": b"\0",
    "1 byte of garbage after": _SOUND + b"\xff",
    "11 bytes of garbage after": _SOUND + b"\xff" * 11,
    "12 bytes of garbage after": _SOUND + b"\xff" * 12,
    "17 zeros after": _SOUND + bytes(17),
    "61 bytes of garbage after": _SOUND + b"\xff" * 61,
    "half a batch after": _SOUND + _SOUND[:30],
    "64 zeros": bytes(64),
    "length one too large": batch(length_change=1),
    "length one too small": batch(length_change=-1),
    "length 0": batch(length_change=-(len(_SOUND) - 12)),
    "length -1": batch(length_change=-(len(_SOUND) - 11)),
    "length of 48": batch(length_change=48 - (len(_SOUND) - 12)),
    "record one byte longer": batch([record(length_change=1)]),
    "record one byte shorter": batch([record(length_change=-1)]),
    "record of length 0": batch(payload=b"\0", count=1, last_offset_delta=0),
    "record of length -1": batch(payload=b"\1", count=1, last_offset_delta=0),
    "record of garbage": batch(payload=b"\xff" * 20, count=1, last_offset_delta=0),
    "no payload": batch(payload=b"", count=1, last_offset_delta=0),
    "garbage after the records": batch(payload=record() + b"xyz", count=1, last_offset_delta=0),
    "headers count -1": batch([record(headers_count=-1)]),
    "headers count 5 of 0": batch([record(headers_count=5)]),
    "null header key": batch([record(headers=[(None, b"x")])]),
    "header key not UTF-8": batch([record(headers=[(b"\xff\xfe", b"x")])]),
    "control batch": batch([record(b"\0\0\0\0\0\0", b"\0\0\0\1")], attributes=CONTROL),
    "control batch with producer id": batch(attributes=CONTROL | TRANSACTIONAL, producer=(1_000_001, 0, -1)),
    "transactional without producer id": batch(attributes=TRANSACTIONAL),
    "transactional with producer id": batch(attributes=TRANSACTIONAL, producer=(1_000_002, 0, 0)),
    "delete horizon bit": batch(attributes=DELETE_HORIZON),
    "unknown attribute bits": batch(attributes=0x7F80),
    "sign bit of the attributes": batch(attributes=-0x8000),
    "says LogAppendTime": batch(attributes=LOG_APPEND_TIME),
    "codec 5": batch(codec=5),
    "codec 6": batch(codec=6),
    "codec 7": batch(codec=7),
    "base offset 77": batch(base_offset=77),
    "base offset -1": batch(base_offset=-1),
    "base offset 2^63 - 1": batch(base_offset=2**63 - 1),
    "leader epoch 99": batch(leader_epoch=99),
    "max timestamp too small": batch(records(b"a", b"b", step_ms=5)),
    "max timestamp too large": batch(max_timestamp=T0 + 99),
    "timestamp -1": batch(base_timestamp=-1),
    "timestamp -2": batch(base_timestamp=-2),
    "timestamp 0": batch(base_timestamp=0),
    "timestamp delta negative": batch([record(timestamp_delta=-7)]),
    "sequence without producer id": batch(producer=(-1, -1, 0)),
    "epoch without producer id": batch(producer=(-1, 3, -1)),
    "producer id without sequence": batch(producer=(1_000_003, 0, -1)),
    "producer id without epoch": batch(producer=(1_000_004, -1, 0)),
    "producer id -2": batch(producer=(-2, 0, 0)),
}
"""Batches that are wrong in one way each, or look so."""


def produce_corrupt(talk: Conversation) -> None:
    """Produce of batches that are wrong in one way each; the log shows those that were taken."""
    for chosen in (*range(1_000_001, 1_000_005), -2):
        talk.normaliser.keep(chosen)
    topic = talk.create("a")
    for what, content in CORRUPT.items():
        talk.ask("Produce", 10, _fields(topic, content), note=what)
    for what in (
        "bad CRC",
        "magic 1",
        "magic 3",
        "two batches",
        "no records",
        "count 1 of 2",
        "codec 5",
        "control batch",
    ):
        for version in (3, 7, 8):
            talk.ask("Produce", version, _fields(topic, CORRUPT[what]), note=what)
    _show_log(talk, topic)


def produce_codecs(talk: Conversation) -> None:
    """Produce of compressed batches, sound and broken."""
    topic = talk.create("a")
    content = records(*[b"some text that repeats " * 3] * 5, step_ms=1)
    for name, codec in _CODECS.items():
        fields = _fields(topic, batch(content, codec=codec, max_timestamp=T0 + 4))
        talk.every("Produce", fields, note=name, versions=(3, 6, 7, 9))
    for name, codec in _CODECS.items():
        if codec == NONE:
            continue
        plain = b"".join(content)
        packed = compress(codec, plain)
        broken = {
            "payload of garbage": batch(codec=codec, payload=b"\xff" * 50, count=1, last_offset_delta=0),
            "payload cut off": batch(content, codec=codec, payload=packed[:-8]),
            "payload of nothing": batch(codec=codec, payload=b"", count=1, last_offset_delta=0),
            "payload not compressed": batch(content, codec=codec, payload=plain),
            "count 4 of 5": batch(content, codec=codec, count=4),
            "count 6 of 5": batch(content, codec=codec, count=6),
            "count 5 of 5, last offset delta 5": batch(content, codec=codec, last_offset_delta=5),
            "gap in offset deltas": batch([record(), record(offset_delta=2)], codec=codec, last_offset_delta=2),
            "offset deltas repeat": batch([record(), record()], codec=codec),
            "no records": batch([], codec=codec, last_offset_delta=0),
            "max timestamp too small": batch(records(b"a", b"b", step_ms=5), codec=codec),
            "garbage after the records": batch(codec=codec, payload=compress(codec, record() + b"xyz"), count=1),
        }
        for what, wrong in broken.items():
            talk.ask("Produce", 10, _fields(topic, wrong), note=f"{name}: {what}")
        trailing = batch(content, codec=codec, payload=packed + b"garbage")
        talk.ask("Produce", 10, _fields(talk.create(name), trailing), note=f"{name}: garbage after the payload")
    _show_log(talk, topic)


def produce_two_wrongs(talk: Conversation) -> None:
    """Produce two batches in one, in a codec that the version does not know or nobody does: which one is told."""
    topic = talk.create("a")
    topic_id = talk.topic_id(topic)
    for codec in (_CODECS["gzip"], _CODECS["zstd"], 5):
        two = batch(codec=codec) * 2
        for version in (3, 6, 7, 13):
            talk.ask("Produce", version, _fields(topic, two, topic_id=topic_id), note=f"two batches, codec {codec}")
    _show_log(talk, topic)


def produce_recompressed(talk: Conversation) -> None:
    """Topics whose `compression.type` is not the producer's: the log holds what the broker made of a batch."""
    for kind in ("uncompressed", "lz4"):
        topic = talk.create(kind, configs={"compression.type": kind})
        for codec in ("none", "gzip"):
            content = batch(records(b"aaaaaaaaaaaaaaaa", b"b"), codec=_CODECS[codec])
            talk.ask("Produce", 10, _fields(topic, content), note=f"{codec} to {kind}")
        if kind == "uncompressed":
            _show_log(talk, topic, f"the log of {kind}")


def produce_timestamps(talk: Conversation) -> None:
    """Topics with LogAppendTime, and with bounds on timestamps."""
    stamped = talk.create("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    stamped_id = talk.topic_id(stamped)
    fields = _fields(stamped, batch(records(b"a", b"b", step_ms=3)), topic_id=stamped_id)
    talk.every("Produce", fields, note="LogAppendTime", versions=_ALL)
    for codec in ("gzip", "zstd"):
        content = batch(records(b"a", b"b", step_ms=3), codec=_CODECS[codec])
        talk.ask("Produce", 9, _fields(stamped, content), note=f"LogAppendTime, {codec}")
    talk.ask("Produce", 9, _fields(stamped, batch(attributes=LOG_APPEND_TIME)), note="says LogAppendTime itself")
    talk.ask("Produce", 9, _fields(stamped, batch(base_timestamp=-1)), note="LogAppendTime, timestamp -1")
    _show_log(talk, stamped)
    now = talk.normaliser.now_ms
    bounds = {"message.timestamp.before.max.ms": "100000", "message.timestamp.after.max.ms": "100000"}
    bounded = talk.create("bounded", configs=bounds)
    for codec in ("none", "gzip"):
        for what, distance in (("inside", 0), ("before", -200_000), ("after", 200_000)):
            content = batch(base_timestamp=now + distance, codec=_CODECS[codec])
            for version in (7, 8, 10):
                talk.ask("Produce", version, _fields(bounded, content), note=f"{what} the bounds, {codec}")
        mixed = [record(timestamp_delta=d, offset_delta=i) for i, d in enumerate((0, 300_000, 0, -300_000))]
        content = batch(mixed, base_timestamp=now, max_timestamp=now + 300_000, codec=_CODECS[codec])
        talk.ask("Produce", 10, _fields(bounded, content), note=f"records 1 and 3 of 4 outside, {codec}")
        lies = batch(base_timestamp=now, max_timestamp=now + 300_000, codec=_CODECS[codec])
        talk.ask("Produce", 10, _fields(bounded, lies), note=f"only the max timestamp is outside, {codec}")
        talk.ask("Produce", 10, _fields(bounded, batch(base_timestamp=-1, codec=_CODECS[codec])), note=f"none, {codec}")
    free = talk.create("free")
    far = batch(base_timestamp=now + 4_000_000)
    talk.ask("Produce", 10, _fields(free, far), note="67 minutes ahead, default bounds")


def produce_compacted(talk: Conversation) -> None:
    """Compacted topics want keys."""
    topic = talk.create("a", configs={"cleanup.policy": "compact"})
    for codec in ("none", "gzip"):
        keyed = batch([record(b"v", b"k"), record(None, b"k", offset_delta=1)], codec=_CODECS[codec])
        talk.ask("Produce", 10, _fields(topic, keyed), note=f"keys, {codec}")
        mixed = [record(b"v", key, offset_delta=i) for i, key in enumerate((b"k", None, b"", None))]
        for version in (7, 8, 10):
            fields = _fields(topic, batch(mixed, codec=_CODECS[codec]))
            talk.ask("Produce", version, fields, note=f"records 1 and 3 of 4 without key, {codec}")
    both = talk.create("both", configs={"cleanup.policy": "compact,delete"})
    talk.ask("Produce", 10, _fields(both, batch()), note="compact,delete, no key")
    _show_log(talk, topic)


def produce_too_large(talk: Conversation) -> None:
    """Batches larger than `max.message.bytes`, and exactly as large."""
    topic = talk.create("a", configs={"max.message.bytes": "200"})
    spare = 200 - len(batch([record(b"x" * 100)])) + 100
    for what, size in (("exactly", spare), ("one byte more than", spare + 1), ("much more than", 5000)):
        for version in (7, 8, 10):
            talk.ask("Produce", version, _fields(topic, batch([record(b"x" * size)])), note=f"{what} max.message.bytes")
        talk.ask("Produce", 10, _fields(topic, batch([record(b"x" * size)], codec=GZIP)), note=f"{what}, but gzip")
    segmented = talk.create("segment", configs={"segment.bytes": "1048576", "max.message.bytes": "3000000"})
    talk.ask("Produce", 10, _fields(segmented, batch([record(b"x" * 1_048_576)])), note="larger than segment.bytes")
    wrong_and_large = batch([record(b"x" * 5000)], crc_change=1)
    talk.ask("Produce", 10, _fields(topic, wrong_and_large), note="too large, bad CRC")
    isr = talk.create("isr", configs={"min.insync.replicas": "2"})
    for acks in (1, -1):
        talk.ask("Produce", 10, _fields(isr, batch(), acks=acks), note=f"min.insync.replicas 2 of 1, acks {acks}")


def produce_idempotent(talk: Conversation) -> None:
    """Sequences of idempotent producers."""
    topic = talk.create("a")
    producer = 1_000_001
    for chosen in range(1_000_000, 1_000_030):
        talk.normaliser.keep(chosen)

    def send(note: str, producer_id: int, epoch: int, sequence: int, count: int = 2, version: int = 9) -> None:
        content = batch(records(*[b"v"] * count), producer=(producer_id, epoch, sequence))
        talk.ask("Produce", version, _fields(topic, content), note=note)

    for number in range(7):
        send(f"batch {number}", producer, 0, 2 * number)
    for number in range(7):
        send(f"batch {number} again", producer, 0, 2 * number)
    send("same first sequence, one record", producer, 0, 12, 1)
    send("same first sequence, three records", producer, 0, 12, 3)
    send("across the last two batches", producer, 0, 10, 4)
    send("gap", producer, 0, 16)
    send("gap of many", producer, 0, 1000)
    send("sequence 0", producer, 0, 0)
    send("the next", producer, 0, 14)
    for version in (3, 5, 8, 10):
        send("gap", producer, 0, 30, version=version)
        send("long gone duplicate", producer, 0, 4, version=version)
    send("epoch up, sequence 5", producer, 1, 5)
    send("epoch up, sequence 0", producer, 1, 0)
    send("the same again", producer, 1, 0)
    send("epoch down", producer, 0, 16)
    send("epoch down, a duplicate's sequence", producer, 0, 14)
    send("epoch down, sequence 0", producer, 0, 0)
    send("epoch up by many", producer, 32767, 0)
    send("new producer at sequence 10", 1_000_002, 0, 10)
    send("its next", 1_000_002, 0, 12)
    send("new producer at epoch 5", 1_000_003, 5, 0)
    send("new producer near the end of sequences", 1_000_004, 0, _SEQUENCE_MAX - 1)
    send("after the wrap", 1_000_004, 0, 0)
    send("after the wrap, duplicate before it", 1_000_004, 0, _SEQUENCE_MAX - 1)
    send("new producer across the wrap", 1_000_005, 0, _SEQUENCE_MAX, 3)
    send("across the wrap again", 1_000_005, 0, _SEQUENCE_MAX, 3)
    send("after the wrap", 1_000_005, 0, 2)
    send("2^31 - 1 then 0 missed", 1_000_005, 0, 5)
    send("sequence -1", 1_000_006, 0, -1)
    send("sequence -2", 1_000_006, 0, -2)
    send("epoch -1", 1_000_006, -1, 0)
    interleaved = batch(records(b"a"))
    talk.ask("Produce", 9, _fields(topic, interleaved), note="another producer without id in between")
    send("goes on after it", 1_000_002, 0, 14)
    send("goes on, one record more", 1_000_002, 0, 16, 3)
    send("duplicate by first and last sequence", 1_000_002, 0, 16, 3)
    asked = {"topics": [{"name": topic, "partition_indexes": [0]}]}
    talk.ask("DescribeProducers", 0, asked, note="producers afterwards")
    _show_log(talk, topic)


def describe_producers(talk: Conversation) -> None:
    """DescribeProducers of what does not exist."""
    topic = talk.create("a", partitions=2)
    for note, name, indexes in (
        ("no producers", topic, [0, 1]),
        ("unknown partitions", topic, [5, -1]),
        ("one partition twice", topic, [0, 0]),
        ("unknown topic", talk.topic("none"), [0, 1]),
        ("no partitions", topic, []),
        ("bad name", "a b", [0]),
        ("empty name", "", [0]),
    ):
        talk.ask("DescribeProducers", 0, {"topics": [{"name": name, "partition_indexes": indexes}]}, note=note)
    talk.ask("DescribeProducers", 0, {"topics": []}, note="no topics")


def init_producer_id(talk: Conversation) -> None:
    """InitProducerId of idempotent producers."""
    plain = {"transactional_id": None, "transaction_timeout_ms": 1000}
    talk.until_ready("InitProducerId", 0, plain)
    talk.every("InitProducerId", plain, note="plain", versions=range(6))
    for timeout in (0, -1, 2**31 - 1):
        fields = plain | {"transaction_timeout_ms": timeout}
        talk.every("InitProducerId", fields, note=f"timeout {timeout}", versions=(0, 5))
    for producer_id, epoch in ((12345, 3), (12345, -1), (-1, 3), (12345, 32767), (-2, -2)):
        talk.normaliser.keep(producer_id)
        fields = plain | {"producer_id": producer_id, "producer_epoch": epoch}
        talk.every("InitProducerId", fields, note=f"producer {producer_id}, epoch {epoch}", versions=(3, 5))
    talk.every("InitProducerId", plain | {"transactional_id": ""}, note="transactional id empty", versions=(0, 5))
    talk.ask("InitProducerId", 0, raw=b"\xff\xff", note="body cut off")


def produce_in_part(talk: Conversation) -> None:
    """Requests of several partitions of which some are refused, and which reason is told first."""
    topic = talk.create("a", partitions=2)
    sound, garbage, short = batch(), batch(magic=3), batch(length_change=-60)
    transactional = batch(attributes=TRANSACTIONAL, producer=(-1, -1, -1))
    pairs = {
        "sound, magic 3": (sound, garbage),
        "magic 3, sound": (garbage, sound),
        "sound, record size 1": (sound, short),
        "sound, bad CRC": (sound, batch(crc_change=1)),
        "no bytes, sound": (b"", sound),
        "magic 1, sound": (legacy_message_set(1), sound),
        "cut off, sound": (sound[:-3], sound),
        "two batches, sound": (sound + sound, sound),
        "a batch and one of magic 3, sound": (sound + garbage, sound),
        "transactional, magic 3": (transactional, garbage),
        "magic 3, transactional": (garbage, transactional),
        "cut off and transactional, sound": (transactional[:-3], sound),
        "sound and transactional in one, sound": (sound + transactional, sound),
        "zstd, sound": (batch(codec=ZSTD), sound),
    }
    for what, pair in pairs.items():
        parts = [{"index": index, "records": content} for index, content in enumerate(pair)]
        data = [{"name": topic, "partition_data": parts}, {"name": topic + "b", "partition_data": []}]
        for acks in (-1, 2):
            fields = {"acks": acks, "timeout_ms": 5000, "topic_data": data}
            talk.every("Produce", fields, note=f"{what}, acks {acks}", versions=(6, 9))
    for what, content in {"magic 3": garbage, "record size 1": short, "no bytes": b"", "sound": sound}.items():
        talk.ask("Produce", 9, _fields(topic, content, partition=9), note=f"{what}, to a partition that is not there")
    for version in (6, 7):
        talk.ask("Produce", version, _fields(topic, batch(attributes=6)), note="codec 6")
    for epoch in (-1, -2, -(2**15)):
        content = batch(producer=(1_000_100 - epoch, epoch, 0))
        talk.ask("Produce", 9, _fields(topic, content), note=f"the first batch of a producer, of epoch {epoch}")
    _show_log(talk, topic)
