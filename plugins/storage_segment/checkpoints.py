"""Shell: what the checkpoints of the log directories hold, of the logs that changed; the others' lines stay.

A directory in which nothing changed is not written. One that was written is written once more: the names that the
first time gave last from the second time on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import StorageError, do_now

from .engine_work import CheckpointWork

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from odradek.kernel.api import TopicIdPartition, TopicPartition

    from .log import SegmentLog
    from .log_dir import LogDir
    from .log_dirs import LogDirs


class Checkpoints:
    """Those of one engine, on whose task they are begun.

    Args:
        dirs: Where they are.
        logs: Those that are open; the engine's.
        homes: Where each lies; the engine's.
        unmade: Those that are not on the disk, of which there is nothing to be known; the engine's.
    """

    def __init__(
        self,
        dirs: LogDirs,
        logs: Mapping[TopicPartition, SegmentLog],
        homes: Mapping[TopicPartition, LogDir],
        unmade: Container[TopicPartition],
    ) -> None:
        self._dirs = dirs
        self._logs = logs
        self._homes = homes
        self._unmade = unmade
        self._changed: dict[TopicPartition, None] = {}

    def note(self, key: TopicPartition) -> None:
        """Take note that offsets of a log changed."""
        self._changed[key] = None

    def begin(self, high_watermarks: Mapping[TopicIdPartition, int]) -> CheckpointWork | None:
        """Begin to write the directories in which something changed; None where that is none."""
        behind = self._behind(high_watermarks)
        return self._work(behind) if behind else None

    def write(self, high_watermarks: Mapping[TopicIdPartition, int]) -> set[str]:
        """Write all, durably; return the names of the directories that have no room for them.

        Those of a directory in which nothing changed stay as they are, whoever wrote them.
        """
        work = self._work(self._behind(high_watermarks))
        do_now(work)
        for log_dir in self._dirs:
            if not log_dir.error:
                self._dirs.guard(log_dir, log_dir.sync, "write the checkpoints of")
        return work.unwritten

    def keep_found(self, key: TopicPartition, log: SegmentLog, *, is_needed: bool) -> bool:
        """Flush a log that may have gaps behind the recovery point it had, and keep the new one before it is needed.

        Return whether it is kept; a log that is not given up has it in the next checkpoint, as any.

        Raises:
            StorageError: The log cannot be flushed, its directory fails, or `is_needed` and there is no room for the
                checkpoint. All files of the log are let go of.
        """
        try:
            return self._keep_found(key, log, is_needed=is_needed)
        except StorageError:
            log.release()
            raise

    def _keep_found(self, key: TopicPartition, log: SegmentLog, *, is_needed: bool) -> bool:
        log.flush()
        home = self._homes[key]
        if key in home.unknown:
            home.unknown.discard(key)  # the last of them has all written; until then a crash leaves the checkpoint lost
            return True
        home.note_offsets(key, log.recovery_point, log.log_start_offset, log.clean_end)
        work = self._work([home])
        do_now(work)
        if not home.error:
            self._dirs.guard(home, home.sync, "write the checkpoints of")
        if home.error:
            raise StorageError(home.error)
        if is_needed and work.unwritten:
            raise StorageError(
                f"{home.path / str(key)} is not taken over: without its recovery point a crash would cost it what "
                "compaction left; make room for the checkpoints there, and try again"
            )
        return not work.unwritten

    def _work(self, log_dirs: list[LogDir]) -> CheckpointWork:
        copies = [(log_dir, log_dir.copy_checkpoints()) for log_dir in log_dirs]
        return CheckpointWork(copies, self._dirs.set_offline)

    def _behind(self, high_watermarks: Mapping[TopicIdPartition, int]) -> list[LogDir]:
        """Return the directories whose checkpoints are not what they would be now."""
        self._bring_in(high_watermarks)
        return [log_dir for log_dir in self._dirs if not log_dir.is_kept and not log_dir.error]

    def _bring_in(self, high_watermarks: Mapping[TopicIdPartition, int]) -> None:
        changed, self._changed = self._changed, {}
        for key in changed:
            log = self._logs.get(key)
            if log is not None and key not in self._unmade:
                self._homes[key].note_offsets(key, log.recovery_point, log.log_start_offset, log.clean_end)
        for partition, offset in high_watermarks.items():
            key = partition.topic_partition
            home, log = self._homes.get(key), self._logs.get(key)
            is_of_another = log is not None and log.partition != partition  # created since it was asked for
            if home is not None and key not in self._unmade and not is_of_another:
                home.note_high_watermark(key, offset)
