"""Shell: the driver's side of reads past the brokers: which ranges lie in files and objects, which are the brokers'.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from odradek.kernel.machine.files import OsFiles
from odradek.kernel.types import TopicIdPartition
from odradek.plugins.storage_tiered.stores import store_threads

from .local import CannotReadError, find_log, read_local
from .pieces import BrokerPiece, DirectReadError
from .planning import plan_range
from .tier import TierReader, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from odradek.kernel.contracts.remote_store import ObjectStore
    from odradek.kernel.machine.files import Files
    from odradek.kernel.types import TopicPartition

    from ..ranges import OffsetRange
    from .pieces import Piece
    from .planning import LocalView, PartitionFacts, TierView
    from .settings import DirectSettings
    from .tier import SmallThreads

_log: Final = logging.getLogger(__name__)


class Sources:
    """Plans ranges of a query. Lives as long as the query, on its driver; one owner.

    It warns of each thing that makes it ask brokers instead, once.
    """

    def __init__(
        self,
        settings: DirectSettings,
        *,
        files: Files | None = None,
        open_store: Callable[[DirectSettings], ObjectStore] = store_of,
        warn: Callable[[str], None] = _log.warning,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251 # the edge: cores are given it
        threads: Callable[[], AbstractContextManager[SmallThreads]] = store_threads,
    ) -> None:
        """Look at nothing yet.

        Args:
            settings: Where to read.
            files: The file system; None for the machine's.
            open_store: Opens the store that settings name.
            warn: Told why brokers are asked instead.
            monotonic: Seconds, rising.
            threads: Gives threads for many small requests at once.
        """
        self._threads = threads
        self._settings = settings
        self._files = files or OsFiles()
        self._open_store = open_store
        self._warn = warn
        self._monotonic = monotonic
        self._tier: TierReader | None = None
        self._is_tier_refused = False
        self._warned: set[str] = set()

    def plan_pieces(
        self,
        wanted: Sequence[OffsetRange],
        facts: Mapping[TopicPartition, PartitionFacts],
        *,
        is_read_committed: bool,
        max_bytes: int = 0,
    ) -> list[list[Piece]]:
        """Return the pieces of each range, in the ranges' order.

        Args:
            wanted: The ranges; those of one partition are planned by one look at it.
            facts: What brokers say of the ranges' partitions, asked before this is called. Of one that is missing,
                everything is left to brokers.
            is_read_committed: Whether records of aborted transactions are left out.
            max_bytes: Segments with more are cut, at boundaries of batches; 0 for no bound.

        Raises:
            DirectReadError: `readFrom=segments`, and an offset is in no file and no object.
        """
        by_partition: dict[TopicPartition, list[OffsetRange]] = {}
        for one in wanted:
            by_partition.setdefault(one.topic_partition, []).append(one)
        views = {
            partition: self._look(partition, ranges, facts[partition], is_read_committed, max_bytes)
            for partition, ranges in by_partition.items()
            if partition in facts
        }
        planned = []
        for one in wanted:
            if one.topic_partition not in views:
                planned.append(self._checked([BrokerPiece(one)], ["nothing is known of it"]))
                continue
            local, tier, reasons = views[one.topic_partition]
            its_facts = facts[one.topic_partition]
            pieces = plan_range(one, its_facts, self._settings, local=local, tier=tier, max_bytes=max_bytes)
            if one.end > its_facts.last_stable_offset:
                reasons = [
                    *reasons,
                    f"what lies at or above the last stable offset {its_facts.last_stable_offset} belongs to "
                    "transactions that are open, or is younger",
                ]
            planned.append(self._checked(pieces, reasons))
        return planned

    def _checked(self, pieces: list[Piece], reasons: Sequence[str]) -> list[Piece]:
        missing = [piece.range for piece in pieces if isinstance(piece, BrokerPiece) and piece.range.size]
        if missing and self._settings.is_required:
            why = "; ".join(reasons) or "no segment file and no object has them"
            raise DirectReadError(
                f"readFrom=segments, and {missing[0]} cannot be read so: {why}. With readFrom=auto brokers are asked "
                "for it"
            )
        return pieces

    def _look(
        self,
        partition: TopicPartition,
        ranges: Sequence[OffsetRange],
        facts: PartitionFacts,
        is_read_committed: bool,
        max_bytes: int,
    ) -> tuple[LocalView | None, TierView | None, list[str]]:
        """Look at the disk, then at the store: a segment is sent before it leaves the disk."""
        ranges = [one for one in ranges if one.size]
        reasons: list[str] = []
        local = tier = None
        if ranges and self._settings.data_dirs:
            try:
                directory = find_log(
                    self._files, self._settings.data_dirs, f"{partition.topic}-{partition.partition}", facts
                )
                local = read_local(
                    self._files, directory, ranges, facts, wants_aborted=is_read_committed, max_bytes=max_bytes
                )
            except CannotReadError as exc:
                reasons.append(f"dataDir: {exc}")
                self._tell(f"{partition}: brokers are asked for what local segments may have: {exc}", "dataDir")
        if ranges and self._settings.store_url and not self._is_tier_refused:
            try:
                if self._tier is None:
                    self._tier = TierReader(
                        self._open_store(self._settings), monotonic=self._monotonic, threads=self._threads
                    )
                of_topic = TopicIdPartition(facts.topic_id, partition.topic, partition.partition)
                tier = self._tier.read(of_topic, ranges, facts, wants_aborted=is_read_committed, max_bytes=max_bytes)
            except CannotReadError as exc:
                reasons.append(f"tieredStore: {exc}")
                self._tell(f"{partition}: brokers are asked for what the tiered store may have: {exc}", "tieredStore")
        return local, tier, reasons

    def _tell(self, message: str, kind: str) -> None:
        if self._settings.is_required or kind in self._warned:
            return
        self._warned.add(kind)
        self._warn(message)
