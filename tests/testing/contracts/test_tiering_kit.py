"""The kit of tiers itself: a tier that keeps its promises passes, and every test of the kit finds one that does not."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from odradek.kernel.contracts.cleanup import CleanupSettings
from odradek.kernel.contracts.log_values import SegmentInfo
from odradek.kernel.contracts.storage import NO_LIMIT, LogRead, PartitionLog
from odradek.kernel.contracts.tiering import TieredLog, TierSettings
from odradek.plugins.storage_segment.engine import SegmentEngine
from odradek.testing.contracts.storage_base import PARTITION, SMALL, make_context
from odradek.testing.contracts.tiering import TieredHost, TieringContract
from odradek.testing.far_tier import FarLog, FarStart

SETTINGS = TierSettings(-1, -1, remote_log_copy_disable=False, cleanup=CleanupSettings())


class FarHost:
    def __init__(self, directory: Path, far: type[FarLog]) -> None:
        self.engine = SegmentEngine(make_context(directory))
        self.engine.start()
        self.inner: PartitionLog = self.engine.open_log(PARTITION, SMALL)
        self.far = far(self.inner, SETTINGS)
        self.log = cast("TieredLog", self.far)

    async def send(self) -> None:
        self.far.send(self.inner.active_base_offset)

    def settle(self) -> None:
        asked, self.far.asked = self.far.asked, []
        for offset, _max_bytes, done in asked:
            self.far.near.add(offset)
            done()


def contract_of(far: type[FarLog]) -> Any:
    class Contract(TieringContract):
        def hosted(self, directory: Path) -> AbstractAsyncContextManager[TieredHost]:
            @asynccontextmanager
            async def hosted() -> AsyncIterator[TieredHost]:
                host = FarHost(directory, far)
                yield host
                host.engine.close({})

            return hosted()

    return Contract()


class KnowsOfWhatIsNotThere(FarLog):
    @property
    def tiered_end_offset(self) -> int:
        return 5


class ChangesBytes(FarLog):
    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        read = super().read(offset, max_bytes, end_offset, at_least_one=at_least_one)
        if offset >= self.border or not read.size_bytes:
            return read
        data = bytearray(cast("Any", read.data).read())
        data[-1] ^= 1
        return read._replace(data=bytes(data))


class ForgetsFarSegments(FarLog):
    def segments(self) -> Sequence[SegmentInfo]:
        return [segment for segment in self.inner.segments() if segment.base_offset >= self.border]


class NeverRefuses(FarLog):
    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        return self.inner.read(offset, max_bytes, end_offset, at_least_one=at_least_one)


class CallsAtOnce(FarLog):
    def begin_cold_read(self, offset: int, max_bytes: int, done: Callable[[], None]) -> None:
        self.near.add(offset)
        done()


class PassesOverLimits(FarLog):
    def read(self, offset: int, max_bytes: int, end_offset: int = NO_LIMIT, *, at_least_one: bool = False) -> LogRead:
        return super().read(offset, max_bytes, NO_LIMIT, at_least_one=at_least_one)


class ReplaysWhatIsFar(FarLog):
    def batches(self, start_offset: int, end_offset: int = NO_LIMIT) -> Iterator[memoryview]:
        return self.inner.batches(start_offset, end_offset)


class FindsNoFarTimes(FarLog):
    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        return self.inner.batch_for_timestamp(timestamp, max(start_offset, self.border))


class KnowsFarTimes(FarLog):
    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        return self.inner.batch_for_timestamp(timestamp, start_offset)


class LosesTheLargestTime(FarLog):
    def max_timestamp(self) -> tuple[int, int]:
        return (-1, -1)


class KeepsItsStart(FarLog):
    def advance_log_start(self, offset: int) -> None:
        pass


class DeletesNothing(FarLog):
    def delete_segments_below(self, offset: int) -> int:
        return 0


class SendsOnce(FarLog):
    def send(self, offset: int) -> None:
        self.border = self.border or offset


class GivesUpWhatIsFar(FarLog):
    def begin_at_store(self, offset: int, *, is_exact: bool) -> FarStart:
        log = self

        class Start(FarStart):
            def apply(self) -> None:
                log.inner.truncate_fully(offset)
                log.border = offset

        return Start(self, offset)


class ForgetsProducers(FarLog):
    def begin_at_store(self, offset: int, *, is_exact: bool) -> FarStart:
        log = self

        class Start(FarStart):
            def apply(self) -> None:
                super().apply()
                log.inner.delete_sidecar(offset, "snapshot")

        return Start(self, offset)


class BeginsTooEarly(FarLog):
    def begin_at_store(self, offset: int, *, is_exact: bool) -> FarStart:
        class Start(FarStart):
            def run(self) -> None:
                self.apply()

        return Start(self, offset)


class LeavesTheFarPartBehind(FarLog):
    def unwrap(self) -> PartitionLog:
        return self.inner


class TakesNoRecordForALoss(FarLog):
    def unwrap(self) -> PartitionLog:
        assert self.inner.log_end_offset, "its directory is gone"
        return super().unwrap()


BROKEN = {
    "test_before_anything_was_sent_it_is_the_wrapped_log": KnowsOfWhatIsNotThere,
    "test_what_was_sent_is_read_byte_for_byte": ChangesBytes,
    "test_offsets_segments_and_epochs_speak_of_both_tiers": ForgetsFarSegments,
    "test_what_is_far_is_refused_until_it_was_brought_near": NeverRefuses,
    "test_everybody_who_asked_is_called_once_and_not_before_the_call_returns": CallsAtOnce,
    "test_a_read_keeps_its_limits_on_both_sides_of_the_border": PassesOverLimits,
    "test_batches_are_those_of_the_local_log": ReplaysWhatIsFar,
    "test_times_are_found_in_both_tiers_once_they_were_looked_for": FindsNoFarTimes,
    "test_a_time_in_the_far_part_is_refused_until_it_was_looked_for": KnowsFarTimes,
    "test_the_largest_time_is_that_of_the_local_log": LosesTheLargestTime,
    "test_the_log_start_goes_through_both_tiers": KeepsItsStart,
    "test_segments_are_deleted_in_both_tiers": DeletesNothing,
    "test_appends_go_on_and_are_sent_in_their_turn": SendsOnce,
    "test_a_follower_begins_at_a_segments_end_in_the_store": GivesUpWhatIsFar,
    "test_a_follower_that_begins_at_the_store_knows_the_producers_of_there": ForgetsProducers,
    "test_a_beginning_at_the_store_that_is_not_applied_changes_nothing": BeginsTooEarly,
    "test_unwrapped_it_is_what_is_local": LeavesTheFarPartBehind,
    "test_unwrapped_before_anything_was_written_it_is_an_empty_log": TakesNoRecordForALoss,
}
TESTS = [name for name, _ in inspect.getmembers(TieringContract, inspect.isfunction) if name.startswith("test_")]


@pytest.mark.parametrize("name", TESTS)
def test_a_tier_that_keeps_its_promises_passes(name: str, tmp_path: Path) -> None:
    getattr(contract_of(FarLog), name)(tmp_path)


@pytest.mark.parametrize("name", TESTS)
def test_a_tier_that_breaks_a_promise_is_found(name: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(contract_of(BROKEN[name]), name)(tmp_path)
