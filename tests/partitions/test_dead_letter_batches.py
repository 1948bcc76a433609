"""The batches that dead letters are appended in are cut by what they are, headers included."""

from __future__ import annotations

import uuid

import pytest

from odradek.kernel.partitions.dead_letter_batches import LETTERS_MAX, TakenLetters, batches_of
from odradek.kernel.records.batch import read_header
from odradek.kernel.records.record import Headers, Record
from odradek.kernel.retry.dead_reader import DeadGroup

BYTES_MAX = 60_000


def taken(count: int, headers: Headers) -> list[TakenLetters]:
    records = tuple(Record(offset, 0, None, None, headers) for offset in range(count))
    group = DeadGroup(companion_offset=7, next_offset=7 + count, records=records)
    return list(
        batches_of(
            [group],
            partition=0,
            topic_id=uuid.UUID(int=1),
            epoch=0,
            now_ms=1,
            compression=None,
            bytes_max=BYTES_MAX,
        )
    )


@pytest.mark.parametrize("headers", [(), (("reason", b"r" * 500),), (("n" * 500, None),), (("\u00e9" * 250, b""),)])
def test_letters_without_values_are_cut_by_their_headers_and_their_number(headers: Headers) -> None:
    parts = taken(1_001, headers)

    assert sum(part.records_count for part in parts) == 1_001
    assert all(part.records_count <= LETTERS_MAX and len(part.records) <= BYTES_MAX for part in parts)
    assert [part.position.offset for part in parts] == [7] * (len(parts) - 1) + [1_008]
    assert parts[0].position.last_origin == parts[0].records_count - 1
    assert read_header(parts[0].records).records_count == parts[0].records_count


def test_so_many_letters_are_a_batch_however_small() -> None:
    assert [part.records_count for part in taken(1_001, ())] == [LETTERS_MAX, LETTERS_MAX, 1]


def test_a_letter_that_is_larger_alone_is_a_batch() -> None:
    assert [part.records_count for part in taken(2, (("reason", bytes(BYTES_MAX)),))] == [1, 1]
