"""Shell: has a follower's log go on from the store: what its leader has only there is not copied from broker to broker.

```text
run              newest manifest ─> the first segment that ends at or behind the leader's local start
                 its producers' snapshot, the transaction indexes of all up to it          on a worker thread
begin_keeping    manifest, indexes and snapshot beside the log                             durable, one by one
apply            the local log is given up, and begins empty where that segment ends
```

Broken off before `apply`, the log is what it was. What a crash in between leaves beside it speaks of committed offsets
that the log does not have yet, and is not trusted by the next start, or no other than what it would write there.

*Source:* KIP-405; TierStateMachine.buildRemoteLogAuxState of Kafka 4.3.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import NO_EPOCH, RemoteStoreError, RestoredSidecar

from .local_state import COLD_TRANSACTIONS_KIND, DERIVED_KINDS, TIER_KIND, LocalState, encode_state
from .manifests import load_newest
from .names import SNAPSHOT, TRANSACTION_INDEX
from .small_files import get_small_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.kernel.api import DiskWork, ObjectStore

    from .log import TieredPartitionLog
    from .manifest import Manifest, StoredSegment


class NotInStoreError(RemoteStoreError):
    """The store does not have what the leader says that it has there: not yet, or it is another store."""


def small_files_of(
    segments: Sequence[StoredSegment], get: Callable[[StoredSegment, str], bytes]
) -> Iterator[RestoredSidecar]:
    """Iterate over what stands beside an empty log that begins behind cold segments.

    That is what transactions need of each, and the producers' state behind the last; `get` returns a file of a segment.
    """
    for segment in segments:
        if TRANSACTION_INDEX in segment.files:
            yield RestoredSidecar(segment.base_offset, COLD_TRANSACTIONS_KIND, get(segment, TRANSACTION_INDEX))
    if segments and SNAPSHOT in segments[-1].files:
        yield RestoredSidecar(segments[-1].next_offset, SNAPSHOT, get(segments[-1], SNAPSHOT))


@attrs.define(eq=False)
class StoreStart:
    """See `TierStart`. Owned by the reactor's task, but for `run`.

    Attributes:
        log: Whose log it is to be.
        wanted_offset: Where the leader's local log begins: this one is to begin there or behind.
        is_exact: Whether it may not be behind it: records wait in what its leader has there. Where it is no segment's
            end in the store, that is tried again until the leader's log begins at one.
        cluster_id: Whose store it has to be.
        open_store: Returns the store; called on a worker thread.
        offset: Where the local log begins; known after `run`.
    """

    log: TieredPartitionLog
    wanted_offset: int
    is_exact: bool
    cluster_id: str
    open_store: Callable[[], ObjectStore]
    offset: int = attrs.field(default=-1, init=False)
    _manifest: Manifest | None = attrs.field(default=None, init=False)
    _known_version: int = attrs.field(init=False)
    _sidecars: list[RestoredSidecar] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._known_version = self.log.manifest.version if self.log.manifest is not None else 0

    def run(self) -> None:
        """See `TierStart.run`."""
        store, partition = self.open_store(), self.log.partition
        manifest = load_newest(store, partition)
        if manifest is None or manifest.version < self._known_version or manifest.cluster_id != self.cluster_id:
            raise NotInStoreError(f"{store.url} has no manifest of {partition} that this cluster's leader may have put")
        cold = [segment for segment in manifest.segments if segment.base_offset < self.wanted_offset]
        if not cold or cold[-1].next_offset < self.wanted_offset:
            raise NotInStoreError(
                f"{store.url} has offsets [{manifest.log_start_offset}, {manifest.end_offset}) of {partition}, and the "
                f"leader's log begins at {self.wanted_offset}"
            )
        if self.is_exact and cold[-1].next_offset > self.wanted_offset:
            raise NotInStoreError(
                f"the leader's log of {partition} begins at {self.wanted_offset}, inside a segment of {store.url}, and "
                "records may wait from there on"
            )
        self._sidecars = list(small_files_of(cold, partial(get_small_file, store, partition)))
        self._manifest, self.offset = manifest, cold[-1].next_offset

    def begin_keeping(self) -> Sequence[DiskWork]:
        """See `TierStart.begin_keeping`."""
        manifest, inner = self._manifest, self.log.inner
        assert manifest is not None, "it has run"
        state = encode_state(LocalState(manifest, min(manifest.log_start_offset, self.offset)))
        self._sidecars.append(RestoredSidecar(0, TIER_KIND, state))
        return [inner.begin_sidecar(at, kind, data) for at, kind, data in self._sidecars]

    def apply(self) -> None:
        """See `TierStart.apply`."""
        manifest, inner = self._manifest, self.log.inner
        assert manifest is not None, "it has run"
        kept = {(sidecar.offset, sidecar.kind) for sidecar in self._sidecars}
        for kind in DERIVED_KINDS:  # of a log that may have gone another way
            for at in list(inner.sidecars(kind)):
                if (at, kind) not in kept:
                    inner.delete_sidecar(at, kind)
        last = [segment for segment in manifest.segments if segment.base_offset < self.offset][-1]
        inner.truncate_fully(self.offset, last.leader_epochs[-1][0] if last.leader_epochs else NO_EPOCH)
        self.log.take_beginning(manifest)
