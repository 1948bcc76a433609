"""The storage kit itself: a broken storage is found, and every test of the kit finds at least one."""

import inspect
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from odradek.kernel.api import (
    EMPTY_READ,
    DiskWork,
    EpochEnd,
    FoundLog,
    LogConfig,
    LogRead,
    SegmentRewrite,
    StorageContext,
    TopicIdPartition,
)
from odradek.plugins.storage_memory.engine import MemoryEngine
from odradek.plugins.storage_memory.log import MemoryLog
from odradek.plugins.storage_memory.rewriting import MemoryPlace
from odradek.storage_base import Work
from odradek.testing.contracts.storage import StorageContract

MODEL_TEST = "test_the_log_does_what_a_list_of_batches_would_do"
CONTRACT_TESTS = [name for name, _ in inspect.getmembers(StorageContract, inspect.isfunction) if name[:5] == "test_"]


class Broken(MemoryLog):
    """What a careless author might write; each subclass is one mistake."""

    expected: Sequence[str] = ()


class NothingIsNew(Broken):
    expected = ("test_a_new_log_is_empty",)

    @property
    def latest_epoch(self) -> int:
        return 0


class WritesAtOnce(Broken):
    expected = ("test_what_is_staged_counts_and_is_not_read_yet",)

    def append(self, *args) -> None:  # type: ignore[no-untyped-def] # whatever the base takes
        super().append(*args)
        self.write_pending()


class ChangesBytes(Broken):
    expected = (
        "test_what_was_written_is_read_byte_for_byte",
        "test_a_read_begins_with_the_batch_that_holds_the_offset",
        "test_batches_of_a_run_are_found_one_by_one",
        "test_offsets_may_have_gaps",
        "test_a_borrowed_buffer_may_change_after_it_was_written",
    )

    def read(self, *args, **kwargs) -> LogRead:  # type: ignore[no-untyped-def] # whatever the base takes
        read = super().read(*args, **kwargs)
        return read._replace(data=bytes(len(read.data))) if isinstance(read.data, bytes) else read


class IgnoresMaxBytes(Broken):
    expected = (
        "test_a_read_is_cut_at_the_end_of_a_batch",
        "test_a_first_batch_that_is_too_large_is_given_only_when_asked_for",
        "test_a_read_stays_good_when_its_segment_goes",
    )

    def read(self, offset, max_bytes, end_offset=1 << 62, *, at_least_one=False) -> LogRead:  # type: ignore[no-untyped-def]
        return super().read(offset, 1 << 40, end_offset, at_least_one=at_least_one)


class IgnoresEndOffset(Broken):
    expected = ("test_a_read_holds_nothing_at_or_above_the_end_offset", MODEL_TEST)

    def read(self, offset, max_bytes, end_offset=1 << 62, *, at_least_one=False) -> LogRead:  # type: ignore[no-untyped-def]
        return super().read(offset, max_bytes, at_least_one=at_least_one)


class StopsAtSegments(Broken):
    expected = ("test_reading_on_sees_every_batch_once_across_segments",)

    def read(self, offset, max_bytes, end_offset=1 << 62, *, at_least_one=False) -> LogRead:  # type: ignore[no-untyped-def]
        if offset >= self.segments()[0].next_offset:
            return EMPTY_READ
        return super().read(offset, max_bytes, end_offset, at_least_one=at_least_one)


class TakesAnyOffset(Broken):
    expected = ("test_an_append_before_the_end_is_a_bug",)

    def append(self, batches, base_offset, last_offset, max_timestamp) -> None:  # type: ignore[no-untyped-def]
        super().append(batches, max(base_offset, self.log_end_offset), last_offset, max_timestamp)


class KeepsWhatALookUpFound(Broken):
    expected = ("test_a_look_up_of_a_time_on_a_thread_changes_no_answer",)
    found: tuple[int, int] | None = None

    def begin_time_lookup(self, timestamp: int) -> None:
        del timestamp
        self.found = self.found or super().max_timestamp()

    def max_timestamp(self) -> tuple[int, int]:
        return self.found or super().max_timestamp()


