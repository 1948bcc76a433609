"""Shell: open a log's directory: finish what a crash left half done, check what may be broken, build what is missing.

After a clean shutdown nothing is read but names, sizes and where the last segment ends, by its last index entry; a
checkpoint that says something else is not believed. Otherwise every batch from the recovery point's segment on
is checked, the log is cut before the first broken one and before the first hole (a loss of power may keep a segment
and lose the end of the one before it), and indexes and leader epochs are built anew. A log whose owner cannot spare a
record is only cut where a crash tears (`damage.py`).

Leftovers, by the mark of their names (the order of renames stands in `directory.py`):

| mark | means |
| --- | --- |
| `.deleted`, `.tmp` | remove |
| `.cleaned` | a replacement was not ready: remove, and every `.swap` at or above the lowest of them |
| `.swap` | a replacement was ready: it takes the place of what begins in its range of offsets |

An index without its `.log` goes, too. A replacement tells no more than where its last batch ends: old segments of which
it kept nothing, and that stand behind that, stay, whole, until the next compaction.

*Source:* LogLoader of Kafka 4.3.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.kernel.api import CorruptionError, frozen, read_file, replace_file
from odradek.storage_base import EpochCache

from .damage import refuse_loss
from .directory import LogDirectory
from .formats import (
    CLEANED,
    DELETED,
    EPOCH_CHECKPOINT,
    INDEX_ENTRY,
    LOG,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    TIME_INDEX_ENTRY,
    SegmentFile,
    decode_epochs,
    encode_epochs,
    parse_segment_file,
    segment_file_name,
)
from .rewriting import SWAP_ORDER
from .segment import FAR, Segment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from odradek.kernel.api import Files, FileStat, LogConfig

    from .directory import Discard

_logger: Final = logging.getLogger(__name__)

_PLACES: Final = {kind: place for place, kind in enumerate(SWAP_ORDER)}


class OpenedLog(NamedTuple):
    """A directory after recovery.

    `has_new_epochs`: the file of the epochs was written anew from the log, and is to be synced with the next flush.
    """

    directory: LogDirectory
    epochs: EpochCache
    log_start_offset: int
    recovery_point: int
    was_clean: bool
    has_new_epochs: bool = False


@frozen
class KnownState:
    """What is known of a log before its directory is opened.

    Attributes:
        is_clean: Whether the shutdown was.
        recovery_point: From the checkpoint; None when there is none: then everything is checked.
        log_start_offset: From the checkpoint; 0 when there is none.
        may_have_gaps: Whether compaction may have left gaps between segments behind the recovery point. Our own logs
            have none there (`SegmentLog` sees to it), so such a gap is a hole that a loss of power left; unless the
            shutdown was clean, or nobody knows the recovery point any more.
        clean_end: From the checkpoint: below it compaction left gaps, also where the recovery point was lost.
        known_end: Given for a log that must not lose a record: the offset below which its owner knows that all was
            flushed.
    """

    is_clean: bool
    recovery_point: int | None
    log_start_offset: int
    may_have_gaps: bool = False
    clean_end: int = 0
    known_end: int | None = None

    @property
    def flushed_end(self) -> int | None:
        """Where a log that must not lose a record ends at the earliest; None for any other log."""
        if self.known_end is None:
            return None
        return max(self.known_end, self.recovery_point or 0, self.log_start_offset)


def begin_directory(files: Files, path: Path, discard: Discard, *, start_offset: int, now_ms: int) -> OpenedLog:
    """Return a new log that is not on the disk yet: nothing was written to it that a crash could lose."""
    directory = LogDirectory(files, path, discard)
    directory.begin(start_offset, now_ms)
    return OpenedLog(directory, EpochCache(), start_offset, start_offset, was_clean=True)


def open_directory(files: Files, path: Path, config: LogConfig, discard: Discard, known: KnownState) -> OpenedLog:
    """Open the log in `path`, which is there.

    Args:
        files: Where.
        path: The log's directory.
        config: The log's settings.
        discard: Takes files to be removed later.
        known: What checkpoints and the owner know of it.

    Raises:
        OSError: The disk fails.
        CorruptionError: More than a torn tail would have to be cut off a log that must not lose a record.
    """
    entries = {entry.name: entry for entry in files.listdir(path)}
    if _settle_leftovers(files, path, entries):
        entries = {entry.name: entry for entry in files.listdir(path)}
    _remove_orphans(files, path, entries)
    directory = LogDirectory(files, path, discard)
    directory.segments.extend(_load_segments(files, path, entries))
    directory.note_sidecars(entries)
    if not directory.segments:
        if known.flushed_end:
            raise CorruptionError(
                f"{path}: no segment is left of a log that was flushed up to offset {known.flushed_end}"
            )
        directory.add_segment(known.log_start_offset, config)
    epochs = _load_epochs(files, path)
    kept_epochs = None if epochs is None else tuple(epochs.entries())
    recovery_point = known.recovery_point or 0
    is_clean = known.is_clean and known.recovery_point is not None and epochs is not None
    epochs = epochs or EpochCache()
    if is_clean and known.flushed_end is None:
        is_clean = _ends_at(directory.segments[-1], entries, recovery_point)
    first_unsafe = len(directory.segments) if is_clean else directory.floor(recovery_point)
    with _letting_go(directory):
        _recover(directory, config, entries, epochs, known, first_unsafe=first_unsafe)
    log_end_offset = directory.segments[-1].find_next_offset()
    # What was cut after a clean shutdown took what stands beside the log with it, as the snapshots of its producers.
    is_clean = is_clean and log_end_offset >= recovery_point
    if log_end_offset < (known.flushed_end or 0):
        raise CorruptionError(
            f"{path}: ends at offset {log_end_offset}, and was flushed up to offset {known.flushed_end}"
        )
    log_start_offset = max(known.log_start_offset, directory.segments[0].base_offset)
    if log_start_offset > log_end_offset and known.is_clean:
        # No crash lost an end, so the checkpoint is another log's: it must not cost this one its records.
        _logger.warning("%s ends at %d, before its start %d: ignored", path, log_end_offset, log_start_offset)
        log_start_offset = directory.segments[0].base_offset
    elif log_start_offset > log_end_offset:
        _logger.warning("%s ends at %d, before its start %d: begun anew", path, log_end_offset, log_start_offset)
        directory.discard_segments(0, len(directory.segments), 0)
        directory.add_segment(log_start_offset, config)
        log_end_offset = log_start_offset
    if not is_clean:
        epochs = _with_missing_epochs(directory, epochs, log_start_offset)
    epochs.fit(log_start_offset, log_end_offset)
    point = log_end_offset if is_clean else min(recovery_point, log_end_offset)
    has_new_epochs = not is_clean and tuple(epochs.entries()) != kept_epochs
    if has_new_epochs:
        # A clean shutdown without another record would leave the old file, and the next start would trust it.
        replace_file(files, path / EPOCH_CHECKPOINT, encode_epochs(epochs.entries()), is_durable=False)
    return OpenedLog(directory, epochs, log_start_offset, point, is_clean, has_new_epochs)


def _remove_orphans(files: Files, path: Path, entries: dict[str, FileStat]) -> None:
    """Remove indexes whose `.log` is gone: what they tell of a deleted segment would be taken for another's."""
    for name in list(entries):
        found = parse_segment_file(name)
        if (
            found is not None
            and not found.mark
            and found.kind in SWAP_ORDER
            and segment_file_name(found.base_offset, LOG) not in entries
        ):
            files.unlink(path / name)
            del entries[name]


