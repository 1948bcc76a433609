"""What is pending in a retry partition, read from its log in any pieces."""

from __future__ import annotations

from odradek.client.ordered.waiting_keys import NO_ORIGIN, WaitingKeys, failed_at, origin_of
from odradek.kernel.delay.companion import Withdrawn, build_withdrawal
from odradek.kernel.retry.headers import BEHIND, DEAD, ORIGIN

from .retry_log import HOME, LEVELS_MS, RETRY, Produced, RetryLog


def failed(key: bytes | None, origin: int, *more: tuple[str, bytes]) -> Produced:
    return Produced(key, b"%d" % origin, [(ORIGIN, b"orders/0/%d" % origin), *more])


def known(log: RetryLog, start: int = 0, *, home_position: int = 100) -> WaitingKeys:
    """Return what is pending for a group that has read the partition up to there."""
    pending = WaitingKeys(HOME, start, home_position)
    pending.read(log.read(start))
    return pending


def test_what_waits_is_pending_until_it_was_worked_on() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 3), failed(b"b", 4)])
    pending = known(log)

    assert len(pending) == 2
    assert pending.has_before(b"a", 5)
    assert not pending.has_before(b"a", 3)
    assert not pending.has_before(b"c", 5)
    log.pass_time(LEVELS_MS[0])
    pending.read(log.read(pending.next_offset))
    assert pending.has_before(b"a", 5)
    first, second = log.records(0)
    pending.processed(first.offset + 1)
    assert not pending.has_before(b"a", 5)
    assert pending.has_before(b"b", 5)
    pending.processed(second.offset + 1)
    assert len(pending) == 0
    assert pending.needed_from == pending.next_offset == log.end_offset


def test_what_was_worked_on_is_known_until_its_partition_was_read_past_it() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 3), failed(b"b", 4)])
    log.pass_time(LEVELS_MS[0])
    end = log.records(0)[-1].offset + 1
    pending = known(log, home_position=3)
    pending.processed(end)

    assert len(pending) == 0
    assert pending.is_done(3, b"a")
    assert not pending.is_done(3, b"of a topic that was made anew")
    assert pending.needed_from == 0
    pending.home_passed(4)
    assert not pending.is_done(3, b"a")
    later = WaitingKeys(HOME, pending.needed_from, 4)
    later.processed(end)
    later.read(log.read(pending.needed_from))
    assert (later.is_done(3, b"a"), later.is_done(4, b"b"), len(later)) == (False, True, 0)
    pending.home_passed(5)
    assert not pending.is_done(4, b"b")
    assert pending.needed_from == pending.next_offset == log.end_offset


def test_what_is_dead_or_has_no_key_is_not_pending() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 3, (DEAD, b"1")), failed(None, 4)])

    assert len(known(log)) == 0


def test_what_is_failed_in_a_transaction_is_pending_unless_that_aborts() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)], producer_id=7)
    log.produce([failed(b"b", 2)], producer_id=8)
    pending = known(log)

    assert len(pending) == 2
    log.end(7, commits=False)
    log.end(8, commits=True)
    log.pass_time(LEVELS_MS[0])
    pending.read(log.read(pending.next_offset))
    assert not pending.has_before(b"a", 9)
    assert pending.has_before(b"b", 9)
    (record,) = log.records(0)
    pending.processed(record.offset + 1)
    assert len(pending) == 0


def test_a_companion_without_the_batch_behind_it_counts_once_that_comes() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)])
    pending = WaitingKeys(HOME, 0)
    pending.read(log.read(0, batches=1))

    assert len(pending) == 0
    assert pending.needed_from == 0
    pending.read(log.read(pending.next_offset))
    assert len(pending) == 1


def test_who_begins_where_it_is_needed_from_knows_the_same() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)])
    log.pass_time(LEVELS_MS[0])
    (record,) = log.records(0)
    log.produce([failed(b"b", 2)])
    log.produce([failed(b"c", 3)])
    pending = known(log)
    pending.processed(record.offset + 1)
    later = known(log, pending.needed_from)

    assert pending.needed_from > 0
    assert len(later) == len(pending) == 2
    assert later.has_before(b"b", 9)


