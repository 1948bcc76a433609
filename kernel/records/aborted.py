"""Pure core: which batches a read-committed reader does not see.

A broker's answer (or a segment's transaction index) names the aborted transactions among some batches by first offset
and producer id. Each ends with its producer's abort marker.

*Source:* `CompletedFetch` of Kafka 4.3; KIP-98.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .control import ControlRecordType, EndTransactionMarker, read_control_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..types import Buffer
    from .batch import BatchHeader


class AbortedTransactions:
    """Says of each batch whether it is hidden; shown every batch of one run, in order; one owner."""

    def __init__(self, aborted: Sequence[tuple[int, int]]) -> None:
        """Begin before the run's first batch.

        Args:
            aborted: First offset and producer id of each aborted transaction that has records or its marker in the run,
                rising by offset. Not changed.
        """
        self._aborted = aborted
        self._begun = 0
        self._producer_ids: set[int] = set()

    def hides(self, buffer: Buffer, place: int, header: BatchHeader) -> bool:
        """Say whether nobody is to see the batch at `place`: control records, or an aborted transaction's.

        Raises:
            CorruptRecordsError: A marker is damaged.
        """
        if not header.is_transactional:
            return header.is_control
        while self._begun < len(self._aborted) and self._aborted[self._begun][0] <= header.last_offset:
            # At a marker too: compaction may have taken all records before it, and the transaction begins with none.
            self._producer_ids.add(self._aborted[self._begun][1])
            self._begun += 1
        if not header.is_control:
            return header.producer_id in self._producer_ids
        if header.producer_id in self._producer_ids and header.records_count:  # none where compaction took it
            marker = read_control_record(buffer, header, place)
            if isinstance(marker, EndTransactionMarker) and marker.type is ControlRecordType.ABORT:
                self._producer_ids.discard(header.producer_id)
        return True
