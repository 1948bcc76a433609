"""The index as planning asks it."""

from __future__ import annotations

from odradek.plugins.storage_segment.formats import INDEX_ENTRY
from odradek.spark_plugin.direct.sparse_index import BEGINNING, Place, SparseIndex

# Batches end with the offsets 103, 107, 110, 120; they begin at 50, 90, 200, 260.
INDEX = SparseIndex.of(
    100, b"".join(INDEX_ENTRY.pack(*each) for each in ((3, 50), (7, 90), (10, 200), (20, 260))) + bytes(40)
)


def test_padding_is_no_entry() -> None:
    assert len(INDEX) == 4


def test_a_reader_begins_with_a_batch_that_ends_at_or_before_its_offset() -> None:
    assert INDEX.find(102) == BEGINNING
    assert INDEX.find(103) == Place(50, 103)
    assert INDEX.find(109) == Place(90, 107)
    assert INDEX.find(10_000) == Place(260, 120)


def test_a_range_ends_where_a_batch_begins_that_is_behind_it() -> None:
    assert INDEX.end_position(100, 300) == 90
    assert INDEX.end_position(103, 300) == 90
    assert INDEX.end_position(104, 300) == 200
    assert INDEX.end_position(115, 300) == 300


def test_parts_are_about_as_large_as_is_wanted_and_cut_behind_a_batch() -> None:
    assert list(INDEX.cuts(BEGINNING, 300, 100)) == [Place(200, 110)]
    assert list(INDEX.cuts(BEGINNING, 300, 40)) == [Place(50, 103), Place(90, 107), Place(200, 110), Place(260, 120)]
    assert list(INDEX.cuts(BEGINNING, 300, 1000)) == []
    assert list(SparseIndex.of(100, b"").cuts(BEGINNING, 300, 10)) == []