def _load_segments(files: Files, path: Path, entries: dict[str, FileStat]) -> list[Segment]:
    segments = []
    for name in sorted(entries):
        parsed = parse_segment_file(name)
        if parsed is None or parsed.kind != LOG or parsed.mark:
            continue
        segment = Segment(files, path, parsed.base_offset)
        segment.size_bytes, segment.modified_ms = entries[name].size_bytes, entries[name].modified_ms
        segments.append(segment)
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    return segments


def _load_epochs(files: Files, path: Path) -> EpochCache | None:
    """Return the epochs, none of them when there is no file, None when the file is broken."""
    try:
        return EpochCache(decode_epochs(read_file(files, path / EPOCH_CHECKPOINT)))
    except FileNotFoundError:
        return EpochCache()
    except CorruptionError as exc:
        _logger.warning("%s: %s: rebuilt from the log", path / EPOCH_CHECKPOINT, exc)
        return None


@contextmanager
def _letting_go(directory: LogDirectory) -> Iterator[None]:
    """Let all files go if the block fails: the same log may be opened again at once."""
    try:
        yield
    except BaseException:
        for segment in directory.segments:
            segment.forget()
        raise


def _recover(
    directory: LogDirectory,
    config: LogConfig,
    entries: dict[str, FileStat],
    epochs: EpochCache,
    known: KnownState,
    *,
    first_unsafe: int,
) -> None:
    segments = directory.segments
    is_clean = first_unsafe == len(segments)
    for number, segment in enumerate(segments):
        if number < first_unsafe and _has_sound_indexes(segment, entries, is_clean=is_clean):
            continue
        expected = segment.next_offset
        if known.flushed_end is not None:
            refuse_loss(segments[number:], known.flushed_end)
        dropped = segment.recover(config.index_interval_bytes, config.segment_index_bytes, epochs)
        if dropped:
            _logger.warning("%s: cut %d bytes that are no sound batches", segment.path, dropped)
        if segment is segments[-1]:
            return
        has_gap = 0 < expected - segment.next_offset < FAR
        is_hole = has_gap and not known.may_have_gaps and expected > known.clean_end
        if dropped or (is_hole and number >= first_unsafe):
            _logger.warning("%s: ends at %d: what came after it is dropped", segment.path, segment.next_offset)
            directory.discard_segments(number + 1, len(segments), config.file_delete_delay_ms)
            return
        segment.next_offset = expected
        segment.forget()


