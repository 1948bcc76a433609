"""Shell: what is known of the part of a log that the store has, and what visits change of it.

```text
                 manifest: what the store has
    ┌───────────────┬───────────────┬──────────────┐
    │     cold      │             both             │  only local
    └───────────────┴──────────────┴───────────────┴───────────────────┘
    log_start_offset     where the local log begins         log_end_offset
```

Who leads sends segments that end where its own end; so do followers' segments, mostly. Where not, the local log begins
inside a segment of the store, which is read up to there.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from odradek.kernel.api import NO_LIMIT, RemoteStoreError, StorageError

from .cold_reads import ColdPlace
from .forks import LogWay
from .local_state import COLD_TRANSACTIONS_KIND, TIER_KIND, LocalState, decode_state, encode_state
from .manifest_line import ManifestLine
from .names import SNAPSHOT, TRANSACTION_INDEX
from .planning import TieredState, confirmed_copies, may_be_rewritten
from .wrapped_log import WrappedLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.kernel.api import DiskWork, PartitionLog, TierSettings
    from odradek.storage_base import EpochCache

    from .manifest import Manifest, StoredSegment
    from .planning import LocalCopy


class LogWithTier(WrappedLog):
    """A log, and what is known of its part in the store. Owned by the reactor's task.

    `lag_bytes` and `lag_segments` tell what the last visit found that is not in the store yet.

    Invariants: cold is what lies below the local log's start, and `log_start_offset` is at most that; together they are
    the whole log.
    """

    def __init__(self, inner: PartitionLog, settings: TierSettings, *, is_new: bool) -> None:
        """Wrap a log.

        Args:
            inner: The local log.
            settings: The topic's.
            is_new: Whether its topic begins to be tiered, perhaps again: what is kept from before says nothing then,
                and what the store still has below the local log is no part of it.

        Raises:
            StorageError: What is kept of the cold part is damaged, or of a later version.
        """
        super().__init__(inner)
        self.settings = settings
        if is_new:
            self.drop_state()
        state = self._load_state()
        self._may_adopt = state is None and not is_new
        self.manifest: Manifest | None = state.manifest if state is not None else None
        self.line = ManifestLine(self.manifest)
        self.copies: dict[int, LocalCopy] = dict(state.copies) if state is not None else {}
        self.state_version, self._saved_version = int(is_new), 0
        self.lag_bytes = self.lag_segments = 0
        self._held_end = NO_LIMIT
        self._read: tuple[int, int] | None = None  # where the log and its local part began when a pass did
        self._cold: tuple[StoredSegment, ...] = ()
        self._log_start_offset = inner.log_start_offset
        self._settle()
        if state is not None:
            self._open_with(state)

    def _load_state(self) -> LocalState | None:
        if 0 not in self.inner.sidecars(TIER_KIND):
            return None
        try:
            return decode_state(self.inner.read_sidecar(0, TIER_KIND), f"{self.partition}: what is kept of its tiers")
        except RemoteStoreError as error:
            raise StorageError(str(error)) from error

    def drop_state(self) -> None:
        """Remove what is kept beside the local log about the rest.

        Raises:
            StorageError: The log is offline.
        """
        self.inner.delete_sidecar(0, TIER_KIND)
        for base_offset in self.inner.sidecars(COLD_TRANSACTIONS_KIND):
            self.inner.delete_sidecar(base_offset, COLD_TRANSACTIONS_KIND)

    def _open_with(self, state: LocalState) -> None:
        inner = self.inner
        if state.log_start_offset > inner.log_start_offset:
            inner.advance_log_start(min(state.log_start_offset, inner.log_end_offset))
        self._log_start_offset = min(state.log_start_offset, inner.log_start_offset)
        self._settle()
        if not self._cold:
            self._log_start_offset = inner.log_start_offset

    def _settle(self) -> None:
        """Find the cold segments anew: manifest, log start or local start have changed."""
        start, border = self._log_start_offset, self.inner.log_start_offset
        segments = self.manifest.segments_from(start) if self.manifest is not None and start < border else ()
        self._cold = tuple(segment for segment in segments if segment.base_offset < border)
        self._cold_ends = [min(segment.next_offset, border) for segment in self._cold]
        self._epochs: EpochCache | None = None

    @property
    def log_start_offset(self) -> int:
        """See `PartitionLog.log_start_offset`."""
        return self._log_start_offset

    @property
    def tiered_end_offset(self) -> int:
        """See `TieredLog.tiered_end_offset`."""
        return self.manifest.end_offset if self.manifest is not None else 0

    @property
    def stored_end(self) -> int:
        """Up to where the store has all that the local log begins with; where that begins, if it has not its first."""
        border = self.inner.log_start_offset
        return border if self.manifest is None else self.manifest.unbroken_end(border)

    @property
    def cold_segments(self) -> Sequence[StoredSegment]:
        """Segments that are in the store and not here any more, oldest first; the last one perhaps in part."""
        return self._cold

    def way(self, newest: Manifest) -> LogWay:
        """Return what tells this log from others, as it is once it has taken this manifest."""
        return LogWay(self.epoch_entries(), self._start_after(newest), self.inner.log_start_offset, self.log_end_offset)

    def _has_missed_off(self, newest: Manifest) -> bool:
        """Say whether the tier was switched off, and on again, since the manifest that is known was put."""
        return self.manifest is not None and self.manifest.version < newest.emptied_version

    def _start_after(self, newest: Manifest) -> int:
        """Return where the log begins once it has taken a manifest, whose own start may be later.

        Who missed that the tier was switched off did not make the log begin where its local part does, and what was
        below is gone, unless it was sent anew.
        """
        start, border = self._log_start_offset, self.inner.log_start_offset
        if not self._has_missed_off(newest):
            return start
        start = max(start, newest.log_start_offset)
        return start if newest.unbroken_end(start) >= border else border

    def _place(self, offset: int) -> ColdPlace | None:
        """Return where in the cold part the first batch at or behind an offset is to be looked for; None when local."""
        number = bisect_right(self._cold_ends, offset)
        if number == len(self._cold):
            return None
        segment = self._cold[number]
        return ColdPlace(self.partition, segment, max(offset, segment.base_offset))

    def advance_log_start(self, offset: int) -> None:
        """See `PartitionLog.advance_log_start`."""
        if offset <= self._log_start_offset:
            return
        if offset > self.inner.log_start_offset:
            self.inner.advance_log_start(offset)
        self._move_start(offset)

    def _move_start(self, offset: int) -> None:
        self._log_start_offset = offset
        self.state_version += 1
        self._settle()

    def hold_uploads(self, end_offset: int | None) -> None:
        """See `TieredLog.hold_uploads`."""
        self._held_end = NO_LIMIT if end_offset is None else end_offset

    def hold_segments(self, *, are_read: bool) -> None:
        """See `TieredLog.hold_segments`."""
        self._read = (self._log_start_offset, self.inner.log_start_offset) if are_read else None

    @property
    def expired_end(self) -> int:
        """Below it nothing is needed in the store: the log's start, or where it was when a pass of compaction began."""
        return self._log_start_offset if self._read is None else min(self._log_start_offset, self._read[0])

    @property
    def rewritten_border(self) -> int:
        """What compaction rewrites below it is cold: where the local log begins, or did when the pass began."""
        return self.inner.log_start_offset if self._read is None else self._read[1]

    def planning_state(self, last_stable_offset: int, now_ms: int) -> TieredState:
        """Return what is planned by.

        Raises:
            StorageError: The log is offline.
        """
        inner = self.inner
        known_end = inner.rewritable_end if self._read is None else 0
        return TieredState(
            local=inner.segments(),
            copies=self.copies,
            log_start_offset=self._log_start_offset,
            uploadable_end=min(last_stable_offset, inner.recovery_point, self._held_end - 1),
            removable_end=max((at for at in inner.sidecars(SNAPSHOT) if at <= known_end), default=0),
            settings=self.settings,
            now_ms=now_ms,
            manifest=self.manifest,
            stored_end=0 if may_be_rewritten(self.settings) else self.stored_end,
            local_start_offset=inner.log_start_offset,
        )

    def take_beginning(self, manifest: Manifest) -> None:
        """Take the manifest of which the local log is now the end, which holds nothing yet."""
        self.line.take(manifest)
        self.manifest, self.copies = manifest, {}
        self._move_start(min(max(manifest.log_start_offset, self._log_start_offset), self.inner.log_start_offset))

    def take_manifest(self, manifest: Manifest, copies: dict[int, LocalCopy] | None = None) -> None:
        """Take the newest manifest, which was put or found; `copies` are noted with it where segments were sent."""
        if self._has_missed_off(manifest):
            self._log_start_offset, self.copies = min(self._start_after(manifest), self.inner.log_start_offset), {}
        if self.manifest is None and copies is None:
            self._adopt_start(manifest)
        if self.manifest is None or manifest.version >= self.manifest.version:
            self.manifest = manifest  # compaction may have put a later one meanwhile
        manifest = self.manifest
        self.copies = confirmed_copies(
            self.inner.segments(), self.copies if copies is None else {**self.copies, **copies}, manifest
        )
        if manifest.log_start_offset > self._log_start_offset:
            self.advance_log_start(min(manifest.log_start_offset, self.log_end_offset))
        self.state_version += 1
        self._settle()

    def _adopt_start(self, manifest: Manifest) -> None:
        """Begin where a manifest does that is new to this log: its folder was lost, what is far was not deleted."""
        border = self.inner.log_start_offset if self._may_adopt else -1
        ends = [segment.next_offset for segment in manifest.segments if segment.next_offset <= border]
        if ends and ends[-1] == border == self._log_start_offset:
            self._log_start_offset = min(border, manifest.log_start_offset)

    @property
    def is_state_saved(self) -> bool:
        """Whether what is known of the cold part stands beside the local log."""
        return self._saved_version == self.state_version

    def begin_saving(self) -> DiskWork:
        """Begin to write what is known beside the local log; its folder is to be synced after that."""
        return self.inner.begin_sidecar(0, TIER_KIND, self._encoded_state())

    def note_saved(self, version: int) -> None:
        """Take note that what was known in this version is durable."""
        self._saved_version = max(self._saved_version, version)

    def _encoded_state(self) -> bytes:
        return encode_state(LocalState(self.manifest, self._log_start_offset, self.copies))

    def remove_local(self, below: int) -> int:
        """Remove local segments that are in the store, whose state was made durable; return how many.

        What transactions need of them is kept already, as `COLD_TRANSACTIONS_KIND`.

        Raises:
            StorageError: The log is offline.
        """
        # A segment that was to leave earlier, and was rewritten first, may have no transactions any more.
        outdated = {segment.base_offset for segment in self.inner.segments() if segment.base_offset < below}
        outdated.difference_update(self.inner.sidecars(TRANSACTION_INDEX))
        kept = list(self.inner.sidecars(COLD_TRANSACTIONS_KIND))
        # What one speaks of ends before the next; of the last one that is known only where nothing is cold any more.
        ends = [*kept[1:], self.inner.log_start_offset]
        for base_offset, end in zip(kept, ends, strict=False):
            is_gone = max(base_offset + 1, end) <= self._log_start_offset
            if is_gone or base_offset in outdated:
                self.inner.delete_sidecar(base_offset, COLD_TRANSACTIONS_KIND)
        count = self.inner.delete_segments_below(below)
        if below > self.inner.log_start_offset:  # it is to begin inside a segment: see `planning.plan_removal`
            self.inner.advance_log_start(below)
        self.copies = {base: copy for base, copy in self.copies.items() if base >= self.inner.log_start_offset}
        self._settle()
        return count

    def reconfigure_tier(self, settings: TierSettings) -> None:
        """See `TieredLog.reconfigure_tier`."""
        self.settings = settings
