"""Shell: asks a real Apache Kafka what it makes of produced batches, and keeps the answers as golden bytes.

    python tests/records/record_produce_answers.py HOST:PORT VERSION

writes `golden/produce_answers.json`: what was sent, what was answered, and the batch as Kafka then stored it. Every
record of a run is made from the moment of the run, so that timestamps are in range. The broker needs no settings.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

import cramjam

from odradek.kernel.machine.clock import SystemClock
from odradek.kernel.records.batch import encode_batch, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.compression import CompressionType, compress
from odradek.kernel.records.record import encode_record, encode_varint

GOLDEN = Path(__file__).parent / "golden" / "produce_answers.json"
TIMEOUT_S = 10

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compact": {"cleanup.policy": "compact"},
    "stamped": {"message.timestamp.type": "LogAppendTime"},
    "stamped-compact": {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"},
    "window": {"message.timestamp.before.max.ms": "1000000", "message.timestamp.after.max.ms": "500000"},
    "small": {"max.message.bytes": "500"},
    "small-unpacked": {"max.message.bytes": "500", "compression.type": "uncompressed"},
    "uncompressed": {"compression.type": "uncompressed"},
    "gzip": {"compression.type": "gzip"},
    "snappy": {"compression.type": "snappy"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
}
NOW = SystemClock().now_ms()

Case = tuple[str, str, bytes, int]
"""Topic, name, records field, Produce version."""


class Wire:
    """One connection, one request at a time; Produce v3 to v8, Fetch v4, CreateTopics v4."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)

    def call(self, api_key: int, version: int, body: bytes) -> bytes:
        frame = struct.pack(">hhih", api_key, version, 1, -1) + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", self.receive(4))
        return self.receive(size)[4:]

    def receive(self, size: int) -> bytes:
        received = b""
        while len(received) < size:
            chunk = self.socket.recv(size - len(received))
            if not chunk:
                raise EOFError("closed")
            received += chunk
        return received

    def create_topic(self, name: str, configs: dict[str, str]) -> None:
        pairs = b"".join(text(key) + text(value) for key, value in configs.items())
        topic = text(name) + struct.pack(">ihi", 1, 1, 0) + struct.pack(">i", len(configs)) + pairs
        self.call(19, 4, struct.pack(">i", 1) + topic + struct.pack(">ib", 10_000, 0))

    def produce(self, topic: str, records: bytes, version: int) -> dict[str, Any]:
        body = struct.pack(">hhii", -1, -1, 5000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(records)) + records
        reader = Reader(self.call(0, version, body))
        reader.take(">i")
        reader.text()
        reader.take(">ii")
        code, offset, append_time = reader.take(">hqq")
        answer: dict[str, Any] = {"code": code, "base_offset": offset, "log_append_time_ms": append_time}
        if version >= 5:
            answer["log_start_offset"] = reader.take(">q")[0]
        if version >= 8:
            (count,) = reader.take(">i")
            answer["record_errors"] = [[reader.take(">i")[0], reader.text()] for _ in range(count)]
            answer["error_message"] = reader.text()
        return answer

    def fetch(self, topic: str, offset: int) -> bytes:
        body = (
            struct.pack(">iiiibi", -1, 1000, 1, 10**7, 0, 1) + text(topic) + struct.pack(">iiqi", 1, 0, offset, 10**7)
        )
        reader = Reader(self.call(1, 4, body))
        reader.take(">ii")
        reader.text()
        reader.take(">iihqq")
        (aborted,) = reader.take(">i")
        assert aborted <= 0
        (size,) = reader.take(">i")
        return reader.data[reader.position : reader.position + size]


