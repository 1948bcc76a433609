"""Withdrawals by name: of what was there, as long as something of it may come, also over a checkpoint."""

from __future__ import annotations

import random

import pytest

from odradek.kernel.delay.companion import CANCELLER_DUE, Companion, WaitingEntry, build_companion
from odradek.kernel.delay.ledger import DelayLedger
from odradek.kernel.delay.withdrawals import ENTRY_BYTES, Withdrawals
from odradek.kernel.records.batch import assign_offset_and_epoch, read_header
from odradek.kernel.records.control import ControlRecordType, EndTransactionMarker, build_control_batch
from odradek.plugins.delay_wheel.factory import WheelFactory

NAMES = [bytes([number]) * 16 for number in (1, 2, 3)]
STEPS = 200


def copy_of(withdrawals: Withdrawals) -> Withdrawals:
    again = Withdrawals(withdrawals.latest_due_ms)
    again.restore(b"".join(withdrawals.encode()))
    return again


@pytest.mark.parametrize("seed", range(20))
def test_what_comes_is_withdrawn_where_its_name_was_after_it(seed: int) -> None:
    """Against a model that keeps all: records come and are delivered in their order, and all of it is kept again."""
    drawn = random.Random(seed)
    withdrawals, now_ms = Withdrawals(), 1_000
    waiting: dict[tuple[int, int], bytes | None] = {}
    withdrawn: set[int] = set()
    for offset in range(STEPS):
        step = drawn.randrange(5)
        if step < 2:
            due_ms = now_ms + drawn.randrange(10 ** drawn.randrange(1, 6))
            waiting[due_ms, offset] = drawn.choice([*NAMES, None])
            withdrawals.note_due(due_ms)
        elif step == 2:
            name = drawn.choice(NAMES)
            withdrawals.add(name, offset)
            withdrawn |= {origin for (_, origin), named in waiting.items() if named == name}
        elif step == 3:
            withdrawals = copy_of(withdrawals)
        else:
            now_ms += drawn.randrange(2_000)
            for due_ms, origin in sorted(key for key in waiting if key[0] <= now_ms):
                assert withdrawals.has(waiting.pop((due_ms, origin)), origin) == (origin in withdrawn)
                withdrawals.forget(due_ms, None)
    assert len(b"".join(withdrawals.encode())) == len(withdrawals) * ENTRY_BYTES

    withdrawals.forget(withdrawals.latest_due_ms + 1, None)
    assert not len(withdrawals)


def test_a_withdrawal_is_of_what_was_there() -> None:
    withdrawals = Withdrawals(10)
    withdrawals.add(NAMES[0], 5)
    withdrawals.note_due(20)

    assert withdrawals.has(NAMES[0], 1)
    assert not withdrawals.has(NAMES[0], 8)
    assert not withdrawals.has(NAMES[1], 1)
    assert not withdrawals.has(None, 1)


def test_of_two_withdrawals_the_one_that_was_produced_later_counts() -> None:
    """One of a transaction is told when that is committed."""
    withdrawals = Withdrawals(10)
    withdrawals.add(NAMES[0], 50)
    withdrawals.add(NAMES[0], 10)

    assert withdrawals.has(NAMES[0], 30)


def test_a_withdrawal_where_nothing_ever_waited_is_not_kept() -> None:
    withdrawals = Withdrawals()
    withdrawals.add(NAMES[0], 5)

    assert not withdrawals.has(NAMES[0], 1)
    assert not len(withdrawals)


def test_a_withdrawal_is_kept_until_all_is_over_that_waited_then() -> None:
    withdrawals = Withdrawals(20)
    withdrawals.add(NAMES[0], 5)
    withdrawals.note_due(1_000)

    withdrawals.forget(20, None)
    assert withdrawals.has(NAMES[0], 1)
    withdrawals.forget(21, 3)  # an open transaction has records that were produced before
    assert withdrawals.has(NAMES[0], 1)
    withdrawals.forget(21, 6)
    assert not withdrawals.has(NAMES[0], 1)


def saw(
    ledger: DelayLedger, offset: int, *entries: WaitingEntry, is_delivery: bool = False, producer_id: int | None = None
) -> None:
    if producer_id is None:
        producer_id = -1 if is_delivery or entries[0].is_canceller else 5
    companion = Companion(tuple(entries), b"", producer_id=producer_id, is_delivery=is_delivery)
    batch = build_companion(companion, timestamp=1)
    assign_offset_and_epoch(batch, read_header(batch), offset, 0)
    ledger.saw(batch, read_header(batch))


def a_ledger() -> DelayLedger:
    return DelayLedger(WheelFactory(), on_due=lambda due_ms: None, on_unreadable=lambda offset, error: None)


def test_what_waits_for_its_transaction_keeps_a_withdrawal_also_over_a_checkpoint() -> None:
    ledger = a_ledger()
    saw(ledger, 0, WaitingEntry(10, 0, 0, NAMES[0]))  # of a transaction that is open
    saw(ledger, 5, WaitingEntry(CANCELLER_DUE, 0, 0, NAMES[0]))
    again = a_ledger()
    again.restore(b"".join(ledger.encode()))

    for each in (ledger, again):
        assert each.is_withdrawn(WaitingEntry(10, 1, 0, NAMES[0]))
        assert not each.is_withdrawn(WaitingEntry(10, 7, 0, NAMES[0]))
        assert not each.is_withdrawn(WaitingEntry(10, 1, 0, NAMES[1]))
        saw(each, 8, WaitingEntry(11, 7, 0), is_delivery=True)
        assert each.is_withdrawn(WaitingEntry(10, 1, 0, NAMES[0])), "it may still come to wait"
        each.start_advanced(3)
        saw(each, 9, WaitingEntry(11, 7, 0), is_delivery=True)
        assert not each.is_withdrawn(WaitingEntry(10, 1, 0, NAMES[0])), "nothing is left that it may concern"
    assert b"".join(again.encode()) == b"".join(ledger.encode())


def end_transaction(ledger: DelayLedger, offset: int, producer_id: int, kind: ControlRecordType) -> None:
    marker = build_control_batch(
        [EndTransactionMarker(kind, 0)], timestamp=1, producer_id=producer_id, producer_epoch=0
    )
    assign_offset_and_epoch(marker, read_header(marker), offset, 0)
    ledger.saw(marker, read_header(marker))


def test_what_open_transactions_may_withdraw_is_known_until_the_last_of_them_has_ended() -> None:
    named, other = WaitingEntry(10, 1, 0, NAMES[0]), WaitingEntry(10, 2, 0, NAMES[1])
    ledger = a_ledger()
    saw(ledger, 4, WaitingEntry(CANCELLER_DUE, 0, 0, NAMES[0]), other, producer_id=5)
    saw(ledger, 7, WaitingEntry(CANCELLER_DUE, 0, 0, NAMES[0]), producer_id=6)
    again = a_ledger()
    again.restore(b"".join(ledger.encode()))

    for each in (ledger, again):
        assert each.may_be_withdrawn(named)
        assert not each.may_be_withdrawn(other), "it waits for its own transaction"
        assert not each.may_be_withdrawn(WaitingEntry(10, 3))
        end_transaction(each, 9, 5, ControlRecordType.COMMIT)
        assert each.may_be_withdrawn(named)
    end_transaction(ledger, 10, 6, ControlRecordType.ABORT)
    again.start_advanced(8)  # as by a DeleteRecords
    for each in (ledger, again):
        assert not each.may_be_withdrawn(named)
