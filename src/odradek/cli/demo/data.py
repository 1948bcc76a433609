"""Pure core: the demo's data set as records, and what must hold of them when they come back."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from .zones import moment_text, offset_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .zones import Transition


class DemoRecord(NamedTuple):
    """A record as it is produced, and as it must come back."""

    key: bytes
    value: bytes
    timestamp: int

    @property
    def moment(self) -> bytes:
        """When it was, in ISO 8601: the value's member `at`, without parsing the rest."""
        return self.value.partition(b'"at": "')[2].partition(b'"')[0]

    @property
    def change(self) -> dict[str, Any]:
        """What the value says."""
        change: dict[str, Any] = json.loads(self.value)
        return change


def record_of(transition: Transition) -> DemoRecord:
    """Return a change of a zone's clocks as a record.

    The timestamp is the moment of the change; Kafka's timestamps begin in 1970, so older changes have that of 1970.
    """
    value = {
        "zone": transition.zone,
        "at": moment_text(transition.at),
        "before": offset_text(transition.before_s),
        "after": offset_text(transition.after_s),
        "abbreviation": transition.abbreviation,
        "dst": transition.is_dst,
    }
    return DemoRecord(transition.zone.encode(), json.dumps(value).encode(), max(transition.at, 0) * 1000)


def checksum(records: Iterable[DemoRecord]) -> str:
    """Return a digest of records and their order."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(struct.pack(">qii", record.timestamp, len(record.key), len(record.value)))
        digest.update(record.key + record.value)
    return digest.hexdigest()


def keys_out_of_order(partitions: Mapping[int, Sequence[DemoRecord]]) -> list[str]:
    """Return the zones whose history is not in time order, or not all in one partition."""
    wrong: set[str] = set()
    homes: dict[bytes, int] = {}
    latest: dict[bytes, bytes] = {}
    for number, records in partitions.items():
        for record in records:
            moment = record.moment
            if homes.setdefault(record.key, number) != number or moment < latest.get(record.key, b""):
                wrong.add(record.key.decode())
            latest[record.key] = moment
    return sorted(wrong)


def first_at_or_after(records: Iterable[DemoRecord], timestamp: int) -> DemoRecord | None:
    """Return the record that comes first among those that are not earlier than a time."""
    return min(
        (record for record in records if record.timestamp >= timestamp),
        key=lambda record: record.timestamp,
        default=None,
    )


class Segment(NamedTuple):
    """A segment as `odradek log dump` sees it; entries are (offset, position) and (timestamp, offset)."""

    name: str
    batches_count: int
    records_count: int
    size_bytes: int
    entries: tuple[tuple[int, int], ...]
    time_entries: tuple[tuple[int, int], ...]


def segments_of(lines: Iterable[str]) -> tuple[list[Segment], list[str]]:
    """Read what `odradek log dump --json` wrote of one partition.

    Returns:
        The segments in order, and what is damaged.
    """
    rows: dict[str, dict[str, list[dict[str, Any]]]] = {}
    problems = []
    for line in lines:
        row = json.loads(line)
        name = row["file"].rpartition("/")[2].partition(".")[0]
        if row["kind"] == "problem":
            problems.append(line)
        elif name.isdecimal():
            rows.setdefault(name, {}).setdefault(row["kind"], []).append(row)
    segments = []
    for name, kinds in sorted(rows.items()):
        batches = kinds.get("batch", [])
        segments.append(
            Segment(
                name,
                len(batches),
                sum(batch["count"] for batch in batches),
                sum(batch["size"] for batch in batches),
                tuple((entry["offset"], entry["position"]) for entry in kinds.get("index", [])),
                tuple((entry["timestamp"], entry["offset"]) for entry in kinds.get("timeindex", [])),
            )
        )
    return segments, problems
