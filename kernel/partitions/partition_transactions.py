"""Pure core: the transactions of one partition: which are not over yet, and which were aborted.

A transaction is *unstable* from its first batch until its marker is below the high watermark; what lies at or above the
first unstable offset is hidden from read_committed consumers::

    offset   10  11  12  13  14  15  16
             A   B   A   a*  B            a* = abort marker of A, at 13; high watermark 15
    unstable: B since 11; A is over, as 13 < 15.  last stable offset 11.  aborted: (A, 10..13)

*Source:* Kafka's ProducerStateManager and TransactionIndex.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from .aborted_transactions import AbortedTransactions
from .producer_state import NOT_ENDED
from .transaction_index import AbortedTransaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .producer_state import Transaction

_FIRST_OFFSET: Final = attrgetter("first_offset")


class PartitionTransactions:
    """Open and aborted transactions. Owned by the table of producers, which tells of each begin and end.

    Invariant: open and ended transactions are in the order of their first offsets, aborted ones in that of their
    markers.
    """

    __slots__ = ("_aborted", "_log_start_offset", "_unstable")

    def __init__(self) -> None:
        # Open transactions, and ended ones that were not at the front yet when the high watermark passed them.
        self._unstable: deque[Transaction] = deque()
        self._aborted = AbortedTransactions()
        self._log_start_offset = 0

    def __repr__(self) -> str:
        return f"<PartitionTransactions: {len(self._unstable)} unstable, {len(self._aborted)} aborted>"

    @property
    def unstable_count(self) -> int:
        """How many are not over, or not known to be."""
        return len(self._unstable)

    def begin(self, transaction: Transaction) -> None:
        """Take note of a transaction whose first batch has just been appended."""
        self._unstable.append(transaction)

    def end(self, transaction: Transaction, marker_offset: int, *, is_commit: bool) -> AbortedTransaction | None:
        """Take note of a transaction's marker; return what the transaction index has to hold, if it is an abort."""
        transaction.marker_offset = marker_offset
        if is_commit:
            return None
        aborted = AbortedTransaction(
            transaction.producer_id,
            transaction.first_offset,
            transaction.marker_offset,
            self._stable_offset_after(transaction),
        )
        self._aborted.append(aborted)
        return aborted

    def _stable_offset_after(self, ended: Transaction) -> int:
        """Return the last stable offset as it is once the marker of `ended` is replicated."""
        oldest = self.oldest_open()
        return ended.marker_offset + 1 if oldest is None else oldest.first_offset

    def oldest_open(self) -> Transaction | None:
        """Return the open transaction that began first."""
        return next((each for each in self._unstable if each.marker_offset == NOT_ENDED), None)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the first offset that a read_committed consumer may not see, given the high watermark. Hot."""
        unstable = self._unstable
        while unstable:
            first = unstable[0]
            if first.marker_offset == NOT_ENDED or first.marker_offset >= high_watermark:
                return min(max(first.first_offset, self._log_start_offset), high_watermark)
            unstable.popleft()
        return high_watermark

    def aborted_between(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that reach into `[start_offset, end_offset)`, as a Fetch answers them."""
        return self._aborted.reaching_into(start_offset, end_offset)

    def advance_log_start(self, log_start_offset: int) -> None:
        """Forget the aborted transactions below."""
        self._log_start_offset = max(self._log_start_offset, log_start_offset)
        self._aborted.forget_below(log_start_offset)

    def aborted(self) -> Sequence[AbortedTransaction]:
        """Return all aborted transactions, in the order of their markers: what the transaction index holds."""
        return self._aborted.all()

    def replace_aborted(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Take note of all aborted transactions that compaction left; one too many would hide later records."""
        self._aborted = AbortedTransactions(aborted)

    def load(self, unstable: Iterable[Transaction], aborted: Iterable[AbortedTransaction]) -> None:
        """Begin with these open transactions and these aborted ones, both in any order."""
        self._unstable = deque(sorted(unstable, key=_FIRST_OFFSET))
        self._aborted = AbortedTransactions(aborted)
        self._log_start_offset = 0
