"""Fetch: offsets, limits, epochs, isolation, waiting, fetch sessions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from ..batches import GZIP, ZSTD, batch, record, records
from ..codec import encode_request
from ..conversation import NO_ID, UNKNOWN_ID, decode_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..conversation import Conversation

_ALL = range(4, 19)
_MIB = 1 << 20


def _topic(name: str, *partitions: Mapping[str, Any], topic_id: uuid.UUID = NO_ID) -> dict[str, Any]:
    return {"topic": name, "topic_id": topic_id, "partitions": list(partitions)}


def _at(offset: int, partition: int = 0, *, most: int = _MIB, **more: Any) -> dict[str, Any]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": most, **more}


def _fields(*topics: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": _MIB, "topics": list(topics), **more}


def _filled(talk: Conversation, suffix: str = "a", *, partitions: int = 1) -> tuple[str, uuid.UUID]:
    """Create a topic whose partitions hold offsets 0-1, 2-4, 5."""
    name = talk.create(suffix, partitions=partitions)
    for partition in range(partitions):
        three = batch(records(b"a", b"b")), batch(records(b"c", b"d", b"e")), batch([record(b"f" * 100)])
        talk.produce(name, *three, partition=partition)
    return name, talk.topic_id(name)


def fetch_plain(talk: Conversation) -> None:
    """Fetch in every version, from every kind of offset."""
    name, topic_id = _filled(talk)
    talk.every("Fetch", _fields(_topic(name, _at(0), topic_id=topic_id)), note="from 0")
    for isolation in (1, 2, -1):
        fields = _fields(_topic(name, _at(0), topic_id=topic_id), isolation_level=isolation)
        talk.every("Fetch", fields, note=f"isolation level {isolation}", versions=(4, 5, 11, 12, 17))
    for offset in (1, 2, 3, 5, 6, 7, -1, -2, 2**63 - 1):
        fields = _fields(_topic(name, _at(offset), topic_id=topic_id))
        talk.every("Fetch", fields, note=f"from {offset}", versions=(4, 11, 12, 13))
    talk.every("Fetch", _fields(), note="no topics", versions=(4, 6, 7, 12, 13, 18))
    talk.every("Fetch", _fields(_topic(name, topic_id=topic_id)), note="no partitions", versions=(4, 7, 12, 13))
    twice = _topic(name, _at(0), _at(5), topic_id=topic_id)
    talk.every("Fetch", _fields(twice), note="one partition twice", versions=(4, 12, 13))
    empty = talk.create("empty")
    talk.every("Fetch", _fields(_topic(empty, _at(0), topic_id=talk.topic_id(empty))), note="empty log")
    talk.ask("Fetch", 4, raw=b"\xff\xff\xff\xff\x00", note="body cut off")


def fetch_unknown(talk: Conversation) -> None:
    """Fetch of what does not exist."""
    name, topic_id = _filled(talk)
    other, other_id = _filled(talk, "b")
    for version in (4, 7, 12, 13, 16, 18):
        unknown = _topic(talk.topic("none"), _at(0), topic_id=UNKNOWN_ID)
        talk.ask("Fetch", version, _fields(unknown), note="unknown topic")
        talk.ask("Fetch", version, _fields(_topic("", _at(0))), note="empty name, zero id")
        for partition in (7, -1):
            wrong = _topic(name, _at(0, partition), topic_id=topic_id)
            talk.ask("Fetch", version, _fields(wrong), note=f"partition {partition}")
        good = _topic(other, _at(0), topic_id=other_id)
        talk.ask("Fetch", version, _fields(unknown, good), note="unknown topic, then a known one")
        impossible = _fields(unknown, isolation_level=7)
        talk.ask("Fetch", version, impossible, note="unknown topic, isolation level 7")
        impossible = _fields(unknown, good, isolation_level=7)
        talk.ask("Fetch", version, impossible, note="unknown topic, then a known one, isolation level 7")
    talk.ask("Fetch", 12, _fields(_topic("a b", _at(0))), note="bad name")


def fetch_limits(talk: Conversation) -> None:
    """Fetch limits in bytes: the first batch always comes whole (KIP-74)."""
    name, topic_id = _filled(talk, partitions=2)
    first = len(batch(records(b"a", b"b")))
    second = len(batch(records(b"c", b"d", b"e")))
    for most in (0, -1, 1, first - 1, first, first + 1, first + second, 2**31 - 1):
        one = _topic(name, _at(0, most=most), topic_id=topic_id)
        talk.every("Fetch", _fields(one), note=f"partition_max_bytes {most}", versions=(4, 12, 13))
        one = _topic(name, _at(0), topic_id=topic_id)
        talk.every("Fetch", _fields(one, max_bytes=most), note=f"max_bytes {most}", versions=(4, 13))
        both = _topic(name, _at(0, most=most), _at(0, 1, most=most), topic_id=topic_id)
        talk.ask("Fetch", 13, _fields(both), note=f"two partitions, partition_max_bytes {most}")
        both = _topic(name, _at(0, 1), _at(0), topic_id=topic_id)
        talk.ask("Fetch", 13, _fields(both, max_bytes=most), note=f"two partitions, max_bytes {most}")
    for least in (-1, 0, 1, 100, 2**31 - 1):
        one = _topic(name, _at(0), topic_id=topic_id)
        talk.ask("Fetch", 13, _fields(one, min_bytes=least, max_wait_ms=100), note=f"min_bytes {least}")
        one = _topic(name, _at(6), topic_id=topic_id)
        talk.ask("Fetch", 13, _fields(one, min_bytes=least, max_wait_ms=100), note=f"min_bytes {least}, at the end")
    late = _fields(_topic(name, _at(6), topic_id=topic_id), max_wait_ms=-1, min_bytes=1)
    talk.ask("Fetch", 13, late, note="max_wait_ms -1, at the end")
    wrong = _topic(name, _at(6), _at(99, 1), topic_id=topic_id)
    talk.ask("Fetch", 13, _fields(wrong, max_wait_ms=9000, min_bytes=1), note="an error ends the wait")


def fetch_waits(talk: Conversation) -> None:
    """A fetch that waits is woken by what is produced."""
    name, topic_id = _filled(talk)
    for at, version in enumerate((4, 11, 13), 6):
        fields = _fields(_topic(name, _at(at), topic_id=topic_id), max_wait_ms=15_000, min_bytes=1)
        connection = talk.connection("waiting")
        correlation_id = talk.send("Fetch", version, encode_request("Fetch", version, fields), on="waiting")
        talk.produce(name, batch(records(b"new")))
        answer = decode_answer("Fetch", version, correlation_id, connection.receive())
        for partition in answer["responses"][0]["partitions"]:
            partition["high_watermark"] = partition["last_stable_offset"] = "<before or after the produce>"
        talk.note_answer("Fetch", version, "woken by a produce", answer)


def fetch_in_line(talk: Conversation) -> None:
    """What is asked behind a fetch that waits is answered after it."""
    name, topic_id = _filled(talk)
    waiting = _fields(_topic(name, _at(6), topic_id=topic_id), max_wait_ms=200, min_bytes=1)
    connection = talk.connection("line")
    sent = [
        talk.send("Fetch", 13, encode_request("Fetch", 13, waiting), on="line"),
        talk.send("ApiVersions", 0, b"", on="line"),
        talk.send("Fetch", 13, encode_request("Fetch", 13, {**waiting, "min_bytes": 0}), on="line"),
    ]
    received = []
    for _ in sent:
        answer = connection.receive()
        received.append(int.from_bytes(answer[:4], "big") if isinstance(answer, bytes) else answer.value)
    talk.note("Fetch", 13, "answers come in the order of the requests", received == sent)


def fetch_epochs(talk: Conversation) -> None:
    """Leader epochs in fetches."""
    name, topic_id = _filled(talk)
    for epoch in (-1, 0, 1, 99, -2):
        fields = _fields(_topic(name, _at(0, current_leader_epoch=epoch), topic_id=topic_id))
        talk.every("Fetch", fields, note=f"current_leader_epoch {epoch}", versions=(9, 12, 13, 16))
        fields = _fields(_topic(name, _at(3, last_fetched_epoch=epoch), topic_id=topic_id))
        talk.every("Fetch", fields, note=f"last_fetched_epoch {epoch}", versions=(12, 13, 18))
        fields = _fields(_topic(name, _at(99, last_fetched_epoch=epoch), topic_id=topic_id))
        talk.ask("Fetch", 13, fields, note=f"last_fetched_epoch {epoch}, beyond the end")
    for replica in (0, 1, 2, 99, -2, -3):
        fields = _fields(_topic(name, _at(0), topic_id=topic_id), replica_id=replica)
        talk.every("Fetch", fields, note=f"replica id {replica}", versions=(11, 14))
        state = {"replica_id": replica, "replica_epoch": -1}
        fields = _fields(_topic(name, _at(0), topic_id=topic_id), replica_state=state)
        talk.ask("Fetch", 15, fields, note=f"replica id {replica} in a tag")
    fields = _fields(_topic(name, _at(0), topic_id=topic_id), rack_id="somewhere")
    talk.every("Fetch", fields, note="rack", versions=(11, 13))
    for cluster in ("wrong", ""):
        fields = _fields(_topic(name, _at(0), topic_id=topic_id), cluster_id=cluster)
        talk.every("Fetch", fields, note=f"cluster id {cluster!r}", versions=(12, 13))


def fetch_committed_refused(talk: Conversation) -> None:
    """What is told of aborted transactions where nothing is read: nothing, no list, or an empty one."""
    name, topic_id = _filled(talk)
    asked = {
        "offset 99": _at(99),
        "partition 7": _at(0, 7),
        "leader epoch 5": _at(0, current_leader_epoch=5),
        "last fetched epoch 0, offset 99": _at(99, last_fetched_epoch=0),
        "last fetched epoch 5": _at(0, last_fetched_epoch=5),
    }
    for isolation in (0, 1):
        for what, partition in asked.items():
            fields = _fields(_topic(name, partition, topic_id=topic_id), isolation_level=isolation)
            talk.every("Fetch", fields, note=f"{what}, isolation level {isolation}", versions=(4, 9, 12, 13, 17))


def fetch_committed_cut(talk: Conversation) -> None:
    """What is told of aborted transactions where the limits leave no room for a second partition's first batch."""
    name, topic_id = _filled(talk, partitions=2)
    for isolation in (0, 1):
        for most in (0, 1, 60):
            for offset in (0, 6):
                fields = _fields(_topic(name, _at(0), _at(offset, 1, most=most), topic_id=topic_id))
                fields["isolation_level"] = isolation
                note = f"at most {most} bytes from {offset} of the second, isolation level {isolation}"
                talk.every("Fetch", fields, note=note, versions=(4, 12, 17))