class IsNothingBeforeItsFirstBatch(Broken):
    expected = (
        "test_all_that_is_asked_of_a_log_that_nothing_was_written_to_is_answered",
        "test_a_small_file_beside_a_log_that_nothing_was_written_to_is_kept",
        "test_a_log_that_nothing_was_written_to_is_empty_whether_it_was_kept_or_not",
    )

    def __getattribute__(self, name: str):  # type: ignore[no-untyped-def]
        if name in {"truncate_to", "write_sidecar", "batches"} and not self.log_end_offset:
            raise OSError("there is no such file")
        return super().__getattribute__(name)


class IteratesAll(Broken):
    expected = ("test_batches_are_iterated_from_the_one_that_holds_the_offset",)

    def batches(self, start_offset, end_offset=1 << 62):  # type: ignore[no-untyped-def]
        return super().batches(0)


class NeverRolls(Broken):
    expected = (
        "test_a_log_rolls_when_a_batch_does_not_fit_its_segment",
        "test_a_roll_begins_a_segment_at_the_end",
        "test_an_empty_segment_is_not_rolled",
        "test_segments_tell_their_size_and_largest_timestamp",
        "test_new_settings_are_followed",
    )

    def __init__(self, partition, config, now_ms) -> None:  # type: ignore[no-untyped-def]
        super().__init__(partition, LogConfig(flush_messages=config.flush_messages), now_ms)

    def reconfigure(self, config: LogConfig) -> None:
        del config

    def roll(self) -> None:
        return


class GivesUpNothing(Broken):
    expected = ("test_segments_wholly_below_an_offset_are_given_up", "test_the_active_segment_is_never_given_up")

    def delete_segments_below(self, offset: int) -> int:
        del offset
        return 0


class ReplacesNothing(Broken):
    expected = (
        "test_a_rewritten_segment_takes_the_place_of_neighbours",
        "test_the_active_segment_is_not_rewritten",
        "test_a_rewrite_of_what_was_deleted_meanwhile_is_given_up",
        "test_a_rewrite_of_a_log_that_was_cut_meanwhile_is_given_up",
        "test_appends_go_on_beside_a_rewrite",
        "test_a_rewrite_brings_its_small_files_and_drops_the_old_index_of_transactions",
    )

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        del base_offsets
        return Work()


class RewritesEverything(Broken):
    expected = (
        "test_the_segments_to_rewrite_are_read_beside_the_log",
        "test_a_rewrite_ends_where_it_is_told_to",
        "test_only_what_is_durable_may_be_rewritten",
    )

    @property
    def rewritable_end(self) -> int:
        return self.log_end_offset

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        del end_offset
        return self.rewrite_of([(segment, self.log_end_offset) for segment in self._segments])


class HasRoomForOneRewrite(Broken):
    """Who asks for segments takes the place of who rewrites them."""

    expected = ("test_who_reads_closed_segments_does_not_disturb_who_rewrites_them",)

    def begin_rewrite(self, end_offset: int) -> SegmentRewrite:
        self._rewritten = MemoryPlace(self.now_ms)
        return super().begin_rewrite(end_offset)


class CleansForEver(Broken):
    expected = ("test_the_clean_end_is_remembered_and_goes_back_with_the_log",)

    def truncate_to(self, offset: int) -> None:
        before = self.clean_end
        super().truncate_to(offset)
        self.clean_end = before


class RewritesInPlace(Broken):
    """What is read is what the log holds by now."""

    expected = ("test_a_read_stays_good_when_its_segment_is_rewritten",)

    def begin_replacement(self, base_offsets: Sequence[int]) -> DiskWork:
        self._segments[0].batches[:] = [bytes(len(batch)) for batch in self._segments[0].batches]
        return super().begin_replacement(base_offsets)

    def read(self, *args, **kwargs) -> LogRead:  # type: ignore[no-untyped-def] # whatever the base takes
        read = super().read(*args, **kwargs)
        return LogRead(_Late(self, read.data), read.size_bytes, read.next_offset)  # type: ignore[arg-type] # wrong on purpose


class _Late:
    """Reads when it is asked for its bytes."""

    def __init__(self, log: MemoryLog, data: object) -> None:
        self.log, self.data = log, data

    def read(self) -> object:
        return self.log._segments[0].batches[0] if self.data else self.data


class RollsBySizeAlone(Broken):
    expected = ("test_a_segment_that_is_old_enough_is_rolled_by_the_next_append",)

    def _must_roll(self, active, size, timestamp) -> bool:  # type: ignore[no-untyped-def] # whatever the base takes
        del timestamp
        return super()._must_roll(active, size, -1)


