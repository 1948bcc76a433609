"""Shell: the contract kit of tiers: subclass `TieringContract` and give `hosted`.

Needs pytest and trio. Each test's name is the promise it checks.

.. versionadded:: 0.1
"""

# ruff: noqa: D102 - the name of a contract test is its sentence
from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
import trio
import trio.testing

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.contracts.storage import NO_LIMIT
from odradek.kernel.contracts.tiering import RecordsAreRemoteError
from odradek.kernel.records.batch import iterate_batches, read_header

from .storage_base import fill, read_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from odradek.kernel.contracts.storage import LogRead, PartitionLog
    from odradek.kernel.contracts.tiering import TieredLog

COUNT = 40
"""Batches of one record that are written: several segments of `storage_base.SMALL`."""
FIRST_OF_EPOCH_1 = 10
READ_BYTES = 500
WAIT_S_MAX = 10


class TieredHost(Protocol):
    """A tiered log and what its tier needs to work."""

    @property
    def inner(self) -> PartitionLog:
        """The wrapped log, of `storage_base.PARTITION`, opened with `storage_base.SMALL`; empty at first."""
        ...

    @property
    def log(self) -> TieredLog:
        """What wraps it."""
        ...

    async def send(self) -> None:
        """Have every closed segment be in the store, and none of them on the local disk."""
        ...

    def settle(self) -> None:
        """Let reads that were begun come to their end, where they do not by themselves."""
        ...


