"""Shell: what is known of logs before they are opened, and logs that are recovered on a worker thread before that.

::

    Openings.begin       the owner's task    what is known of the log is copied
    OpeningWork.run      a thread            the directory is recovered, as `open_log` would do it
    OpeningWork.finish   the owner's task    what was found waits
    Openings.take        the owner's task    `open_log` goes on from there

The log may be deleted meanwhile, and its topic made again: then what was found is let go, and until the thread is gone
no other log is made in its place.

What a crash left of a log is checked when it is opened. A run may end before: a broker is stopped as it starts, or the
log cannot be opened. Then its directory is not marked clean, and its recovery point stays: the next start checks the
log from there on. *Source:* LogManager.shutdown of Kafka 4.3: it marks a directory only if all its logs were loaded.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import attrs

from odradek.kernel.api import NO_ROOM, StorageError, define, disk_error

from .log_dir import OPENING_BYTES
from .recovery import KnownState, begin_directory, open_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from odradek.kernel.api import DiskError, Files, LogConfig, TopicPartition

    from .directory import Discard
    from .log import SegmentLog
    from .log_dir import LogDir
    from .recovery import OpenedLog


_logger: Final = logging.getLogger(__name__)


def open_in_reserve(
    files: Files, home: LogDir, path: Path, config: LogConfig, discard: Discard, known: KnownState, *, left_bytes: int
) -> OpenedLog:
    """Open a log's directory; where there is no room for that, in the reserve, down to `left_bytes` of it.

    Raises:
        OSError: See `open_directory`.
    """
    while True:
        try:
            return open_directory(files, path, config, discard, known)
        except OSError as exc:
            if exc.errno not in NO_ROOM or not home.spend_reserve(left_bytes):
                raise
            known = attrs.evolve(known, is_clean=False)  # an index may be half built


@define(eq=False)
class OpeningWork:
    """The recovery of a log that is about to be opened, which may read much of it.

    Attributes:
        key: Whose.
        home: Where it is.
        previous: The log that was open before, offline by now.
        opened: What was found, once it has run.
        is_running: Whether a thread is at the log's files.
        is_given_up: Whether nobody wants it any more.
    """

    key: TopicPartition
    home: LogDir
    previous: SegmentLog | None
    _owner: Openings
    _config: LogConfig
    _known: KnownState
    opened: OpenedLog | None = attrs.field(default=None, init=False)
    is_running: bool = attrs.field(default=False, init=False)
    is_given_up: bool = attrs.field(default=False, init=False)
    _discarded: list[tuple[Path, int]] | None = attrs.field(factory=list, init=False)

    @property
    def path(self) -> Path:
        """The log's directory."""
        return self.home.path / str(self.key)

    def run(self) -> None:
        """See `DiskWork.run`."""
        self.is_running = True  # in this order: whoever gives it up looks whether it runs
        try:
            if not self.is_given_up:
                self.opened = open_directory(self._owner.files, self.path, self._config, self._discard, self._known)
        finally:
            self.is_running = False

    def _discard(self, path: Path, delay_ms: int) -> None:
        """Take a file to be removed later: while it runs on a thread, and whenever the opened log has one."""
        if self._discarded is None:
            self._owner.discard(path, delay_ms)
        else:
            self._discarded.append((path, delay_ms))

    def let_go(self) -> None:
        """Close the files of what was found."""
        if self.opened is not None:
            for segment in self.opened.directory.segments:
                segment.forget()

    def finish(self, error: Exception | None) -> None:
        """See `DiskWork.finish`."""
        discarded, self._discarded = self._discarded or [], None
        for path, delay_ms in discarded:
            self._owner.discard(path, delay_ms)
        self._owner.end(self, error)