class TruncatesOneTooMany(Broken):
    expected = (
        "test_a_truncation_drops_every_batch_at_or_above_the_offset",
        "test_a_truncation_beyond_the_end_changes_nothing",
        "test_appends_go_on_after_a_truncation",
    )

    def truncate_to(self, offset: int) -> None:
        super().truncate_to(min(offset, self.log_end_offset) - 1 if offset else 0)


class KeepsWhatAReadFound(Broken):
    expected = ("test_a_read_after_a_truncation_ends_between_the_batches_that_are_there_now",)
    found: LogRead | None = None

    def read(self, *args, **kwargs) -> LogRead:  # type: ignore[no-untyped-def] # whatever the base takes
        self.found = self.found or super().read(*args, **kwargs)
        return self.found


class TruncatesNothing(Broken):
    expected = (
        "test_a_batch_across_the_offset_is_dropped_whole",
        "test_a_full_truncation_begins_anew_elsewhere",
        "test_a_truncation_drops_the_small_files_above_it",
        "test_epochs_go_with_their_records",
        "test_a_log_begins_anew_in_an_epoch",
    )

    def truncate_to(self, offset: int) -> None:
        del offset
        self.write_pending()

    def truncate_fully(self, start_offset: int, leader_epoch: int = -1) -> None:
        del start_offset, leader_epoch


class StartsAnywhere(Broken):
    expected = ("test_the_log_start_only_moves_forward",)

    def advance_log_start(self, offset: int) -> None:
        self.log_start_offset = offset


class FindsTheLastTimestamp(Broken):
    expected = ("test_a_timestamp_finds_the_first_batch_that_is_as_late",)

    def batch_for_timestamp(self, timestamp: int, start_offset: int) -> bytes | None:
        return super().batch_for_timestamp(timestamp + 1, start_offset)


class KnowsNoTimestamp(Broken):
    expected = ("test_the_largest_timestamp_is_that_of_the_first_batch_that_has_it",)

    def max_timestamp(self) -> tuple[int, int]:
        return -1, -1


class EpochsEndAtTheEnd(Broken):
    expected = ("test_epochs_tell_where_they_end",)

    def end_offset_for_epoch(self, leader_epoch: int) -> EpochEnd:
        return EpochEnd(leader_epoch, self.log_end_offset)


class FlushesNothing(Broken):
    expected = (
        "test_a_flush_moves_the_recovery_point_to_what_is_written",
        "test_flush_messages_asks_for_a_flush",
        "test_flushes_may_overtake_each_other",
    )

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        del closed_only
        return Work()


class FlushesToTheEnd(Broken):
    """What a worker thread does that looks at the log when it is done."""

    expected = (
        "test_a_flush_counts_what_was_written_when_it_began",
        "test_a_truncation_beside_a_flush_keeps_the_recovery_point_low",
        "test_a_flush_of_closed_segments_leaves_the_active_one",
        "test_a_flush_of_a_log_that_was_closed_or_deleted_is_refused",
    )

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        del closed_only
        return Work(self._to_the_end)

    def _to_the_end(self) -> None:
        self.recovery_point = self.log_end_offset


class NeverFails(Work):
    def finish(self, error: Exception | None) -> None:
        del error
        self.apply()


class HidesFailures(Broken):
    expected = ("test_a_flush_that_fails_moves_nothing", "test_a_small_file_is_there_when_it_is_finished")

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        flush = super().begin_flush(closed_only=closed_only)
        assert isinstance(flush, Work)
        return NeverFails(flush.apply)

    def begin_sidecar(self, offset: int, kind: str, data: bytes) -> DiskWork:
        return NeverFails(lambda: self.write_sidecar(offset, kind, data))


class MakesSegmentsAnew(Broken):
    expected = ("test_a_flush_beside_a_deletion_makes_nothing_anew",)

    def begin_flush(self, *, closed_only: bool = False) -> DiskWork:
        segments = list(self._segments)

        def flush() -> None:
            self._segments = [*(s for s in segments if s not in self._segments), *self._segments]

        del closed_only
        return Work(flush)


class ServesWhileItCloses(Broken):
    expected = ("test_a_log_whose_close_was_begun_serves_nothing_and_has_everything",)

    def begin_close(self) -> DiskWork:
        return Work()


