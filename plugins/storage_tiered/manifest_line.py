"""Shell: the manifests of one partition as this broker makes them, one after the other, from whichever thread.

Passes and compaction both change the manifest, on worker threads. Each says how; the line applies it to the newest one
that this broker knows, puts that, and remembers it.
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
    """The newest manifest that this broker knows. May be used by any thread."""

    def __init__(self, newest: Manifest | None = None) -> None:
        self._lock = Lock()
        self.newest = newest

    def take(self, manifest: Manifest) -> None:
        """Take a manifest that was found in the store."""
        with self._lock:
            self.newest = manifest

    def put(self, store: ObjectStore, change: Callable[[Manifest | None], Manifest]) -> Manifest:
        """Put the next manifest and return it. Blocks; for worker threads.

        Args:
            store: Where.
            change: Makes it of the newest one, which is None where there is none.

        Raises:
            FencedError: A later leader has written.
            ManifestMovedError: What is newest in the store is another one.
            RemoteStoreError: The store fails.
        """
        with self._lock:
            self.newest = put_next(store, change(self.newest))
            return self.newest