class TieringContract:
    """What every tier promises."""

    def hosted(self, directory: Path) -> AbstractAsyncContextManager[TieredHost]:
        """Return what hosts a new tiered log, its files below `directory`, and has its tier work inside of it."""
        raise NotImplementedError

    def _run(self, directory: Path, test: Callable[[TieredHost, list[bytes]], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.hosted(directory) as host:
                host.log.assign_epoch(0, 0)
                written = fill(host.log, 0, FIRST_OF_EPOCH_1)
                host.log.assign_epoch(1, FIRST_OF_EPOCH_1)
                written += fill(host.log, FIRST_OF_EPOCH_1, COUNT, epoch=1)
                keep(host.log)
                await test(host, written)

        trio.run(main)

    def test_before_anything_was_sent_it_is_the_wrapped_log(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            log, inner = host.log, host.inner

            assert (log.log_start_offset, log.local_log_start_offset, log.tiered_end_offset) == (0, 0, 0)
            assert (log.log_end_offset, log.size_bytes) == (COUNT, inner.size_bytes)
            assert list(log.segments()) == list(inner.segments())
            assert await read_all(host) == written
            assert log.unwrap() is inner

        self._run(tmp_path, check)

    def test_what_was_sent_is_read_byte_for_byte(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()

            assert 0 < host.log.local_log_start_offset <= host.log.tiered_end_offset
            assert await read_all(host) == written
            assert await read_all(host) == written

        self._run(tmp_path, check)

    def test_offsets_segments_and_epochs_speak_of_both_tiers(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, _written: list[bytes]) -> None:
            log = host.log
            segments = [segment[:4] for segment in log.segments()]
            epochs = list(log.epoch_entries())
            ends = [log.end_offset_for_epoch(epoch) for epoch in (-1, 0, 1, 2)]
            size_bytes = log.size_bytes

            await host.send()

            assert [segment[:4] for segment in log.segments()] == segments
            assert list(log.epoch_entries()) == epochs == [(0, 0), (1, FIRST_OF_EPOCH_1)]
            assert [log.end_offset_for_epoch(epoch) for epoch in (-1, 0, 1, 2)] == ends
            assert (log.log_start_offset, log.log_end_offset) == (0, COUNT)
            assert 0 < log.size_bytes < size_bytes

        self._run(tmp_path, check)

    def test_what_is_far_is_refused_until_it_was_brought_near(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            with pytest.raises(RecordsAreRemoteError):
                host.log.read(0, READ_BYTES)
            with pytest.raises(RecordsAreRemoteError):
                host.log.read(0, READ_BYTES)

            await bring_near(host, 0)

            assert batches_of(host.log.read(0, len(written[0])))[:1] == written[:1]

        self._run(tmp_path, check)

    def test_everybody_who_asked_is_called_once_and_not_before_the_call_returns(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, _written: list[bytes]) -> None:
            await host.send()
            called = {"first": 0, "second": 0}
            is_over = trio.Event()

            def note(who: str) -> None:
                called[who] += 1
                if all(called.values()):
                    is_over.set()

            host.log.begin_cold_read(0, READ_BYTES, lambda: note("first"))
            host.log.begin_cold_read(0, READ_BYTES, lambda: note("second"))
            assert not any(called.values())
            host.settle()
            with trio.fail_after(WAIT_S_MAX):
                await is_over.wait()
            await trio.testing.wait_all_tasks_blocked()

            assert called == {"first": 1, "second": 1}

        self._run(tmp_path, check)

    def test_a_read_keeps_its_limits_on_both_sides_of_the_border(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            log, border = host.log, host.log.local_log_start_offset
            for offset in (0, 3, border - 1, border):
                await bring_near(host, offset)
                size = len(written[offset])

                assert log.read(offset, size - 1).size_bytes == 0
                assert batches_of(log.read(offset, size - 1, at_least_one=True)) == [written[offset]]
                assert log.read(offset, 1 << 20, offset).size_bytes == 0
                below = batches_of(log.read(offset, 1 << 20, offset + 2))
                assert below == written[offset : offset + len(below)]
                assert 1 <= len(below) <= 2

        self._run(tmp_path, check)

    def test_batches_are_those_of_the_local_log(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            border = host.log.local_log_start_offset

            assert [bytes(batch) for batch in host.log.batches(0)] == written[border:]

        self._run(tmp_path, check)

    def test_times_are_found_in_both_tiers_once_they_were_looked_for(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            log, border = host.log, host.log.local_log_start_offset
            for offset in (0, 3, border - 1, border, COUNT - 1):
                timestamp = read_header(written[offset]).max_timestamp
                work = log.begin_time_lookup(timestamp)
                if work is not None:
                    do_now(work)

                assert log.batch_for_timestamp(timestamp, 0) == written[offset]
            assert log.batch_for_timestamp(read_header(written[-1]).max_timestamp + 1, 0) is None

        self._run(tmp_path, check)

    def test_a_time_in_the_far_part_is_refused_until_it_was_looked_for(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            timestamp = read_header(written[3]).max_timestamp

            with pytest.raises(RecordsAreRemoteError):
                host.log.batch_for_timestamp(timestamp, 0)
            assert host.log.begin_time_lookup(timestamp) is not None

        self._run(tmp_path, check)

    def test_the_largest_time_is_that_of_the_local_log(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            work = host.log.begin_time_lookup(NO_LIMIT)
            if work is not None:
                do_now(work)

            assert host.log.max_timestamp() == host.inner.max_timestamp()
            assert host.log.max_timestamp() == (read_header(written[-1]).max_timestamp, COUNT - 1)

        self._run(tmp_path, check)

    def test_the_log_start_goes_through_both_tiers(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            log, border = host.log, host.log.local_log_start_offset

            log.advance_log_start(3)
            assert (log.log_start_offset, log.local_log_start_offset) == (3, border)
            assert await read_all(host) == written[3:]

            log.advance_log_start(border + 1)
            assert log.log_start_offset == border + 1
            assert await read_all(host) == written[border + 1 :]
            assert log.epoch_entries()[0] == (1, border + 1)

        self._run(tmp_path, check)

    def test_segments_are_deleted_in_both_tiers(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            log = host.log
            first, second, *_ = log.segments()

            assert log.delete_segments_below(second.next_offset - 1) == 1
            assert (log.log_start_offset, log.segments()[0].base_offset) == (first.next_offset, second.base_offset)
            assert await read_all(host) == written[first.next_offset :]

            active = log.active_base_offset
            log.delete_segments_below(COUNT)
            assert log.log_start_offset == log.local_log_start_offset == active
            assert await read_all(host) == written[active:]

        self._run(tmp_path, check)

    def test_appends_go_on_and_are_sent_in_their_turn(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            border = host.log.local_log_start_offset
            more = fill(host.log, COUNT, 2 * COUNT, epoch=1)
            keep(host.log)

            await host.send()

            assert host.log.local_log_start_offset > border
            assert await read_all(host) == written + more

        self._run(tmp_path, check)

    def test_a_follower_begins_at_a_segments_end_in_the_store(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            log, border = host.log, host.log.local_log_start_offset

            begin_at_store(log, border)

            begin = log.log_end_offset
            assert border <= begin <= COUNT
            assert (log.log_start_offset, log.local_log_start_offset) == (0, begin)
            assert await read_all(host) == written[:begin]
            assert log.end_offset_for_epoch(0).end_offset == FIRST_OF_EPOCH_1
            assert (log.latest_epoch, log.end_offset_for_epoch(1).end_offset) == (1, begin)
            more = fill(log, begin, begin + COUNT, epoch=1)
            assert await read_all(host) == written[:begin] + more

        self._run(tmp_path, check)

    def test_a_follower_that_begins_at_the_store_knows_the_producers_of_there(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, _written: list[bytes]) -> None:
            await host.send()
            log = host.log
            log.write_sidecar(COUNT, "snapshot", b"of what is given up")

            begin_at_store(log, log.local_log_start_offset)

            assert list(log.sidecars("snapshot")) == [log.log_end_offset]
            assert log.read_sidecar(log.log_end_offset, "snapshot") == b"state of producers"

        self._run(tmp_path, check)

    def test_a_beginning_at_the_store_that_is_not_applied_changes_nothing(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            log, border = host.log, host.log.local_log_start_offset
            start = log.begin_at_store(border, is_exact=False)
            start.run()
            for work in start.begin_keeping():
                do_now(work)

            assert (log.local_log_start_offset, log.log_end_offset) == (border, COUNT)
            assert await read_all(host) == written

        self._run(tmp_path, check)

    def test_unwrapped_it_is_what_is_local(self, tmp_path: Path) -> None:
        async def check(host: TieredHost, written: list[bytes]) -> None:
            await host.send()
            border = host.log.local_log_start_offset

            alone = host.log.unwrap()

            assert alone is host.inner
            assert alone.log_start_offset == border
            assert [bytes(batch) for batch in alone.batches(border)] == written[border:]
            assert alone.segments()[0].base_offset == border

        self._run(tmp_path, check)

    def test_unwrapped_before_anything_was_written_it_is_an_empty_log(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with self.hosted(tmp_path) as host:
                alone = host.log.unwrap()

                assert alone is host.inner
                assert (alone.log_start_offset, alone.log_end_offset) == (0, 0)
                assert len(fill(alone, 0, 3)) == len(list(alone.batches(0)))

        trio.run(main)


def keep(log: TieredLog) -> None:
    """Flush, and keep the producers' state where the active segment begins, as a replica does when it rolls."""
    log.flush()
    log.write_sidecar(log.active_base_offset, "snapshot", b"state of producers")


def begin_at_store(log: TieredLog, offset: int) -> None:
    """Have a log begin at the store's part, as a follower does."""
    start = log.begin_at_store(offset, is_exact=False)
    start.run()
    for work in start.begin_keeping():
        do_now(work)
    start.apply()


async def bring_near(host: TieredHost, offset: int) -> None:
    """Have records brought near, and wait for them; what is local is there."""
    if offset >= host.log.local_log_start_offset:
        return
    is_there = trio.Event()
    host.log.begin_cold_read(offset, READ_BYTES, is_there.set)
    host.settle()
    with trio.fail_after(WAIT_S_MAX):
        await is_there.wait()


async def read_all(host: TieredHost) -> list[bytes]:
    """Read every batch from the log start on, as a consumer does."""
    log = host.log
    found: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            read = log.read(offset, READ_BYTES, at_least_one=True)
        except RecordsAreRemoteError:
            await bring_near(host, offset)
            read = log.read(offset, READ_BYTES, at_least_one=True)
        assert read.next_offset > offset, "a read that has something leads on"
        found += batches_of(read)
        offset = read.next_offset
    return found


def batches_of(read: LogRead) -> list[bytes]:
    """Return a read's batches."""
    data = read_bytes(read)
    return [data[at : at + header.length_bytes] for at, header in iterate_batches(data)]
