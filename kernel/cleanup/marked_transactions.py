"""Pure core: follows transactions through a log that is compacted: what was aborted goes, and when markers may go.

A marker goes `delete.retention.ms` after the first pass that met no batch of its transaction any more; so long, who
reads the log from its beginning still learns how the transaction ended. An aborted transaction of which a batch is left
stays in the transaction index; without one it leaves the index, before its marker goes.

*Source:* Kafka's CleanedTransactionMetadata; KIP-534.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..partitions.transaction_index import AbortedTransaction
from ..records.control import ControlRecordType, EndTransactionMarker, read_control_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..records.batch import BatchHeader
    from ..types import Buffer


class MarkedTransactions:
    """Transactions of one log, met batch by batch in the order of their offsets."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Begin before the log's first batch.

        Args:
            aborted: All aborted transactions of what is read.
        """
        self._coming = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
        self._aborting: dict[int, AbortedTransaction] = {}
        self._aborting_met: set[int] = set()
        self._committing: set[int] = set()
        self.kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Take note of a data batch; return whether its transaction was aborted."""
        self._advance(header)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborting:
            self._aborting_met.add(header.producer_id)
            return True
        self._committing.add(header.producer_id)
        return False

    def is_marker_idle(self, batch: Buffer, header: BatchHeader) -> bool:
        """Take note of a control batch; return whether no batch of its transaction is left.

        A transaction that was aborted and is not idle is noted in `kept`.
        """
        self._advance(header)
        if not header.records_count:
            return True  # its marker went in an earlier pass
        marker = read_control_record(batch, header)
        if not isinstance(marker, EndTransactionMarker):
            return False
        producer_id = header.producer_id
        if marker.type is ControlRecordType.COMMIT:
            was_met = producer_id in self._committing
            self._committing.discard(producer_id)
            return not was_met
        aborted = self._aborting.pop(producer_id, None)
        was_met = producer_id in self._aborting_met
        self._aborting_met.discard(producer_id)
        if aborted is None or not was_met:
            return True
        self.kept.append(aborted)
        return False

    def take_kept(self) -> list[AbortedTransaction]:
        """Return the aborted transactions whose markers were met since the last call and that stay in the index."""
        kept, self.kept = self.kept, []
        return kept

    def _advance(self, header: BatchHeader) -> None:
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            aborted = self._coming.pop()
            # One whose marker is behind already is over: its producer's next transaction is not to be taken for it.
            if aborted.last_offset >= header.base_offset:
                self._aborting.setdefault(aborted.producer_id, aborted)


class UntouchedTransactions:
    """Transactions of which only a part is met: none is taken for over, so that nothing of them goes.

    Met batch by batch like those of `MarkedTransactions`, from any place of a log on.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Begin anywhere.

        Args:
            aborted: All aborted transactions of what is read.
        """
        self._by_marker = {transaction.last_offset: transaction for transaction in aborted}
        self._kept: list[AbortedTransaction] = []

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return False: a batch of an aborted transaction stays, too."""
        return False

    def is_marker_idle(self, batch: Buffer, header: BatchHeader) -> bool:
        """Take note of a control batch; return False: its transaction may have batches elsewhere."""
        aborted = self._by_marker.get(header.last_offset)
        if aborted is not None:
            self._kept.append(aborted)
        return False

    def take_kept(self) -> list[AbortedTransaction]:
        """See `MarkedTransactions.take_kept`."""
        kept, self._kept = self._kept, []
        return kept