class Openings:
    """The logs of one engine on their way to be open. Owned by the engine.

    Attributes:
        unchecked: Those of which nobody knows that they are as a clean end left them: all of a directory that a crash
            left, and those whose opening was begun, until it ends well.
        gapped: Those that may have gaps of compaction behind their recovery points, until a checkpoint holds better
            ones: of another broker; of a checkpoint that was lost. After a clean end all gaps are of compaction.
        adopted: Those of another broker, until they are open: a start that finds no recovery point of theirs would take
            their gaps for holes, so that they are open only once a checkpoint holds it.
    """

    def __init__(self, files: Files, discard: Discard, on_failure: Callable[[LogDir, DiskError], None]) -> None:
        """Make it, with nothing under way.

        Args:
            files: Where.
            discard: Takes files to be removed later.
            on_failure: Told when a directory failed; takes it out of use if its device does.
        """
        self.files = files
        self.discard = discard
        self.unchecked: set[TopicPartition] = set()
        self.gapped: set[TopicPartition] = set()
        self.adopted: set[TopicPartition] = set()
        self._on_failure = on_failure
        self._works: dict[TopicPartition, OpeningWork] = {}
        self._given_up: set[OpeningWork] = set()

    def find(self, log_dirs: Iterable[LogDir]) -> None:
        """Take note of the logs that the start found in directories which a crash left."""
        for log_dir in log_dirs:
            if not log_dir.is_clean:
                self.unchecked.update(log_dir.topic_ids)

    def known_state(self, home: LogDir, key: TopicPartition, previous: SegmentLog | None) -> KnownState:
        """Return what is known of a log that is on the disk and is opened now; of one that was open, what that knew."""
        if previous is not None:
            home.recovery_points[key] = previous.recovery_point
            home.log_start_offsets[key] = previous.log_start_offset
        is_clean = key not in self.unchecked and (previous is None or previous.is_closed)
        self.unchecked.add(key)
        if is_clean or key in home.unknown or key in self.adopted:
            self.gapped.add(key)
        return KnownState(
            is_clean=is_clean,
            recovery_point=home.recovery_points.get(key),
            log_start_offset=home.log_start_offsets.get(key, 0),
            may_have_gaps=key in self.gapped,
            clean_end=home.clean_ends.get(key, 0),
        )

    def has_better_end(self, key: TopicPartition, log: SegmentLog) -> bool:
        """Say whether what was found of a log's end is to be kept before it is open."""
        return key in self.gapped and not log.was_clean

    def note_opened(self, key: TopicPartition, *, is_kept: bool) -> None:
        """Take note that a log is open, and whether what is known of its end is kept."""
        self.unchecked.discard(key)
        self.adopted.discard(key)
        if is_kept:
            self.gapped.discard(key)

    def forget_log(self, key: TopicPartition) -> None:
        """Know nothing of a log any more."""
        self.unchecked.discard(key)
        self.gapped.discard(key)
        self.adopted.discard(key)

    def unchecked_dirs(self, homes: Mapping[TopicPartition, LogDir]) -> set[str]:
        """Return the names of the directories that must not be marked clean, and tell why: of logs, by their homes."""
        logs: dict[str, list[TopicPartition]] = {}
        for key in sorted(self.unchecked & homes.keys()):
            logs.setdefault(homes[key].name, []).append(key)
        for name, keys in logs.items():
            _logger.info(
                "%s is not marked as cleanly shut down: %d of its logs, such as %s, are still to be checked",
                name,
                len(keys),
                keys[0],
            )
        return set(logs)

    def begin(
        self, key: TopicPartition, home: LogDir, previous: SegmentLog | None, config: LogConfig, known: KnownState
    ) -> OpeningWork:
        """Begin to recover a log that is on the disk; one that was begun before is let go."""
        self.forget(key)
        work = self._works[key] = OpeningWork(key, home, previous, self, config, known)
        return work

    def end(self, work: OpeningWork, error: Exception | None) -> None:
        """See `DiskWork.finish`: keep what was found for `open_log`, unless nobody wants it any more.

        Raises:
            StorageError: The log cannot be opened. Where there is no room for it `open_log` tries in the reserve.
        """
        if work.is_given_up:
            self._given_up.discard(work)
            work.let_go()
            return
        if error is None:
            return
        del self._works[work.key]
        if not isinstance(error, OSError):
            raise error
        if error.errno in NO_ROOM and work.home.spend_reserve(OPENING_BYTES):
            return
        failure = disk_error(error, "open", work.path)
        self._on_failure(work.home, failure)
        raise failure from error

    def take(self, key: TopicPartition, home: LogDir, previous: SegmentLog | None) -> OpenedLog | None:
        """Return what was found of a log that is opened now, if it was looked for and still holds."""
        work = self._works.get(key)
        if work is None:
            return None
        if work.opened is None or work.home is not home or work.previous is not previous:
            self.forget(key)
            return None
        del self._works[key]
        return work.opened

    def forget(self, key: TopicPartition) -> None:
        """Let go of what was found of a log, or will be."""
        work = self._works.pop(key, None)
        if work is not None:
            work.is_given_up = True
            self._given_up.add(work)
            if work.opened is not None and not work.is_running:
                self._given_up.discard(work)
                work.let_go()

    def forget_all(self) -> None:
        """Let go of everything: the engine ends."""
        for key in list(self._works):
            self.forget(key)

    def begin_new(self, key: TopicPartition, home: LogDir, now_ms: int) -> OpenedLog:
        """Return a new log, which is not on the disk yet.

        Raises:
            StorageError: A thread still is at the files of one that was there before.
        """
        path = home.path / str(key)
        if any(work.is_running and work.path == path for work in self._given_up):
            raise StorageError(f"{path} is still being looked through for a log that is gone: it is free soon")
        start_offset = home.log_start_offsets.get(key, 0)  # of one whose directory was lost: see `LogDir.load`
        return begin_directory(self.files, path, self.discard, start_offset=start_offset, now_ms=now_ms)