class LosesSmallFiles(Broken):
    expected = ("test_small_files_are_kept_beside_the_log",)

    def write_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        del offset, kind, data


class GrowsNoSmallFiles(Broken):
    expected = ("test_small_files_grow_beside_the_log",)

    def append_sidecar(self, offset: int, kind: str, data: bytes) -> None:
        self.write_sidecar(offset, kind, data)


class StaysOpen(Broken):
    expected = ("test_a_closed_log_refuses",)

    def check_open(self) -> None:
        return


class ForgetsOnClose(Broken):
    expected = ("test_a_log_closed_and_opened_again_goes_on",)

    def reopen(self, config: LogConfig) -> None:
        super().reopen(config)
        self.truncate_fully(0)


class Forgetful(MemoryEngine):
    """An engine that makes every mistake there is with logs as a whole."""

    def delete_log(self, partition: TopicIdPartition) -> None:
        del partition

    def open_log(self, partition, config, *, log_dir=None, known_end=None):  # type: ignore[no-untyped-def]
        log = self._kept.get(partition.topic_partition)
        return log or super().open_log(partition, config, log_dir=log_dir, known_end=known_end)

    def start(self) -> Sequence[FoundLog]:
        return ()

    def high_watermarks(self) -> dict[TopicIdPartition, int]:
        return {}


FORGETFUL = (
    "test_a_deleted_log_is_gone_and_its_namesake_begins_empty",
    "test_a_log_of_another_topic_id_is_refused",
    "test_the_engine_knows_a_cluster_id_after_its_start",
    "test_a_checkpoint_keeps_high_watermarks",
    "test_a_checkpoint_holds_what_was_true_when_it_began",
)
LEVELS = (
    "test_what_was_written_outlives_the_engine",
    "test_a_checkpointed_log_start_outlives_the_engine",
    "test_how_new_the_last_record_was_outlives_the_records_and_the_engine",
    "test_the_epoch_in_which_a_log_begins_anew_outlives_the_engine",
    "test_the_engine_finds_its_logs_at_start",
    "test_a_rewritten_log_outlives_the_engine",
    "test_a_checkpointed_clean_end_outlives_the_engine",
    "test_what_one_engine_holds_no_other_takes",
    "test_what_is_of_one_cluster_is_refused_to_another",
)


def fails(name: str, engine_class: type[MemoryEngine], *, is_durable: bool = False) -> bool:
    """Say whether one test of the kit fails for an engine."""

    class Kit(StorageContract):
        recovers = is_durable
        shrinks = False

        def make_engine(self, context: StorageContext) -> MemoryEngine:
            return engine_class(context)

    Kit.is_durable = is_durable
    with TemporaryDirectory() as directory:
        try:
            getattr(Kit(), name)(Path(directory))
        except pytest.skip.Exception:
            return False
        except (Exception, pytest.fail.Exception):
            return True
    return False


def engine_of(log_class: type[Broken]) -> type[MemoryEngine]:
    class Engine(MemoryEngine):
        def open_log(self, partition, config, *, log_dir=None, known_end=None):  # type: ignore[no-untyped-def]
            if partition.topic_partition not in self._kept:
                log = self._kept[partition.topic_partition] = log_class(partition, config, self.context.now_ms)
                self.logs[partition] = log
                return log
            return super().open_log(partition, config, log_dir=log_dir, known_end=known_end)

    return Engine


@pytest.mark.parametrize("log_class", Broken.__subclasses__(), ids=lambda c: c.__name__)
def test_the_kit_finds_a_broken_log(log_class: type[Broken]) -> None:
    missed = [name for name in log_class.expected if not fails(name, engine_of(log_class))]

    assert missed == []


def test_the_kit_finds_a_broken_engine() -> None:
    missed = [name for name in FORGETFUL if not fails(name, Forgetful)]
    missed += [name for name in LEVELS if not fails(name, MemoryEngine, is_durable=True)]

    assert missed == []


def test_every_test_of_the_kit_finds_something() -> None:
    finding = {name for broken in Broken.__subclasses__() for name in broken.expected} | {*FORGETFUL, *LEVELS}

    assert sorted(set(CONTRACT_TESTS) - finding) == []


def test_a_sound_storage_passes_what_the_broken_ones_fail() -> None:
    assert [name for name in CONTRACT_TESTS if name != MODEL_TEST and fails(name, MemoryEngine)] == []
