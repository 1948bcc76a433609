"""Requests of several APIs in one piece: in which order they take effect, and what a client that leaves is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..batches import batch
from ..codec import api_key, encode_request, request_is_flexible
from ..connection import request_frame
from ..conversation import decode_answer

if TYPE_CHECKING:
    from ..conversation import Conversation, Fields


class _Asked(NamedTuple):
    """One request; `is_answered` is how a client knows what to wait for."""

    api: str
    version: int
    fields: Fields
    is_answered: bool = True

    def frame(self, correlation_id: int) -> bytes:
        body = encode_request(self.api, self.version, self.fields)
        flexible = request_is_flexible(self.api, self.version)
        return request_frame(api_key(self.api), self.version, correlation_id, body, flexible=flexible)


def _ask(talk: Conversation, note: str, *asked: _Asked, on: str = "together", leaves: bool = False) -> None:
    """Send all requests in one piece and note what comes.

    Args:
        talk: With whom.
        note: What is special about them.
        asked: The requests.
        on: Which connection.
        leaves: Whether the client says that it will send nothing more; then its end is noted, too.
    """
    connection = talk.connection(on)
    connection.send(b"".join(one.frame(number) for number, one in enumerate(asked)))
    if leaves:
        connection.end_sending()
    for number, one in enumerate(asked):
        if one.is_answered:
            answer = decode_answer(one.api, one.version, number, connection.receive())
            talk.note_answer(one.api, one.version, f"{note}, request {number}", answer)
    if leaves:
        talk.note_answer(asked[-1].api, asked[-1].version, f"{note}, behind the answers", connection.receive())


def _produce(topic: str, acks: int = 1, records: bytes = batch()) -> _Asked:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    return _Asked("Produce", 7, {"acks": acks, "timeout_ms": 20_000, "topic_data": data}, is_answered=acks != 0)


def _fetch(topic: str, offset: int, wait_ms: int = 0) -> _Asked:
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    topics = [{"topic": topic, "partitions": [part]}]
    return _Asked("Fetch", 11, {"max_wait_ms": wait_ms, "min_bytes": 1, "max_bytes": 1 << 20, "topics": topics})


def _latest(topic: str) -> _Asked:
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    return _Asked("ListOffsets", 1, {"replica_id": -1, "topics": topics})


def reads_behind_writes(talk: Conversation) -> None:
    """Who reads behind a Produce sees what it wrote, whatever its acks."""
    for acks in (0, 1, -1):
        topic = talk.create(f"acks{acks}")
        for end in range(8):
            asked = _produce(topic, acks), _fetch(topic, end), _latest(topic)
            _ask(talk, f"acks {acks}, the {end + 1}. time", *asked)
        _ask(talk, f"acks {acks}, three writes", *[_produce(topic, acks)] * 3, _latest(topic))


def reads_behind_failed_writes(talk: Conversation) -> None:
    """A Produce that fails ends its connection where it has no answer."""
    topic = talk.create("a")
    for acks in (0, 1):
        _ask(talk, f"acks {acks}, an unknown topic", _produce(talk.topic("none"), acks), _latest(topic))
        _ask(talk, f"acks {acks}, a wrong checksum", _produce(topic, acks, batch(crc_change=1)), _latest(topic))
    _ask(talk, "acks 5", _produce(topic, 5), _latest(topic))


def writes_behind_reads(talk: Conversation) -> None:
    """What is written behind a Fetch that waits is written when that was answered."""
    topic = talk.create("a")
    _ask(talk, "a fetch waits", _fetch(topic, 0, 200), _produce(topic), _latest(topic))
    _ask(talk, "two fetches", _fetch(topic, 1, 200), _fetch(topic, 0, 200))


def leaves_early(talk: Conversation) -> None:
    """A client that will send nothing more is answered, however long that takes."""
    topic = talk.create("a")
    _ask(talk, "a fetch waits", _fetch(topic, 0, 200), leaves=True)
    _ask(talk, "writes", *[_produce(topic, -1)] * 3, leaves=True)
    _ask(talk, "writes without an answer", *[_produce(topic, 0)] * 200, leaves=True)
    _ask(talk, "after all", _latest(topic))