def test_what_the_logs_beginning_took_is_not_pending() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)])
    log.produce([failed(b"b", 2)])
    pending = known(log)
    pending.start_advanced(1)

    assert not pending.has_before(b"a", 9)
    assert pending.has_before(b"b", 9)


def test_a_record_without_an_origin_counts_as_before_all_others() -> None:
    log = RetryLog()
    log.produce([Produced(b"a", b"v")])
    log.produce([Produced(b"a", b"w", [(ORIGIN, b"orders/1/0")])])
    pending = known(log)
    log.pass_time(LEVELS_MS[0])
    first, second = log.records(0)

    assert pending.has_before(b"a", 0)
    assert not pending.has_before(b"a", NO_ORIGIN, failed_at(first.headers))
    assert pending.has_before(b"a", origin_of(second.headers, HOME), failed_at(second.headers))


def test_what_is_put_behind_another_comes_right_behind_it_and_has_not_failed() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)])
    state = known(log).key_state(b"a")
    assert state is not None
    log.pass_time(5)
    log.produce([failed(b"a", 2, (BEHIND, b"%d" % state.due_ms))])
    log.pass_time(LEVELS_MS[0] - 5)

    assert [(record.value, dict(record.headers)["odradek.retry.attempt"]) for record in log.records(0)] == [
        (b"1", b"1"),
        (b"2", b"0"),
    ]
    assert {record.topic_partition for record in log.records(0)} == {RETRY}


def test_of_two_copies_of_a_record_the_newer_is_told() -> None:
    log = RetryLog()
    first = log.produce([failed(b"a", 1)])
    second = log.produce([failed(b"a", 1)], producer_id=7)
    pending = known(log)

    newest = pending.newest_copy(1)
    assert newest is not None
    assert (newest.offset, newest.is_open) == (second, True)
    log.end(7, commits=False)
    pending.read(log.read(pending.next_offset))
    newest = pending.newest_copy(1)
    assert newest is not None
    assert (newest.offset, newest.is_open) == (first, False)


def test_a_key_that_is_never_without_a_record_does_not_grow() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)], producer_id=7)
    pending = known(log)
    for _ in range(500):
        log.produce([failed(b"a", 2)])
        log.pass_time(LEVELS_MS[0])
        pending.read(log.read(pending.next_offset))
        pending.processed(log.end_offset)
    state = pending.key_state(b"a")

    assert state is not None
    assert (state.count, state.open_count) == (1, 1)
    assert len(state.order) < 100
    log.end(7, commits=False)
    pending.read(log.read(pending.next_offset))
    assert pending.key_state(b"a") is None


def test_what_is_carried_forward_is_pending_once_and_no_more_when_it_was_worked_on() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1), failed(b"b", 2)])
    second = log.produce([failed(b"a", 3)])
    pending = known(log)
    log.carry(below=second - 1)
    pending.read(log.read(pending.next_offset))

    assert len(pending) == 3
    assert pending.needed_from == second - 1  # its companion, the one that was not carried
    pending.start_advanced(second - 1)
    assert len(pending) == 3
    log.carry(below=log.end_offset)
    pending.read(log.read(pending.next_offset))
    assert len(known(log, pending.needed_from)) == 3
    log.pass_time(LEVELS_MS[0])
    pending.read(log.read(pending.next_offset))
    pending.processed(log.end_offset)
    assert len(pending) == 0
    assert pending.key_state(b"a") is None
    assert not pending.has_before(b"a", 9)
    assert pending.newest_copy(1) is None


def test_what_a_deletion_of_records_withdrew_is_not_pending_though_it_was_carried_forward() -> None:
    log = RetryLog()
    log.produce([failed(b"a", 1)])
    end_offset = log.end_offset
    log.produce([failed(b"b", 2)])
    log.carry(below=end_offset)
    pending = known(log)
    log.append(build_withdrawal(Withdrawn(end_offset, 1)))
    pending.read(log.read(pending.next_offset))

    assert not pending.has_before(b"a", 9)
    assert pending.has_before(b"b", 9)
