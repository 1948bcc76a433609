"""Shell: opens a broker's store, also in another process, and where its files are not the system's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from odradek.kernel.api import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import Buffer, Files, Machine, ObjectInfo, ObjectStore

    from .store_settings import StoreSettings


@attrs.frozen
class StoreOpener:
    """Opens the store, in this process or another."""

    url: str
    settings: StoreSettings

    def __call__(self) -> ObjectStore:
        """Return the store.

        Raises:
            RemoteStoreError: It cannot be had.
        """
        from .stores import open_store  # a broker without tiers imports no object store

        return open_store(self.url, self.settings)


def reachable_from(machine: Machine, store: ObjectStore) -> ObjectStore:
    """Return a store that takes a machine's files: one that sends them by itself opens the system's."""
    return store if machine.network.is_system else _ReadingStore(store, machine.files)


@attrs.frozen
class _ReadingStore:
    """A store that is given the content of files, read by the machine whose they are."""

    store: ObjectStore
    files: Files

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self.store.url

    def put(self, name: str, data: Buffer | Path) -> None:
        """See `ObjectStore.put`."""
        self.store.put(name, read_file(self.files, data) if isinstance(data, Path) else data)

    def create(self, name: str, data: Buffer) -> None:
        """See `ObjectStore.create`."""
        self.store.create(name, data)

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        return self.store.get(name, start, size)

    def size(self, name: str) -> int:
        """See `ObjectStore.size`."""
        return self.store.size(name)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        return self.store.list(prefix)

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`."""
        self.store.delete(name)
