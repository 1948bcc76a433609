"""Pure core: what was acknowledged, and what became of it, record by record.

Whoever reads a topic from its beginning gives what came to a `Reading`, which compares it with the ledger. A record
that is not there is *removed* where the topic's settings allow it, and *lost* where they do not:

| `cleanup.policy` | what may be gone |
| --- | --- |
| `delete` | what is below the log start offset, if `retention.ms` or `retention.bytes` sets a limit |
| `compact` | records that a later one of the same key replaced; tombstones |
| a policy that is not Kafka's | anything: what it may remove is not known here |

A policy removes records and leaves the log's end where it is. So what stood beyond an end that went back, as after the
death of a process that kept its log in memory, was lost whatever the policy (`Reading.gone_since`).

Records of aborted transactions must not come at all, unless the reader asked for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from .record_plan import RecordPlan

KAFKAS_POLICIES: Final = frozenset({"delete", "compact"})
NO_LIMIT: Final = "-1"


@attrs.frozen
class Allowance:
    """What may be gone without being lost.

    Attributes:
        expires: What is below the log start offset.
        compacts: What a later record of the same key replaced, and tombstones.
        anything: Whatever is not there.
    """

    expires: bool = False
    compacts: bool = False
    anything: bool = False

    @classmethod
    def of(cls, topic: Mapping[str, str]) -> Allowance:
        """Derive it from the settings of a topic."""
        policies = {policy.strip() for policy in topic.get("cleanup.policy", "delete").split(",")}
        limits = (topic.get("retention.ms", NO_LIMIT), topic.get("retention.bytes", NO_LIMIT))
        compacts = "compact" in policies
        winner = topic.get("odradek.compaction.strategy", "offset")
        return cls(
            expires="delete" in policies and any(limit != NO_LIMIT for limit in limits),
            compacts=compacts,
            # Which record of a key stays is then decided by what is in the records.
            anything=not policies <= KAFKAS_POLICIES or (compacts and winner != "offset"),
        )


@attrs.frozen
class Kept:
    """What became of the acknowledged records; numbers of records.

    Attributes:
        acknowledged: All that were, and were not aborted.
        there: Those that came back as they were sent.
        removed: Those that the topic's settings allow to be gone.
        lost: Those that are gone all the same, and those at whose place another one was acknowledged later.
        wrong: Those that came back changed, twice, or although they were aborted or never acknowledged.
    """

    acknowledged: int
    there: int
    removed: int
    lost: int
    wrong: int

    @property
    def is_right(self) -> bool:
        """Whether nothing is lost or wrong."""
        return not self.lost and not self.wrong


class Ledger:
    """What a run's producers were told. One owner.

    Attributes:
        unknown: How many acknowledgements told no offset: with acks=0 there is none.
    """

    def __init__(self, plan: RecordPlan) -> None:
        self.plan = plan
        self.unknown = 0
        self._by_place: dict[int, dict[int, int]] = {}
        self._displaced: list[int] = []
        self._aborted: set[int] = set()

    def acknowledge(self, index: int, partition: int, offset: int) -> None:
        """Note that a record is said to be at an offset."""
        if offset < 0:
            self.unknown += 1
        else:
            placed = self._by_place.setdefault(partition, {})
            if (before := placed.get(offset, index)) != index:
                self._displaced.append(before)
            placed[offset] = index

    def abort(self, indexes: Iterable[int]) -> None:
        """Note that records belong to a transaction that was aborted."""
        self._aborted.update(indexes)

    @property
    def displaced(self) -> int:
        """How many records, not aborted, were acknowledged at a place where another one was acknowledged later."""
        return sum(index not in self._aborted for index in self._displaced)

    @property
    def acknowledged(self) -> int:
        """How many were acknowledged and not aborted; those that were displaced or got no offset are not among them."""
        return sum(index not in self._aborted for placed in self._by_place.values() for index in placed.values())

    def index_at(self, partition: int, offset: int) -> int | None:
        """Return the number of the record that was acknowledged at a place; None if none was, or it was aborted."""
        index = self._by_place.get(partition, {}).get(offset)
        return None if index in self._aborted else index

    def places(self) -> Iterable[tuple[int, int, int]]:
        """Yield partition, offset and number of all that count, by partition and offset."""
        for partition, placed in sorted(self._by_place.items()):
            for offset, index in sorted(placed.items()):
                if index not in self._aborted:
                    yield partition, offset, index


class Reading:
    """One pass over a topic, from the beginning to its end.

    Attributes:
        there: Partition and offset of what came back as it was sent.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.there: set[tuple[int, int]] = set()
        self._wrong = 0

    def take(self, partition: int, offset: int, key: bytes | None, value: bytes | None) -> None:
        """Compare a record with what was sent there."""
        place = (partition, offset)
        index = self._ledger.index_at(partition, offset)
        if index is None or place in self.there or self._ledger.plan.record(index) != (partition, key, value):
            self._wrong += 1
        else:
            self.there.add(place)

    def result(self, allowance: Allowance, log_start_offsets: Mapping[int, int]) -> Kept:
        """Return what became of all.

        Args:
            allowance: What may be gone.
            log_start_offsets: Of each partition, as the broker told it.
        """
        latest = self._latest_by_key()
        acknowledged = there = removed = 0
        for partition, offset, index in self._ledger.places():
            acknowledged += 1
            if (partition, offset) in self.there:
                there += 1
            elif self._may_be_gone(index, offset, allowance, log_start_offsets.get(partition, 0), latest):
                removed += 1
        displaced = self._ledger.displaced  # no policy gives an offset twice
        lost = acknowledged - there - removed + displaced
        return Kept(acknowledged + displaced, there, removed, lost, self._wrong)

    def gone_since(
        self,
        before: Reading,
        allowance: Allowance,
        log_start_offsets: Mapping[int, int],
        log_end_offsets: Mapping[int, int],
    ) -> int:
        """Return how many records an earlier reading of the topic found that no policy has removed since, and are gone.

        Args:
            before: That reading.
            allowance: What may have been removed since.
            log_start_offsets: Of each partition, as the broker tells it now.
            log_end_offsets: The same of the ends.
        """
        latest = self._latest_by_key()
        return sum(
            offset >= log_end_offsets.get(partition, 0)
            or not self._may_be_gone(index, offset, allowance, log_start_offsets.get(partition, 0), latest)
            for partition, offset, index in self._ledger.places()
            if (partition, offset) in before.there and (partition, offset) not in self.there
        )

    def _may_be_gone(
        self, index: int, offset: int, allowance: Allowance, log_start_offset: int, latest: Mapping[bytes | None, int]
    ) -> bool:
        return (
            allowance.anything
            or (allowance.expires and offset < log_start_offset)
            or (allowance.compacts and self._is_replaced(index, latest))
        )

    def _latest_by_key(self) -> dict[bytes | None, int]:
        record = self._ledger.plan.record
        return {record(index).key: index for _partition, _offset, index in self._ledger.places()}

    def _is_replaced(self, index: int, latest: Mapping[bytes | None, int]) -> bool:
        _partition, key, value = self._ledger.plan.record(index)
        return value is None or latest[key] != index