def fetch_codecs(talk: Conversation) -> None:
    """Compressed batches in fetches; zstd needs version 10."""
    name = talk.create("a")
    topic_id = talk.topic_id(name)
    talk.produce(name, batch(records(b"a", b"b"), codec=GZIP))
    talk.every("Fetch", _fields(_topic(name, _at(1), topic_id=topic_id)), note="gzip", versions=(4, 12))
    talk.produce(name, batch(records(b"a", b"b"), codec=ZSTD))
    for version in (4, 8, 9, 10, 13):
        talk.ask("Fetch", version, _fields(_topic(name, _at(0), topic_id=topic_id)), note="gzip, then zstd")
        talk.ask("Fetch", version, _fields(_topic(name, _at(2), topic_id=topic_id)), note="zstd")


def _session_fields(session: int, epoch: int, *topics: Mapping[str, Any], forget: Sequence[Any] = ()) -> dict[str, Any]:
    return _fields(*topics, session_id=session, session_epoch=epoch, forgotten_topics_data=list(forget))


def fetch_sessions(talk: Conversation) -> None:
    """Fetch sessions (KIP-227), by name and by id."""
    for version in (7, 12, 13, 18):
        _hold_fetch_session(talk, version)


def fetch_by_strangers(talk: Conversation) -> None:
    """Fetches of brokers that hold no replica, without a session and in one."""
    name, topic_id = _filled(talk)
    for version in (9, 12, 14):
        for epoch in (-1, 0, 5):
            at = _topic(name, _at(6, current_leader_epoch=epoch), topic_id=topic_id)
            fields = _fields(at, replica_id=7, session_epoch=-1)
            talk.ask("Fetch", version, fields, note=f"replica id 7, leader epoch {epoch}")
            session = talk.ask(
                "Fetch", version, {**fields, "session_epoch": 0}, note=f"a session, leader epoch {epoch}"
            )
            for number in (1, 2):
                fields = {**_session_fields(session["session_id"], number), "replica_id": 7}
                talk.ask("Fetch", version, fields, note=f"nothing changed, leader epoch {epoch}, epoch {number}")


