"""Which control batches of delayed records compaction keeps, and how they stand then."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.kernel.cleanup.delayed_batches import DelayedBatches
from odradek.kernel.delay.companion import (
    CANCELLER_DUE,
    Companion,
    WaitingEntry,
    Withdrawn,
    build_companion,
    build_withdrawal,
    read_companion,
)
from odradek.kernel.partitions.transaction_index import AbortedTransaction
from odradek.kernel.records.batch import assign_offset_and_epoch, read_header
from odradek.kernel.records.builder import BatchBuilder
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch

STRETCH = 4096
PRODUCER = 7
NAME = b"n" * 16


def placed(batch: bytearray, offset: int) -> bytearray:
    assign_offset_and_epoch(batch, read_header(batch), offset, 3)
    return batch


def companion(due_ms: int = 50, name: bytes | None = None, producer_id: int = -1) -> bytearray:
    entries = (WaitingEntry(due_ms, 0, id_digest=name),)
    return build_companion(Companion(entries, b"", producer_id=producer_id), timestamp=5)


def delivery(due_ms: int) -> bytearray:
    return build_companion(Companion((WaitingEntry(due_ms, 1, 0),), b"", is_delivery=True), timestamp=5)


def end_of_transaction() -> bytearray:
    marker = EndTransactionMarker(ControlRecordType.COMMIT, 0)
    return build_control_batch([marker], timestamp=5, producer_id=PRODUCER, producer_epoch=0)


def data() -> bytearray:
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=5)
    return builder.build()


def seen(
    batches: Iterable[tuple[int, bytearray]], needed: Iterable[int] = (), aborted: Iterable[AbortedTransaction] = ()
) -> DelayedBatches:
    found = DelayedBatches(frozenset(needed), list(aborted))
    for offset, batch in batches:
        found.saw(placed(batch, offset), read_header(batch))
    found.end()
    return found


def test_a_companion_stays_where_something_waits() -> None:
    found = seen([(0, companion()), (STRETCH, companion())], needed=[1])

    assert found.settled == {STRETCH}


def test_what_only_withdraws_stays_while_its_name_may_wait_before_it() -> None:
    cancels = [(10, companion(CANCELLER_DUE, NAME)), (STRETCH, companion(name=NAME))]
    found = seen([*cancels, (2 * STRETCH, companion(CANCELLER_DUE, NAME))], needed=[1])

    assert found.settled == {STRETCH, 2 * STRETCH}


def test_of_deliveries_those_stay_that_no_later_one_goes_beyond() -> None:
    found = seen([(0, delivery(10)), (2, delivery(40)), (4, delivery(20)), (6, delivery(30))])

    assert found.settled == {2, 6}


def test_the_furthest_withdrawal_stays() -> None:
    notes = [(10, 5), (12, 9), (14, 7)]
    found = seen([(offset, build_withdrawal(Withdrawn(below, 1))) for offset, below in notes])

    assert found.settled == {12}


def test_the_end_of_a_transaction_stays_with_its_companion() -> None:
    of_it = (5, companion(producer_id=PRODUCER))

    assert seen([(0, end_of_transaction()), of_it, (8, end_of_transaction()), (9, end_of_transaction())], [0]).ends == {
        8
    }
    assert seen([of_it, (8, end_of_transaction())]).ends == set()
    assert seen([of_it, (8, end_of_transaction())], [0], [AbortedTransaction(PRODUCER, 6, 8, 9)]).settled == set()


def test_what_counts_with_the_batch_behind_it_is_settled() -> None:
    behind = placed(data(), 1)
    batch = build_companion(Companion((WaitingEntry(50, 0),), b"", crc=read_header(behind).crc), timestamp=5)
    found = seen([(0, batch), (1, behind)], needed=[0])
    read = read_companion(batch, read_header(batch))
    assert read is not None

    stays = found.filter(batch, read_header(batch), read)

    assert stays is not None
    after = read_companion(stays[0], stays[1])
    assert after is not None
    assert (after.crc, after.entries, stays[1].base_offset) == (None, read.entries, 0)
    assert stays[1].partition_leader_epoch == 3


def test_what_does_not_count_goes_and_the_last_of_all_stays_as_it_is() -> None:
    torn, last = (build_companion(Companion((WaitingEntry(50, 0),), b"", crc=1), timestamp=5) for _ in range(2))
    found = seen([(0, torn), (1, data()), (2, last)], needed=[0])
    for batch, stays in ((torn, None), (last, last)):
        header = read_header(batch)
        read = read_companion(batch, header)
        assert read is not None
        kept = found.filter(batch, header, read)
        assert (None if kept is None else kept[0]) is stays
