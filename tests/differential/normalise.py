"""Pure core: answers made comparable: what depends on the run (ids, addresses, times) becomes a name.

Numbers that a session chose itself stay as they are; whatever is drawn by the broker is named by its kind and by the
order in which it was first seen, so that equal things stay equal and different things different.
"""

from __future__ import annotations

import hashlib
import re
import struct
import uuid
from typing import Any, Final

NOW: Final = "<now>"
TEXT: Final = "<text>"
_NEAR_MS: Final = 7_200_000
_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_TIMESTAMP: Final = re.compile(r"(?<!\d)(?:\d{13}|-\d{19})(?!\d)")
_MEMBER: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|^[A-Za-z0-9_-]{22}$")
"""The part of a member id that the broker draws: classic, and of the consumer protocol."""
_MEMBER_FIELDS: Final = ("member_id", "leader")
_ZERO_ID: Final = uuid.UUID(int=0)
_PATH_FIELDS: Final = ("log_dir",)
_NUMBERED: Final = {"producer_id": ("producer id", -1), "session_id": ("fetch session id", 0)}
"""Numbers that the broker draws: what they are called, and the one that stands for none."""
_BYTE_COUNTS: Final = ("total_bytes", "usable_bytes")
_KEYED: Final = {
    "api_keys": "api_key",
    "supported_features": "name",
    "finalized_features": "name",
    "configs": "name",
    "active_producers": "producer_id",
    "config_resources": "resource_name",
}
"""Lists without an order of their own, and the field that tells their entries apart."""


_UNORDERED: Final = {
    ("Produce", "partition_responses"): "index",
    ("DeleteTopics", "responses"): "name",
    ("DeleteGroups", "results"): "group_id",
    ("CreatePartitions", "results"): "name",
    ("AlterReplicaLogDirs", "partitions"): "partition_index",
    ("Metadata", "brokers"): "node_id",
    ("DescribeCluster", "brokers"): "broker_id",
    ("DescribeQuorum", "nodes"): "node_id",
    ("DescribeQuorum", "current_voters"): "replica_id",
    ("Metadata", "partitions"): "partition_index",
}
"""Lists whose order is chance in Kafka (hash tables of random ids, shuffles), and the field to sort them by."""


_SORTED_BY_NAME: Final = {"members": "member_id", "groups": "group_id", "transaction_states": "transactional_id"}
"""Lists without an order of their own, and the field to sort them by once what the broker drew has its name."""


def _natural(entry: tuple[str, object]) -> tuple[int, str]:
    return (int(entry[0]) if entry[0].isdigit() else 0, entry[0])