def fetch_session_diverging(talk: Conversation) -> None:
    """A partition of a session whose reader diverges, and then does not any more."""
    name, topic_id = _filled(talk)

    def ask(note: str, epoch: int, *partitions: Mapping[str, Any]) -> Any:
        topics = [_topic(name, *partitions, topic_id=topic_id)] if partitions else []
        return talk.ask("Fetch", 17, _session_fields(session, epoch, *topics), note=note)

    session = 0
    session = ask("a reader beyond the end of its last epoch", 0, _at(9, last_fetched_epoch=0))["session_id"]
    ask("still", 1)
    ask("at the end", 2, _at(6, last_fetched_epoch=0))
    ask("beyond it again", 3, _at(9, last_fetched_epoch=0))
    ask("of an epoch that never was", 4, _at(6, last_fetched_epoch=5))
    ask("at the end again", 5, _at(6, last_fetched_epoch=0))
    ask("nothing changed", 6)


def fetch_session_least(talk: Conversation) -> None:
    """Fetch of a session with the least of all ids."""
    name, topic_id = _filled(talk)
    for epoch in (1, -1):
        fields = _session_fields(-(2**31), epoch, _topic(name, _at(0), topic_id=topic_id))
        for version in (7, 13):
            talk.ask("Fetch", version, fields, note=f"epoch {epoch}")