def _with_missing_epochs(directory: LogDirectory, epochs: EpochCache, log_start_offset: int) -> EpochCache:
    """Return the epochs with those of the batches before the first known one.

    The file forgets epochs when the log start moves, which only the next checkpoint keeps: after a crash between the
    two, records are back whose epochs are not.
    """
    known = epochs.entries()
    complete = EpochCache()
    for segment in directory.segments[directory.floor(log_start_offset) :]:
        for _, header in segment.headers(segment.position_of(log_start_offset)):
            if known and header.base_offset >= known[0][1]:
                return EpochCache([*complete.entries(), *known])
            complete.assign(header.partition_leader_epoch, max(header.base_offset, log_start_offset))
    return EpochCache([*complete.entries(), *known])


def _ends_at(last: Segment, entries: dict[str, FileStat], recovery_point: int) -> bool:
    """Say whether the log ends where a clean shutdown wrote down that it does.

    The checkpoint may be older, or another log's, as where files were copied: what it says of this one is not to be
    trusted then.
    """
    if not last.size_bytes:
        last.next_offset = last.base_offset
    elif not _has_sound_indexes(last, entries, is_clean=True):
        return False
    try:
        end = last.find_next_offset()
    except CorruptionError as exc:
        _logger.warning("%s: it is checked", exc)
        return False
    finally:
        last.forget()
    if end != recovery_point:
        _logger.warning(
            "%s ends at %d, its checkpoint of a clean shutdown says %d: it is checked", last.path, end, recovery_point
        )
    return end == recovery_point


def _has_sound_indexes(segment: Segment, entries: dict[str, FileStat], *, is_clean: bool) -> bool:
    """Say whether both index files are there, of whole entries, and, after a crash, end with possible ones."""
    for kind, entry in ((OFFSET_INDEX, INDEX_ENTRY), (TIME_INDEX, TIME_INDEX_ENTRY)):
        found = entries.get(segment_file_name(segment.base_offset, kind))
        if found is None:
            return False
        if found.size_bytes % entry.size:
            _logger.warning("%s has %d bytes, not whole entries: rebuilt", found.name, found.size_bytes)
            return False
    if is_clean:
        return True
    try:
        segment.check_indexes()
    except CorruptionError as exc:
        _logger.warning("%s: rebuilt", exc)
        return False
    finally:
        segment.forget()
    return True


def _settle_leftovers(files: Files, path: Path, entries: dict[str, FileStat]) -> bool:
    """Remove and rename what a crash left; say whether there was anything."""
    marked: dict[str, list[SegmentFile]] = {DELETED: [], CLEANED: [], SWAP: []}
    changed = False
    for name in entries:
        parsed = parse_segment_file(name)
        if parsed is not None and parsed.mark:
            marked[parsed.mark].append(parsed)
        elif name.endswith(".tmp"):
            files.unlink(path / name)
            changed = True
    lowest_cleaned = min((f.base_offset for f in marked[CLEANED]), default=None)
    ready: list[SegmentFile] = []
    unready: list[SegmentFile] = []
    for found in marked[SWAP]:
        is_unready = lowest_cleaned is not None and found.base_offset >= lowest_cleaned
        (unready if is_unready else ready).append(found)
    # A `.cleaned` goes last: without one, what is left under `.swap` would be taken for ready after the next crash.
    for found in (*marked[DELETED], *unready, *marked[CLEANED]):
        files.unlink(path / segment_file_name(*found))
        changed = True
    if ready:
        _finish_swap(files, path, entries, ready)
        changed = True
    if changed:
        files.fsync_directory(path)
    return changed


def _finish_swap(files: Files, path: Path, entries: dict[str, FileStat], ready: list[SegmentFile]) -> None:
    # A `.log` takes its name last: where one is left, its old segments may still be there.
    logs = [found.base_offset for found in ready if found.kind == LOG]
    if logs:
        start, end = min(logs), max(logs) + 1
        for base_offset in logs:
            segment = Segment(files, path, base_offset, SWAP)
            segment.size_bytes = entries[segment.path.name].size_bytes
            end = max(end, max((h.next_offset for _, h in segment.headers(0)), default=0))
            segment.forget()
        fresh = {(found.base_offset, found.kind) for found in ready}
        for name in entries:
            found = parse_segment_file(name)
            if (
                found is not None
                and not found.mark
                and found.kind in SWAP_ORDER
                and start <= found.base_offset < end
                and _is_old(found, logs, fresh)
            ):
                files.unlink(path / name)
    for found in sorted(ready, key=lambda f: (f.base_offset, _PLACES.get(f.kind, 0))):
        files.rename(path / segment_file_name(*found), path / segment_file_name(found.base_offset, found.kind))


def _is_old(found: SegmentFile, logs: list[int], fresh: set[tuple[int, str]]) -> bool:
    """Say whether a file in a new segment's range belongs to a segment that is replaced.

    The first file of a new segment takes its name when all old ones are gone. As long as it has not, every file is an
    old one: also a transaction index, of which the new segment need not have one.
    """
    if found.base_offset not in logs:
        return True
    return (found.base_offset, SWAP_ORDER[0]) in fresh or (found.base_offset, found.kind) in fresh
