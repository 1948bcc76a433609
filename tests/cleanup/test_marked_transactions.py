"""Transactions through a log that is compacted: which batches were aborted, and what stays in the index."""

from __future__ import annotations

from odradek.kernel.cleanup.marked_transactions import MarkedTransactions
from odradek.kernel.partitions.transaction_index import AbortedTransaction
from odradek.kernel.records.batch import BatchHeader, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch


def at(batch: bytes, offset: int) -> tuple[bytes, BatchHeader]:
    placed = offset.to_bytes(8, "big") + batch[8:]
    return placed, read_header(placed)


def data(offset: int, producer_id: int = 7) -> BatchHeader:
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(b"k", b"v", timestamp=1)
    return at(bytes(builder.build()), offset)[1]


def marker(offset: int, producer_id: int = 7, *, is_commit: bool = False) -> tuple[bytes, BatchHeader]:
    kind = ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT
    batch = build_control_batch([EndTransactionMarker(kind, 0)], timestamp=1, producer_id=producer_id, producer_epoch=0)
    return at(bytes(batch), offset)


def test_an_aborted_transaction_whose_marker_is_gone_aborts_nothing_after_it() -> None:
    transactions = MarkedTransactions([AbortedTransaction(7, 0, 1, 0)])

    assert not transactions.is_aborted(data(2))
    assert not transactions.is_marker_idle(*marker(3, is_commit=True))


def test_an_aborted_transaction_aborts_up_to_its_marker() -> None:
    transactions = MarkedTransactions([AbortedTransaction(7, 0, 2, 0), AbortedTransaction(7, 3, 5, 3)])

    assert [transactions.is_aborted(data(0)), transactions.is_aborted(data(1, producer_id=8))] == [True, False]
    assert not transactions.is_marker_idle(*marker(2))
    assert transactions.is_aborted(data(3))
    assert not transactions.is_marker_idle(*marker(5))
    assert not transactions.is_aborted(data(6))
    assert transactions.take_kept() == [AbortedTransaction(7, 0, 2, 0), AbortedTransaction(7, 3, 5, 3)]
    assert transactions.take_kept() == []


def test_a_marker_without_batches_of_its_transaction_is_idle_and_leaves_the_index() -> None:
    transactions = MarkedTransactions([AbortedTransaction(7, 0, 2, 0)])

    assert transactions.is_marker_idle(*marker(2))
    assert transactions.take_kept() == []
