"""Pure core: what must be true of transactions, whatever happened, for who reads what is committed.

| rule | |
| --- | --- |
| origin | what is read was sent, to this partition |
| change | what was read at an offset is what is read there later |
| aborted | nothing is read of a transaction whose abort was answered |
| whole | of a transaction all is read or nothing; all of one whose commit was answered |
| once | a record is there once |
| order | a producer's records are there in the order in which they were sent |
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import attrs

from .oracle import PromiseBrokenError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Fate(Enum):
    """What a producer was told of its transaction."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


@attrs.define(eq=False)
class Transaction:
    """One transaction.

    Attributes:
        producer: Whose.
        number: The how many-th of that producer.
        fate: What the producer was told.
        records: What was sent in it: partition and value.
    """

    producer: str
    number: int
    fate: Fate = Fate.UNKNOWN
    records: list[tuple[int, str]] = attrs.field(factory=list)

    def next_value(self, partition: int) -> str:
        """Return the value of its next record, which goes to a partition."""
        value = f"{self.producer}/{self.number}/{len(self.records)}"
        self.records.append((partition, value))
        return value

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.producer}, {self.fate.value}"


class TransactionOracle:
    """All partitions of one topic. One owner.

    Attributes:
        counts: How many transactions ended how, by fate.
        delivered_count: How many records were read.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._by_value: dict[str, tuple[Transaction, int, int]] = {}
        self._transactions: list[Transaction] = []
        self._seen: dict[tuple[int, int], str] = {}
        self.counts = dict.fromkeys(Fate, 0)
        self.delivered_count = 0

    def begun(self, transaction: Transaction) -> None:
        """Note that a transaction was begun."""
        self._transactions.append(transaction)

    def sent(self, transaction: Transaction, partition: int) -> str:
        """Note that a record is sent, and return what it says."""
        value = transaction.next_value(partition)
        self._by_value[value] = (transaction, partition, len(self._by_value))
        return value

    def ended(self, transaction: Transaction, fate: Fate) -> None:
        """Note what the producer was told."""
        transaction.fate = fate
        self.counts[fate] += 1

    def delivered(self, partition: int, offset: int, value: str) -> None:
        """Check a record that a consumer was given who reads what is committed."""
        self.delivered_count += 1
        transaction = self._transaction_of(partition, offset, value)
        before = self._seen.setdefault((partition, offset), value)
        if before != value:
            raise PromiseBrokenError("change", f"partition {partition}, offset {offset} was {before} and is {value}")
        _check_not_aborted(transaction, partition, offset, value)

    def _transaction_of(self, partition: int, offset: int, value: str) -> Transaction:
        sent = self._by_value.get(value)
        if sent is None or sent[1] != partition:
            raise PromiseBrokenError("origin", f"nobody sent what partition {partition} has at {offset}: {value!r}")
        return sent[0]

    def check(self, logs: Mapping[int, Sequence[tuple[int, str]]]) -> None:
        """Check everything, read from its beginning to its end when nothing happens any more.

        Args:
            logs: By partition, offsets and values of what is committed.
        """
        there: set[str] = set()
        for partition, records in logs.items():
            last: dict[str, int] = {}
            for offset, value in records:
                transaction = self._transaction_of(partition, offset, value)
                _check_not_aborted(transaction, partition, offset, value)
                if value in there:
                    raise PromiseBrokenError("once", f"partition {partition} has {value} twice")
                there.add(value)
                place = self._by_value[value][2]
                if place < last.get(transaction.producer, -1):
                    raise PromiseBrokenError("order", f"partition {partition} has {value} too late, at {offset}")
                last[transaction.producer] = place
        for transaction in self._transactions:
            _check_whole(transaction, there)
        self._check_seen(logs)

    def _check_seen(self, logs: Mapping[int, Sequence[tuple[int, str]]]) -> None:
        found = {partition: dict(records) for partition, records in logs.items()}
        for (partition, offset), value in self._seen.items():
            there = found.get(partition, {}).get(offset, "nothing")
            if there != value:
                raise PromiseBrokenError("change", f"partition {partition}, offset {offset} is {there}, not {value}")


def _check_not_aborted(transaction: Transaction, partition: int, offset: int, value: str) -> None:
    if transaction.fate is Fate.ABORTED:
        raise PromiseBrokenError("aborted", f"partition {partition} has {value} at {offset}, of {transaction}")


def _check_whole(transaction: Transaction, there: set[str]) -> None:
    missing = [value for _, value in transaction.records if value not in there]
    if missing and (transaction.fate is Fate.COMMITTED or len(missing) < len(transaction.records)):
        what = f"of {transaction}, {len(missing)} of {len(transaction.records)} records are not there: {missing[0]}"
        raise PromiseBrokenError("whole", what)
