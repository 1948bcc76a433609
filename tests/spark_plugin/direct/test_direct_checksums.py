"""Large objects whose checksum is wrong: what is given out is right, and a broker serves the rest."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from io import BytesIO
from tempfile import TemporaryFile
from typing import IO, Any

import attrs
import pytest

from odradek.kernel.records.batch import CorruptRecordsError, iterate_batches
from odradek.kernel.types import Buffer
from odradek.spark_plugin.direct import PieceGoneError, TierPiece
from odradek.spark_plugin.direct.checked_object import KEPT_BYTES_MAX
from odradek.spark_plugin.direct.opening import open_piece

from .log_kit import Batch, Log, Row, Segment, Tier, plan, read_pieces, settings_for, sources_for


def _large(log: Log, *missing: int) -> tuple[Log, Tier, TierPiece]:
    """Return a log of 20 batches of a megabyte, but for some that compaction took; its tier; all of it as a piece."""
    batches = [Batch(n, n + 1, (Row(n, None, bytes(1 << 20)),)) for n in range(20) if n not in missing]
    large = attrs.evolve(log, segments=[Segment(0, batches)], end_offset=20, last_stable_offset=20)
    tier = Tier(large)
    tier.send([0])
    sources, _ = sources_for(settings_for(has_store=True, get_bytes=4 << 20), tier.store)
    [piece] = plan(sources, large, 0, 20)
    assert isinstance(piece, TierPiece)
    assert piece.object_bytes > KEPT_BYTES_MAX
    return large, tier, piece


def test_a_large_object_with_another_checksum_leaves_the_rest_to_the_broker(log: Log) -> None:
    large, tier, piece = _large(log)
    damaged = attrs.evolve(piece, crc32c=1)
    given: list[int] = []
    runs = (bytes(data) for data, _ in open_piece(damaged, open_store=lambda _: tier.store))
    with pytest.raises(CorruptRecordsError, match="it was damaged"):
        given.extend(map(len, runs))

    assert 0 < sum(given) < piece.object_bytes, "the last ones are not given out"
    read = read_pieces([damaged], large, tier.store, fallen_back=(CorruptRecordsError,))
    assert list(read) == large.rows(0, 20, is_read_committed=True)


def _given(opened: Iterator[tuple[Buffer, object]]) -> list[int]:
    """Return the offsets of the batches that are given out before damage is met."""
    given: list[int] = []
    offsets = (header.base_offset for data, _ in opened for _, header in iterate_batches(data))
    with pytest.raises(CorruptRecordsError, match="it was damaged"):
        given.extend(offsets)
    return given


@pytest.mark.parametrize(
    ("missing", "checks_crcs", "given"),
    [((9,), True, range(8)), ((0,), True, ()), ((), False, ()), ((9,), False, ())],
    ids=["a gap", "a gap at the beginning", "no checksums", "neither"],
)
def test_what_only_the_objects_checksum_vouches_for_is_given_out_once_it_was_compared(
    log: Log, missing: tuple[int, ...], checks_crcs: bool, given: Sequence[int]
) -> None:
    large, tier, piece = _large(log, *missing)
    damaged = attrs.evolve(piece, crc32c=1)
    opened = open_piece(damaged, checks_crcs=checks_crcs, open_store=lambda _: tier.store)

    assert _given(opened) == list(given), "what a get of 4 MiB brought before the gap"
    read = read_pieces([damaged], large, tier.store, fallen_back=(CorruptRecordsError,))
    assert list(read) == large.rows(0, 20, is_read_committed=True)


@pytest.mark.parametrize(("missing", "checks_crcs"), [((9,), True), ((0, 19), True), ((), False)])
def test_a_large_object_is_read_through_a_file_where_its_checksum_goes_first(
    log: Log, missing: tuple[int, ...], checks_crcs: bool
) -> None:
    large, tier, piece = _large(log, *missing)
    opened: list[IO[bytes]] = []

    def open_file() -> IO[bytes]:
        opened.append(TemporaryFile())  # noqa: SIM115 # who reads closes it
        return opened[-1]

    runs = open_piece(piece, checks_crcs=checks_crcs, open_store=lambda _: tier.store, open_file=open_file)
    got = b"".join(bytes(data) for data, _ in runs)

    assert got == large.segments[0].data
    assert [file.closed for file in opened] == [True]


def test_a_disk_without_room_for_that_leaves_the_rest_to_the_broker(log: Log) -> None:
    _, tier, piece = _large(log, 9)

    class Full(BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(PieceGoneError, match=r"no room in .*No space left"):
        list(open_piece(piece, open_store=lambda _: tier.store, open_file=Full))