class Normaliser:
    """Makes the answers of one session comparable; keeps the names it gave until the session ends.

    Args:
        host: The broker's address.
        port: The broker's port.
        now_ms: When the session began: timestamps within two hours of it are the broker's own clock.
    """

    def __init__(self, *, host: str, port: int, now_ms: int) -> None:
        self._host, self._port, self.now_ms = host, port, now_ms
        self._api = ""
        self._names: dict[object, str] = {}
        self._counts: dict[str, int] = {}
        self._kept: set[object] = {_ZERO_ID}

    def keep(self, value: object) -> None:
        """Leave `value` as it is: the session chose it."""
        self._kept.add(value)

    def answer(self, api: str, decoded: dict[str, Any]) -> dict[str, Any]:
        """Return a comparable copy of an API's decoded answer."""
        self._api = api
        return self._fields(decoded)

    def _fields(self, decoded: dict[str, Any]) -> dict[str, Any]:
        return {name: self._field(name, value, decoded) for name, value in decoded.items()}

    def _field(self, name: str, value: Any, siblings: dict[str, Any]) -> Any:
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, list):
            if sort_by := _UNORDERED.get((self._api, name)):
                value = sorted(value, key=lambda item: str(item[sort_by]))
            key = _KEYED.get(name)
            if key and all(isinstance(item, dict) and key in item for item in value):
                entries = [
                    (str(self._field(key, item[key], {})), self._fields({k: v for k, v in item.items() if k != key}))
                    for item in value
                ]
                return dict(sorted(entries, key=_natural))
            items = [self._field(name, item, siblings) for item in value]
            sort_by = _SORTED_BY_NAME.get(name, "")
            if all(isinstance(item, dict) and sort_by in item for item in items):
                items.sort(key=lambda item: str(item[sort_by]))
            return items
        if isinstance(value, uuid.UUID):
            return self._topic_id(value, siblings)
        if isinstance(value, bytes | bytearray | memoryview):
            return self.batches(bytes(value)) if name == "records" else bytes(value).hex()
        if isinstance(value, str):
            return self._string(name, value)
        if isinstance(value, int) and not isinstance(value, bool):
            return self._integer(name, value)
        return value

    def _topic_id(self, value: uuid.UUID, siblings: dict[str, Any]) -> str:
        topic = siblings.get("name") or siblings.get("topic") or siblings.get("topic_name")
        if topic and value not in self._kept:
            self._names.setdefault(("id", value), f"<id of {topic}>")
        return self._named("id", value)

    def _string(self, name: str, value: str) -> str:
        if name == "cluster_id":
            return "<cluster id>"
        if name == "documentation":
            return TEXT
        if name == "host" and value == self._host:
            return "<host>"
        if name in _PATH_FIELDS:
            return self._named("log dir", value)
        if name in _MEMBER_FIELDS and value not in self._kept:
            return _MEMBER.sub(lambda found: self._named("member", found[0]), value)
        return _TIMESTAMP.sub(self._time, value)

    def _integer(self, name: str, value: int) -> int | str:
        if name == "port" and value == self._port:
            return "<port>"
        if name in _NUMBERED and value not in self._kept:
            kind, none = _NUMBERED[name]
            return value if value == none else self._named(kind, value)
        if name in _BYTE_COUNTS and value > 0:
            return "<bytes>"
        if name == "finalized_features_epoch" and value >= 0:
            return "<epoch>"
        return NOW if self._is_near_now(value) else value

    def _is_near_now(self, value: int) -> bool:
        return abs(value - self.now_ms) < _NEAR_MS

    def _time(self, digits: re.Match[str]) -> str:
        value = int(digits[0])
        return f"<now - {2**63 - 1}>" if self._is_near_now(value + 2**63 - 1) else str(self._integer("", value))

    def _named(self, kind: str, value: object) -> str:
        if value in self._kept:
            return str(value)
        if (kind, value) not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[kind, value] = f"<{kind} {self._counts[kind]}>"
        return self._names[kind, value]

    def batches(self, content: bytes) -> list[dict[str, Any]] | str:
        """Return the headers of the batches, each with a digest of its records; bytes cut off are counted."""
        found: list[dict[str, Any]] = []
        position = 0
        while position + _BATCH.size <= len(content):
            fields = _BATCH.unpack_from(content, position)
            end = position + fields[1] + 12
            if end > len(content) or fields[3] != 2:
                break
            found.append(self._batch(fields, content[position + _BATCH.size : end]))
            position = end
        if position < len(content):
            found.append({"cut_off_bytes": len(content) - position})
        return found or ""

    def _batch(self, fields: tuple[int, ...], payload: bytes) -> dict[str, Any]:
        offset, _, epoch, _, crc, attributes, last, base_ms, max_ms, *producer, count = fields
        is_the_same_always = producer[0] in (-1, *self._kept) and not self._is_near_now(max_ms)
        return {
            "base_offset": offset,
            "leader_epoch": epoch,
            "crc": f"{crc:08x}" if is_the_same_always else "<crc>",
            "attributes": attributes,
            "last_offset_delta": last,
            "timestamps": [self._integer("", base_ms), self._integer("", max_ms)],
            "producer": [self._integer("producer_id", producer[0]), *producer[1:]],
            "count": count,
            "payload": f"{len(payload)} bytes, sha256 {hashlib.sha256(payload).hexdigest()[:12]}",
        }
