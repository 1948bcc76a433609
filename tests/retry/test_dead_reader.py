"""Dead letters are found in a retry topic's log once each, whatever is fetched at once, however transactions end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.records.batch import read_header
from odradek.kernel.retry.dead_reader import BEGIN, AbortedRange, DeadReader, Position

from .failed_batches import Failed, FailedLog

DEAD = Failed(b"dead", is_dead=True)


def read_all(log: FailedLog, counts: list[int], aborted: list[AbortedRange] = []) -> list[bytes | None]:  # noqa: B006
    """Fetch so many batches at a time, from where the reader stands; return the values that were found."""
    position, found, at = BEGIN, list[bytes | None](), 0
    while True:
        batches = [batch for batch in log.batches if read_header(batch).next_offset > position.offset]
        count = counts[at % len(counts)] if at < 200 else len(batches)
        at += 1
        reader = DeadReader(position, aborted)
        for batch in batches[:count]:
            reader.read(batch)
        for group in reader.groups:
            found += [record.value for record in group.records]
        if reader.next_offset == position.offset and count >= len(batches):
            return found
        position = Position(reader.next_offset, position.last_origin)


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=4), max_size=12),
    st.lists(st.integers(1, 5), min_size=1, max_size=5),
)
def test_each_dead_letter_is_found_once_however_much_is_fetched(appends: list[list[bool]], counts: list[int]) -> None:
    log = FailedLog()
    wanted: list[bytes] = []
    for number, records in enumerate(appends):
        values = [b"%d.%d" % (number, index) for index in range(len(records))]
        log.fail([Failed(value, is_dead=is_dead) for value, is_dead in zip(values, records, strict=True)])
        log.deliver(b"seen")
        wanted += [value for value, is_dead in zip(values, records, strict=True) if is_dead]

    assert read_all(log, [*counts, 2]) == wanted


def test_of_a_transaction_a_dead_letter_is_found_unless_it_was_aborted() -> None:
    log = FailedLog()
    first = log.fail([Failed(b"aborted", is_dead=True)], producer_id=7)
    log.fail([Failed(b"other", is_dead=True)], producer_id=8)
    log.end(7, is_commit=False)
    log.end(8, is_commit=True)
    log.fail([Failed(b"committed", is_dead=True)], producer_id=7)
    log.end(7, is_commit=True)

    assert read_all(log, [100], [AbortedRange(7, first)]) == [b"other", b"committed"]


def test_a_companion_without_its_batch_is_read_again() -> None:
    log = FailedLog()
    log.fail([DEAD])
    reader = DeadReader(BEGIN, ())
    reader.read(log.batches[0])

    assert (reader.groups, reader.next_offset) == ([], 0)


def test_a_companion_whose_batch_never_came_does_not_count() -> None:
    log = FailedLog()
    log.fail([DEAD])
    torn = FailedLog()
    torn.append(bytearray(log.batches[0]))
    torn.deliver(b"another leader's")

    assert read_all(torn, [100]) == []


def test_what_was_taken_of_a_companion_is_not_taken_again() -> None:
    log = FailedLog()
    base_offset = log.fail([Failed(b"a", is_dead=True), Failed(b"b", is_dead=True)])
    reader = DeadReader(Position(0, base_offset), ())
    for batch in log.batches:
        reader.read(batch)

    assert [[record.value for record in group.records] for group in reader.groups] == [[b"b"]]


def test_a_damaged_companion_is_told_and_passed_over() -> None:
    log = FailedLog()
    log.fail([DEAD])
    damaged = bytearray(log.batches[0])
    damaged[-1] ^= 1
    log.batches[0] = bytes(damaged)
    log.fail([Failed(b"next", is_dead=True)])
    reader = DeadReader(BEGIN, ())
    for batch in log.batches:
        reader.read(batch)

    assert [[record.value for record in group.records] for group in reader.groups] == [[b"next"]]
    (told,) = reader.unreadable
    assert told.startswith("offset 0: ")


def test_an_abort_among_what_is_known_already_ends_the_transaction() -> None:
    """Else the producer's next one, which commits, would count as aborted."""
    log = FailedLog()
    first = log.fail([Failed(b"aborted", is_dead=True)], producer_id=7)
    log.end(7, is_commit=False)
    known = log.end_offset
    log.fail([Failed(b"committed", is_dead=True)], producer_id=7)
    log.end(7, is_commit=True)
    reader = DeadReader(Position(known, -1), [AbortedRange(7, first)])
    for batch in log.batches:
        reader.read(batch)

    assert [record.value for group in reader.groups for record in group.records] == [b"committed"]


def test_a_companion_that_cannot_be_read_is_passed_over_and_told() -> None:
    log = FailedLog()
    log.fail([DEAD])
    log.fail_unreadably([DEAD])
    log.fail([DEAD])
    reader = DeadReader(BEGIN, ())
    for batch in log.batches:
        reader.read(batch)

    assert (len(reader.groups), len(reader.unreadable), reader.next_offset) == (2, 1, log.end_offset)
