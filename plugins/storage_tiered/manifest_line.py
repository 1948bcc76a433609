"""Shell: the manifests of one partition as this broker makes them, one after the other, from whichever thread.

Passes and compaction both change the manifest, on worker threads. Each says how; the line applies it to the newest one
that this broker knows, puts that, and remembers it. One thread puts at a time, for as long as the store takes; who only
takes note of a manifest waits for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.kernel.api import Lock

from .manifests import put_next

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.kernel.api import ObjectStore

    from .manifest import Manifest


class ManifestLine:
    """The newest manifest that this broker knows. May be used by any thread; `newest` never becomes an older one."""

    def __init__(self, newest: Manifest | None = None) -> None:
        self._put_lock = Lock()
        self._newest_lock = Lock()
        self.newest = newest

    def take(self, manifest: Manifest) -> None:
        """Take a manifest that was found in the store. Never waits for it: the reactor's task calls this too."""
        with self._newest_lock:
            if self.newest is None or manifest.version >= self.newest.version:
                self.newest = manifest

    def put(self, store: ObjectStore, change: Callable[[Manifest | None], Manifest]) -> Manifest:
        """Put the next manifest and return it. Blocks; for worker threads.

        Args:
            store: Where.
            change: Makes it of the newest one, which is None where there is none.

        Raises:
            FencedError: A later leader has written.
            ManifestMovedError: What is newest in the store is another one; perhaps it was taken meanwhile.
            RemoteStoreError: The store fails.
        """
        with self._put_lock:
            put = put_next(store, change(self.newest))
            self.take(put)
            return put