class Reader:
    """Reads a response of no flexible version."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self.data, self.position)
        self.position += struct.calcsize(form)
        return values

    def text(self) -> str | None:
        (size,) = self.take(">h")
        if size < 0:
            return None
        self.position += size
        return self.data[self.position - size : self.position].decode()


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def build(*, count: int = 3, key: bytes | None = b"k", timestamp: int | None = None, **fields: Any) -> bytes:
    builder = BatchBuilder(**fields)
    for index in range(count):
        builder.append(key, b"v%d" % index, timestamp=(NOW if timestamp is None else timestamp) + index)
    return bytes(builder.build())


def edit(batch: bytes, payload: bytes | None = None, **fields: Any) -> bytes:
    """Return `batch` with other header fields or payload and a CRC to match; `length_bytes` is a lie if given."""
    header = read_header(batch)
    length = fields.pop("length_bytes", None)
    damage = fields.pop("damage_crc", False)
    for name, value in fields.items():
        setattr(header, name, value)
    edited = encode_batch(header, batch[61:] if payload is None else payload)
    if length is not None:
        edited[8:12] = struct.pack(">i", length - 12)
    edited[17] ^= damage
    return bytes(edited)


def records(
    *offset_deltas: int, timestamps: tuple[int, ...] = (), keys: tuple[bytes | None, ...] = (), **headers: bytes
) -> bytes:
    return b"".join(
        encode_record(
            timestamps[i] if timestamps else 0, delta, keys[i] if keys else b"k", b"v", tuple(headers.items())
        )
        for i, delta in enumerate(offset_deltas)
    )


GOOD = build()
PAYLOAD = bytes(GOOD[61:])
NULL_KEYS = records(0, 1, 2, keys=(None, b"k", None))


def packed(payload: bytes, codec: int = CompressionType.GZIP, **fields: Any) -> bytes:
    fields.setdefault("attributes", int(codec))
    return edit(GOOD, compress(codec, payload), **fields)


def framing_cases() -> dict[str, bytes]:
    cases: dict[str, bytes] = {"good": GOOD, "empty": b"", "last byte missing": GOOD[:-1]}
    cases |= {f"first {size} bytes": GOOD[:size] for size in (1, 11, 12, 16, 17, 60, 61)}
    cases |= {f"then {size} x": GOOD + b"x" * size for size in (1, 11, 12, 16, 17, 100)}
    cases |= {f"then {size} zeros": GOOD + bytes(size) for size in (1, 11, 12, 16, 17, 61)}
    cases |= {"two": GOOD + GOOD, "second cut": GOOD + GOOD[:-1], "second 17 bytes": GOOD + GOOD[:17]}
    lengths = (0, 7, 12, 25, 26, 60, 61, len(GOOD) - 1, len(GOOD) + 1, 2**31 - 1)
    cases |= {f"length {length}": edit(GOOD, length_bytes=length) for length in lengths}
    cases |= {f"magic {magic}": edit(GOOD, magic=magic) for magic in (0, 1, 3, 127, -1)}
    cases |= {f"batch of {size} bytes": edit(GOOD, length_bytes=size)[:size] for size in (25, 26, 30, 60, 61)}
    cases["magic 1 and two"] = edit(GOOD, magic=1) + GOOD
    return cases


def header_cases() -> dict[str, bytes]:
    cases: dict[str, bytes] = {"crc": edit(GOOD, damage_crc=True)}
    for count, last in ((4, 2), (2, 2), (0, 2), (-1, 2), (4, 3), (2, 1), (3, 3), (3, 1), (0, -1), (-4, -5)):
        cases[f"count {count} last delta {last}"] = edit(GOOD, records_count=count, last_offset_delta=last)
    cases["no records"] = edit(GOOD, b"", records_count=0, last_offset_delta=-1)
    cases["one counted, none there"] = edit(GOOD, b"", records_count=1, last_offset_delta=0)
    cases |= {f"base offset {offset}": edit(GOOD, base_offset=offset) for offset in (3, -7)}
    cases["leader epoch 9"] = edit(GOOD, partition_leader_epoch=9)
    cases["control"] = edit(GOOD, attributes=0x20)
    for producer_id, epoch, sequence in (
        (77, 0, -1), (77, 0, -5), (78, -1, 0), (-5, -1, -1), (-1, -1, 0), (-1, 3, -1), (79, 0, 0), (80, 0, 5)
    ):  # fmt: skip
        cases[f"producer {producer_id} epoch {epoch} sequence {sequence}"] = edit(
            GOOD, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
        )
    for attributes in (0x80, 0x4000, -0x8000, 0x08, 0x40, 5, 6, 7, 1, 2, 3, 4):
        cases[f"attributes {attributes:#x}"] = edit(GOOD, attributes=attributes)
    combined: dict[str, dict[str, Any]] = {
        "crc": {"damage_crc": True},
        "count": {"records_count": 2},
        "control": {"attributes": 0x25},
        "base offset": {"base_offset": 3},
        "sequence": {"producer_id": 3},
    }
    for name, fields in combined.items():
        cases[f"codec 5 and {name}"] = edit(GOOD, **{"attributes": 5, **fields})
    return cases


def timestamp_cases() -> dict[str, bytes]:
    cases: dict[str, bytes] = {}
    for base, most in ((0, -10), (0, 100), (0, -NOW - 1), (-NOW - 1, -NOW - 1), (-NOW - 5, 2), (0, -NOW - 5)):
        cases[f"base now{base:+} max now{most:+}".replace(str(NOW), "NOW")] = edit(
            GOOD, base_timestamp=NOW + base, max_timestamp=NOW + most
        )
    cases["deltas back and forth"] = edit(GOOD, records(0, 1, 2, timestamps=(0, -5, 10**6)))
    cases["timestamps -1"] = edit(GOOD, records(0, 1, 2, timestamps=(-1, -1, -1)), base_timestamp=0, max_timestamp=0)
    cases["timestamps -2"] = edit(GOOD, records(0, 1, 2, timestamps=(-2, -1, -1)), base_timestamp=0, max_timestamp=0)
    cases["max too high, lz4"] = packed(PAYLOAD, 3, max_timestamp=NOW + 100)
    cases["stamped, gzip"] = packed(PAYLOAD, attributes=9)
    cases["unknown bit and max too high"] = edit(GOOD, attributes=0x80, max_timestamp=NOW + 100)
    cases["horizon and max too high"] = edit(GOOD, attributes=0x40, max_timestamp=NOW + 100)
    cases["two hours ahead"] = build(timestamp=NOW + 7_200_000)
    cases["1970"] = build(timestamp=1)
    return cases


def record_cases() -> dict[str, bytes]:
    def sized(body: bytes) -> bytes:
        return encode_varint(len(body)) + body

    rest = b"\0\0\2k\2v\0"
    body = b"\0" + rest
    single = {
        "one": sized(body),
        "offset varint of 6 bytes": sized(b"\0\0" + b"\x80" * 5 + body[2:]),
        "offset varint of 5 bytes": sized(b"\0\0" + b"\x80" * 4 + body[2:]),
        "timestamp varlong of 10 bytes": sized(b"\0" + b"\x80" * 9 + rest),
        "timestamp varlong of 11 bytes": sized(b"\0" + b"\x80" * 10 + rest),
        "timestamp far below": sized(b"\0" + b"\xff" * 9 + b"\x7f" + rest[1:]),
        "key length -2": sized(b"\0\0\0\3" + b"\2v\0"),
        "value length -2": sized(b"\0\0\0\1\3\0"),
        "key too long": sized(b"\0\0\0\x7ek\2v\0"),
        "headers -1": sized(body[:-1] + b"\1"),
        "headers 60": sized(body[:-1] + b"\x78"),
        "header with null key": sized(body[:-1] + b"\2\1\1"),
        "header with null value": sized(body[:-1] + b"\2\2h\1"),
        "header with value length -2": sized(body[:-1] + b"\2\2h\3"),
        "header key not UTF-8": sized(body[:-1] + b"\2\2\xff\1"),
        "record attributes": sized(b"\x7f" + rest),
        "record length short": encode_varint(len(body) - 1) + body,
        "record length long": encode_varint(len(body) + 1) + body,
        "record cut": sized(body)[:-1],
        "record length -1": b"\1" + body,
        "offset delta -1": sized(b"\0\0\1" + rest[2:]),
        "offset delta 1": sized(b"\0\0\2" + rest[2:]),
    }
    many = {
        "deltas 0 2 5": records(0, 2, 5),
        "deltas 0 0 0": records(0, 0, 0),
        "deltas 2 1 0": records(2, 1, 0),
        "a byte after": PAYLOAD + b"x",
        "headers": records(0, 1, 2, a=b"1", b=b""),
    }
    cases: dict[str, bytes] = {}
    for codec in (0, CompressionType.GZIP, CompressionType.LZ4):
        for name, payload in single.items():
            cases[f"{name}, codec {codec}"] = packed(payload, codec, records_count=1, last_offset_delta=0)
        for name, payload in many.items():
            cases[f"{name}, codec {codec}"] = packed(payload, codec)
    return cases


def codec_cases() -> dict[str, bytes]:
    linked = cramjam.lz4.Compressor(None, True, True)
    linked.compress(PAYLOAD)
    cases: dict[str, bytes] = {f"codec {codec}": packed(PAYLOAD, codec) for codec in range(5)}
    cases["snappy raw"] = edit(GOOD, bytes(cramjam.snappy.compress_raw(PAYLOAD)), attributes=2)
    cases["snappy's own framing"] = edit(GOOD, bytes(cramjam.snappy.compress(PAYLOAD)), attributes=2)
    cases["gzip of two members"] = edit(GOOD, compress(1, PAYLOAD[:5]) + compress(1, PAYLOAD[5:]), attributes=1)
    cases["zstd of two frames"] = edit(GOOD, compress(4, PAYLOAD[:5]) + compress(4, PAYLOAD[5:]), attributes=4)
    cases["gzip cut"] = edit(GOOD, compress(1, PAYLOAD)[:-3], attributes=1)
    cases["lz4 with linked blocks"] = edit(GOOD, bytes(linked.finish()), attributes=3)
    cases["lz4 of two frames"] = edit(GOOD, compress(3, PAYLOAD[:5]) + compress(3, PAYLOAD[5:]), attributes=3)
    cases["gzip then zzz"] = edit(GOOD, compress(1, PAYLOAD) + b"zzz", attributes=1)
    cases["lz4 then zzz"] = edit(GOOD, compress(3, PAYLOAD) + b"zzz", attributes=3)
    return cases


def all_cases() -> list[Case]:
    everything = framing_cases() | header_cases() | timestamp_cases() | record_cases() | codec_cases()
    cases: list[Case] = [("plain", name, bytes(sent), 8) for name, sent in everything.items()]
    cases += [("plain", f"zstd v{version}", packed(PAYLOAD, 4), version) for version in (3, 6, 7)]
    cases += [("plain", "zstd v6 and crc", edit(packed(PAYLOAD, 4), damage_crc=True), 6)]
    keys = {
        "null keys": edit(GOOD, NULL_KEYS),
        "null keys, gzip": packed(NULL_KEYS),
        "five null keys": edit(GOOD, records(*range(5), keys=(None,) * 5), records_count=5, last_offset_delta=4),
        "null keys and gaps": edit(GOOD, records(0, 5, 9, keys=(None, b"", None))),
        "null keys and base offset": edit(GOOD, NULL_KEYS, base_offset=3),
        "empty keys": edit(GOOD, records(0, 1, 2, keys=(b"", b"", b""))),
        "null keys, stamped": edit(GOOD, NULL_KEYS, attributes=8),
        "null keys, stamped, gzip": packed(NULL_KEYS, attributes=9),
        "stamped": edit(GOOD, attributes=8),
        "none": GOOD,
        "gzip": packed(PAYLOAD),
        "unknown bit": edit(GOOD, attributes=0x80),
        "horizon": edit(GOOD, attributes=0x40),
        "gaps": edit(GOOD, records(0, 2, 5)),
        "gaps, gzip": packed(records(0, 2, 5)),
        "no timestamps": edit(GOOD, base_timestamp=-1, max_timestamp=-1),
    }
    for topic in ("compact", "stamped", "stamped-compact"):
        cases += [(topic, name, bytes(sent), 8) for name, sent in keys.items()]
    for name, offset in (("old", -1_100_000), ("old enough", -900_000), ("ahead", 600_000), ("bit ahead", 400_000)):
        cases += [("window", name, build(timestamp=NOW + offset), 8)]
        cases += [("window", f"{name}, zstd", build(timestamp=NOW + offset, compression=CompressionType.ZSTD), 8)]
    mixed = edit(GOOD, records(0, 1, 2, timestamps=(0, -2_000_000, 2_000_000)))
    cases += [
        ("window", "no timestamps", build(count=1, timestamp=-1), 8),
        ("window", "negative", build(timestamp=-5), 8),
        ("window", "one old, one ahead", bytes(mixed), 8),
        ("window", "header's max far ahead", edit(GOOD, max_timestamp=NOW + 10**9), 8),
        ("window", "malformed and old", edit(GOOD, PAYLOAD[:-1], base_timestamp=5, max_timestamp=5), 8),
        ("window", "gaps and old, gzip", packed(records(0, 2, 5), base_timestamp=5, max_timestamp=5), 8),
    ]
    for size in (499, 500, 501):
        batch = build(count=1, key=b"x" * (size - len(build(count=1, key=b"x" * 300)) + 300))
        assert len(batch) == size
        cases += [("small", f"{size} bytes", bytes(batch), 8)]
    cases += [
        ("small", "600 bytes and crc", edit(build(key=b"x" * 200), damage_crc=True), 8),
        ("small", "600 bytes and control", edit(build(key=b"x" * 200), attributes=0x20), 8),
        ("small", "600 bytes twice", (build(key=b"x" * 200) * 2), 8),
        ("small-unpacked", "129 bytes that unpack to more", packed(records(0, 1, 2, keys=(b"x" * 900,) * 3)), 8),
    ]
    for topic in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
        cases += [(topic, f"codec {codec}", packed(PAYLOAD, codec), 8) for codec in range(6) if codec < 5]
        cases += [
            (topic, "codec 5", edit(GOOD, attributes=5), 8),
            (topic, "malformed", edit(GOOD, PAYLOAD[:-1]), 8),
            (topic, "undecodable gzip", edit(GOOD, attributes=1), 8),
            (topic, "horizon", edit(GOOD, attributes=0x40), 8),
            (topic, "unknown bit", edit(GOOD, attributes=0x80), 8),
            (topic, "stamped", edit(GOOD, attributes=8), 8),
            (topic, "max too high", edit(GOOD, max_timestamp=NOW + 100), 8),
            (topic, "other base", edit(GOOD, records(0, 1, 2, timestamps=(10, 20, 5)), max_timestamp=NOW), 8),
            (topic, "gaps", edit(GOOD, records(0, 2, 5)), 8),
            (topic, "gaps, zstd", packed(records(0, 2, 5), 4), 8),
            (topic, "idempotent", build(producer_id=500, producer_epoch=0, base_sequence=0), 8),
        ]
    return cases


def main(address: str, version: str) -> None:
    wire = Wire(address)
    prefix = f"golden-{NOW}-"
    for name, configs in TOPICS.items():
        wire.create_topic(prefix + name, configs)
    time.sleep(2)
    kept = []
    for topic, name, sent, produce_version in all_cases():
        sent_at_ms = SystemClock().now_ms()
        answer = wire.produce(prefix + topic, sent, produce_version)
        kept.append(
            {
                "name": f"{topic}: {name}",
                "topic": topic,
                "produce_version": produce_version,
                "sent_at_ms": sent_at_ms,
                "sent": sent.hex(),
                "answer": json.loads(json.dumps(answer).replace(prefix, "")),
                "stored": None if answer["code"] else wire.fetch(prefix + topic, answer["base_offset"]).hex(),
            }
        )
    golden = {"origin": f"Apache Kafka {version}, asked over TCP", "topics": TOPICS, "cases": kept}
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")
    sys.stdout.write(f"{len(kept)} answers in {GOLDEN}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
