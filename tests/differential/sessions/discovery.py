"""What clients ask first: ApiVersions, Metadata, DescribeCluster, DescribeTopicPartitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..connection import request_frame
from ..conversation import NO_ID, UNKNOWN_ID

if TYPE_CHECKING:
    from ..conversation import Conversation

_CLIENT = {"client_software_name": "diff", "client_software_version": "1.0"}
BAD_NAMES = {
    "empty": "",
    "a dot": ".",
    "two dots": "..",
    "with a space": "a b",
    "with a slash": "a/b",
    "not ASCII": "thé",
    "250 characters": "x" * 250,
}


def api_versions(talk: Conversation) -> None:
    """ApiVersions, right and wrong."""
    talk.every("ApiVersions", _CLIENT, note="plain")
    for wrong in ("", "-x", "x-", "a b", "ü", ".", "x/1"):
        for field in _CLIENT:
            talk.ask("ApiVersions", 3, _CLIENT | {field: wrong}, note=f"{field} {wrong!r}")
    talk.ask("ApiVersions", 4, _CLIENT | {"client_software_name": "a.b-c.1"}, note="dots and dashes inside a name")
    talk.ask("ApiVersions", 0, raw=b"\x01\x02\x03", note="bytes after the body")
    talk.ask("ApiVersions", 3, raw=b"\x05di", note="body cut off")
    talk.ask("ApiVersions", 3, raw=b"", note="no body")
    talk.ask("ApiVersions", 3, raw=b"\x00\x04one\x00", note="null name")
    talk.ask("ApiVersions", 3, raw=b"\x04one\x04two\x01\x63\x02hi", note="unknown tagged field")
    body = b"\x05diff\x041.0\x00"
    for version in (5, 6, 99, 32767, -1, -32768):
        frame = request_frame(18, version, 1, body, flexible=True)
        talk.ask_frame(frame, note=f"version {version}, the body of v4, answered in v0")
    for version in (5, 99, -1):
        talk.ask_frame(request_frame(18, version, 1, b"", flexible=True), note=f"version {version}, no body")
        talk.ask_frame(request_frame(18, version, 1, b"", flexible=False), note=f"version {version}, old header")
    talk.ask_frame(request_frame(18, 0, 1, b"", flexible=False, client_id=None), note="null client id")
    talk.ask_frame(request_frame(18, 0, 1, b"", flexible=False, client_id=b""), note="empty client id")
    talk.ask_frame(request_frame(18, 0, 1, b"", flexible=False, client_id=b"\xff\xfe"), note="client id not UTF-8")


def odd_requests(talk: Conversation) -> None:
    """Keys and versions that do not exist, frames that are none."""
    for key in (4, 5, 6, 7, 93, 94, 100, 32767, -1, -32768):
        talk.ask_frame(request_frame(key, 0, 1, b"", flexible=False), note=f"api key {key}")
    for key, version in ((52, 0), (58, 0), (62, 0), (63, 0), (67, 0)):
        talk.ask_frame(request_frame(key, version, 1, b"\0" * 40, flexible=True), note=f"controller's api key {key}")
    odd = (
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 14),
        (0, -1),
        (1, 3),
        (1, 19),
        (2, 0),
        (2, 12),
        (3, 14),
        (3, -1),
        (19, 1),
        (19, 8),
    )
    for key, version in odd:
        frame = request_frame(key, version, 1, b"\0" * 40, flexible=version > 8)
        talk.ask_frame(frame, note=f"api key {key} in version {version}")
    talk.ask_frame(b"\0\0\0\0", note="frame of no bytes")
    talk.ask_frame(b"\xff\xff\xff\xff", note="frame of -1 bytes")
    talk.ask_frame(b"\x7f\xff\xff\xff", note="frame of 2 GiB")
    talk.ask_frame(b"\x06\x40\x00\x01", note="frame of 100 MiB and a byte")
    talk.ask_frame(b"GET / HTTP/1.1\r\nHost: odradek\r\n\r\n", note="HTTP")
    talk.ask_frame(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", note="TLS", expects_silence=True)
    for length in range(1, 8):
        talk.ask_frame(b"\0\0\0" + bytes([length]) + b"\0\x12\0\0\0\0\0\1"[:length], note=f"header of {length} bytes")
    talk.ask_frame(b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\0\x09", note="client id longer than the frame")
    talk.ask_frame(b"\0\0\0\x0a\0\x12\0\0\0\0\0\1\xff\xfe", note="client id of length -2")
    talk.ask_frame(b"\0\0\0\x64\0\x12", note="half a frame", expects_silence=True)


def pipelining(talk: Conversation) -> None:
    """Several requests at once are answered one after the other, in order."""
    connection = talk.connection("pipe")
    frames = b"".join(request_frame(18, 0, number, b"", flexible=False) for number in (7, 7, -1, 2**31 - 1, -(2**31)))
    connection.send(frames)
    order = []
    for _ in range(5):
        answer = connection.receive()
        order.append(int.from_bytes(answer[:4], "big", signed=True) if isinstance(answer, bytes) else answer.value)
    talk.note("ApiVersions", 0, "correlation ids of five answers", order)
    for what, bad in {
        "an unknown key": request_frame(94, 0, 1, b"", flexible=False),
        "an unknown version": request_frame(0, 2, 1, b"\0" * 40, flexible=False),
        "a body cut off": request_frame(3, 1, 1, b"\0\0\0\2\0\1a", flexible=False),
        "a frame of -1 bytes": b"\xff\xff\xff\xff",
        "a frame of 2 GiB": b"\x7f\xff\xff\xff",
        "a frame of no bytes": b"\0\0\0\0",
    }.items():
        connection = talk.connection(what)
        good = b"".join(request_frame(18, 0, number, b"", flexible=False) for number in (1, 2, 3))
        connection.send(good + bad + request_frame(18, 0, 5, b"", flexible=False))
        order = []
        while isinstance(answer := connection.receive(), bytes):
            order.append(int.from_bytes(answer[:4], "big", signed=True))
        talk.note("ApiVersions", 0, f"correlation ids of three answers before {what}", [*order, answer.value])


def metadata_plain(talk: Conversation) -> None:
    """Metadata of topics that exist."""
    one, two = talk.create("one", partitions=2), talk.create("two")
    talk.topic_id(one)
    talk.topic_id(two)
    asked = [{"name": two}, {"name": one}]
    talk.every("Metadata", {"topics": asked}, note="two topics")
    talk.every("Metadata", {"topics": None}, note="all topics", versions=range(1, 14), own="topics")
    talk.every("Metadata", {"topics": []}, note="no topics (v0: all)", own="topics")
    talk.every("Metadata", {"topics": [{"name": one}, {"name": one}]}, note="one topic twice", versions=(0, 1, 9, 12))
    operations = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
    talk.every("Metadata", {"topics": [{"name": one}], **operations}, note="operations", versions=range(8, 14))
    talk.ask("Metadata", 1, raw=b"\xff\xff\xff\xfe", note="array length -2", own="topics")
    talk.ask("Metadata", 1, raw=b"\x00\x00\x00\x02\x00\x01a", note="fewer topics than told")
    talk.ask("Metadata", 1, raw=b"\x7f\xff\xff\xff", note="array length 2^31 - 1")
    talk.ask("Metadata", 1, raw=b"\x00\x00\x00\x01\xff\xff", note="null name")
    talk.ask("Metadata", 9, raw=b"\x02\x00\x00\x00\x00\x00\x00", note="null name")
    talk.ask("Metadata", 12, raw=b"\x00\x02\x00\x00", note="boolean of 2", own="topics")


def metadata_by_id(talk: Conversation) -> None:
    """Metadata by topic id."""
    name = talk.create("a")
    known = talk.topic_id(name)
    late = range(10, 14)
    talk.every("Metadata", {"topics": [{"topic_id": known, "name": None}]}, note="id", versions=late)
    talk.every("Metadata", {"topics": [{"topic_id": known, "name": name}]}, note="id and name", versions=late)
    talk.every("Metadata", {"topics": [{"topic_id": known, "name": "x"}]}, note="id and wrong name", versions=late)
    talk.every("Metadata", {"topics": [{"topic_id": UNKNOWN_ID, "name": None}]}, note="unknown id", versions=late)
    talk.every("Metadata", {"topics": [{"topic_id": NO_ID, "name": None}]}, note="neither", versions=late)
    mixed = [{"topic_id": known, "name": None}, {"topic_id": NO_ID, "name": name}]
    talk.every("Metadata", {"topics": mixed}, note="one by id, one by name", versions=late)
    mixed = [{"topic_id": known, "name": None}, {"topic_id": UNKNOWN_ID, "name": None}]
    talk.every("Metadata", {"topics": mixed}, note="known and unknown id", versions=(12, 13))


def metadata_unknown(talk: Conversation) -> None:
    """Metadata of topics that do not exist, without and with creating them."""
    unknown, known = {"name": talk.topic("none")}, {"name": talk.create("a")}
    no_create = {"allow_auto_topic_creation": False}
    talk.every("Metadata", {"topics": [unknown], **no_create}, note="unknown", versions=range(4, 14))
    talk.every("Metadata", {"topics": [unknown, known], **no_create}, note="unknown first", versions=(4, 12))
    operations = {"include_topic_authorized_operations": True, **no_create}
    named = {"topics": [unknown, {"name": "a b"}], **operations}
    talk.every("Metadata", named, note="operations of what is not there", versions=range(8, 14))
    by_id = {"topics": [{"name": None, "topic_id": UNKNOWN_ID}], **operations}
    talk.every("Metadata", by_id, note="operations of an unknown id", versions=(12, 13))
    for what, name in BAD_NAMES.items():
        for version in (1, 4, 9, 12):
            talk.ask("Metadata", version, {"topics": [{"name": name}]}, note=f"name {what}")
        talk.ask("Metadata", 12, {"topics": [{"name": name}], **no_create}, note=f"name {what}, creating nothing")
    for version in (0, 1, 3, 4, 8, 9, 10, 12, 13):
        name = talk.topic(f"auto{version}")
        talk.ask("Metadata", version, {"topics": [{"name": name}]}, note=f"{name}, which does not exist")
        talk.wait_served(name, 2)
        talk.topic_id(name)
        talk.ask("Metadata", version, {"topics": [{"name": name}]}, note=f"{name}, created by the question before")
    pair = [{"name": talk.topic("x.y")}, {"name": talk.topic("x_y")}]
    talk.ask("Metadata", 12, {"topics": pair}, note="names that collide, both unknown")


def describe_cluster(talk: Conversation) -> None:
    """DescribeCluster."""
    talk.every("DescribeCluster", {}, note="plain")
    talk.every("DescribeCluster", {"include_cluster_authorized_operations": True}, note="operations")
    talk.every("DescribeCluster", {"include_fenced_brokers": True}, note="fenced brokers", versions=[2])
    for kind in (0, 2, 3, -1):
        talk.every("DescribeCluster", {"endpoint_type": kind}, note=f"endpoint type {kind}", versions=(1, 2))


def describe_topic_partitions(talk: Conversation) -> None:
    """DescribeTopicPartitions, with its cursor and limit."""
    a, b = talk.create("a", partitions=3), talk.create("b", partitions=2)
    talk.topic_id(a)
    talk.topic_id(b)
    both = [{"name": b}, {"name": a}]

    def ask(note: str, topics: list[dict[str, str]], limit: int = 2000, cursor: tuple[str, int] | None = None) -> None:
        at = {"topic_name": cursor[0], "partition_index": cursor[1]} if cursor else None
        fields = {"topics": topics, "response_partition_limit": limit, "cursor": at}
        talk.ask("DescribeTopicPartitions", 0, fields, note=note, own="" if topics else "topics")

    ask("two topics", both)
    ask("one topic twice", [{"name": a}, {"name": a}])
    ask("all topics", [])
    ask("unknown", [{"name": talk.topic("none")}, {"name": a}])
    for what, name in BAD_NAMES.items():
        fields = {"topics": [{"name": name}], "response_partition_limit": 10, "cursor": None}
        talk.ask("DescribeTopicPartitions", 0, fields, note=f"name {what}")
    for limit in (1, 2, 3, 4, 5, 0, -1, 2**31 - 1):
        ask(f"limit {limit}", both, limit)
    ask("from a, 1", both, cursor=(a, 1))
    ask("from a, 1, limit 2", both, 2, cursor=(a, 1))
    ask("from b, 0", both, cursor=(b, 0))
    ask("from b, past its end", both, cursor=(b, 9))
    ask("from a, past its end", both, cursor=(a, 3))
    ask("from a, -1", both, cursor=(a, -1))
    ask("from a topic that is not asked for", [{"name": b}], cursor=(a, 1))
    ask("from an unknown topic", both, cursor=(talk.topic("aa"), 0))
    ask("from behind the last topic", both, cursor=(talk.topic("zz"), 0))


def topics_among_others(talk: Conversation) -> None:
    """Known topics beside unknown ones, and beside entries that say nothing."""
    b, d = talk.create("b", partitions=2), talk.create("d")
    known = talk.topic_id(b)
    talk.topic_id(d)
    empty = {"topic_id": NO_ID, "name": None}
    for what, topics in {
        "nothing, id": [empty, {"topic_id": known, "name": None}],
        "nothing, name": [empty, {"topic_id": NO_ID, "name": b}],
        "name, nothing, unknown id": [
            {"topic_id": NO_ID, "name": b},
            empty,
            {"topic_id": UNKNOWN_ID, "name": None},
        ],
    }.items():
        talk.every("Metadata", {"topics": topics}, note=what, versions=range(10, 14))
    names = [talk.topic(suffix) for suffix in "edcba"]

    def describe(note: str, *more: str, limit: int = 9, cursor: tuple[str, int] | None = None) -> None:
        fields = {
            "topics": [{"name": name} for name in (*names, *more)],
            "response_partition_limit": limit,
            "cursor": {"topic_name": cursor[0], "partition_index": cursor[1]} if cursor else None,
        }
        talk.ask("DescribeTopicPartitions", 0, fields, note=f"five topics, two known, {note}")

    for limit in (1, 2, 3, 4, 9):
        describe(f"limit {limit}", limit=limit)
    for name, index in ((names[4], 1), (names[3], 1), (names[2], 1), (names[0], 0)):
        describe(f"from {name}, {index}", cursor=(name, index))
    describe("and one without a name", "")
    describe("and one without a name, where the cursor is", "", cursor=("", 0))
    describe("and one without a name, before the cursor", "", cursor=(names[3], 0))