def _hold_fetch_session(talk: Conversation, version: int) -> None:
    name, topic_id = _filled(talk, f"a{version}", partitions=2)
    other, other_id = _filled(talk, f"b{version}")
    both = _topic(name, _at(0), _at(6, 1), topic_id=topic_id)

    def ask(note: str, fields: Mapping[str, Any]) -> Any:
        return talk.ask("Fetch", version, fields, note=note)

    session = ask("a new session", _session_fields(0, 0, both))["session_id"]
    ask("nothing changed, epoch 1", _session_fields(session, 1))
    ask("epoch 1 again", _session_fields(session, 1))
    ask("epoch 2", _session_fields(session, 2))
    ask("epoch 9", _session_fields(session, 9))
    talk.produce(name, batch(), partition=1)
    ask("something new in partition 1", _session_fields(session, 3))
    ask("both at their ends", _session_fields(session, 4, _topic(name, _at(6), _at(7, 1), topic_id=topic_id)))
    ask("nothing new", _session_fields(session, 5))
    ask("a topic more", _session_fields(session, 6, _topic(other, _at(2), topic_id=other_id)))
    unknown = _topic(talk.topic("none"), _at(0), topic_id=UNKNOWN_ID)
    ask("an unknown topic more", _session_fields(session, 7, unknown))
    ask("the unknown topic again", _session_fields(session, 8))
    ask("an unknown partition more", _session_fields(session, 9, _topic(name, _at(0, 5), topic_id=topic_id)))
    ask("still unknown", _session_fields(session, 10))
    ask("out of range", _session_fields(session, 11, _topic(name, _at(99), topic_id=topic_id)))
    ask("still out of range", _session_fields(session, 12))
    forget = [
        {"topic": other, "topic_id": other_id, "partitions": [0]},
        {"topic": talk.topic("none"), "topic_id": UNKNOWN_ID, "partitions": [0]},
        {"topic": name, "topic_id": topic_id, "partitions": [5, 0]},
    ]
    ask("four forgotten", _session_fields(session, 13, forget=forget))
    ask("one forgotten again", _session_fields(session, 14, forget=forget[:1]))
    crossed = 12 if version >= 13 else 13
    talk.ask("Fetch", crossed, _session_fields(session, 15), note=f"session of v{version} in another kind of version")
    ask("after that, epoch 15", _session_fields(session, 15))
    ask("after that, epoch 16", _session_fields(session, 16))
    last = [{"topic": name, "topic_id": topic_id, "partitions": [1]}]
    ask("the last one forgotten", _session_fields(session, 17, forget=last))
    ask("after the last one", _session_fields(session, 18))
    for epoch in (1, 0, -1, -2, 2**31 - 1):
        ask(f"unknown session, epoch {epoch}", _session_fields(424242, epoch, both))
    for unknown_session in (0, -1):
        for epoch in (1, -1):
            ask(f"session {unknown_session}, epoch {epoch}", _session_fields(unknown_session, epoch, both))
    session = ask("a new session", _session_fields(0, 0, both))["session_id"]
    ask("closed, and read without", _session_fields(session, -1, both))
    ask("after it was closed", _session_fields(session, 1))
    session = ask("a new session", _session_fields(0, 0, both))["session_id"]
    second = ask("another in its place", _session_fields(session, 0, both))["session_id"]
    ask("the old one", _session_fields(session, 1))
    ask("the new one", _session_fields(second, 1))
    ask("a session of nothing", _session_fields(0, 0))
    ask("a session of nothing that exists", _session_fields(0, 0, unknown))
