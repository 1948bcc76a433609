"""Pure core: the remote store contract: objects under names, as every object store has them, and how it fails.

Everything here blocks and is for worker threads; a store is used by several of them at once. Names are relative to the
store's own root, parts joined with slashes. What `put` has returned from is durable, and seen by every later call.

.. versionadded:: 0.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from ..errors import OdradekError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..types import Buffer


class RemoteStoreError(OdradekError):
    """A store did not do what it was asked for; the text says which store, what was asked, and what to do."""


class StoreUnavailableError(RemoteStoreError):
    """It cannot be reached, is too slow, or says that it is busy: the same call may succeed later."""


class StoreRefusedError(RemoteStoreError):
    """It refuses, and will until an operator acts: wrong credentials, no such bucket, a wrong address."""


class ObjectMissingError(RemoteStoreError):
    """There is no object of this name."""


class ObjectExistsError(RemoteStoreError):
    """There is an object of this name already: `create` changed nothing."""


@attrs.frozen
class ObjectInfo:
    """An object as a list tells of it.

    Attributes:
        name: Relative to the store's root.
        size_bytes: Its size.
        modified_ms: When it was put, by the store's clock.
    """

    name: str
    size_bytes: int
    modified_ms: int


class ObjectStore(Protocol):
    """A store of objects. Any method may raise `StoreUnavailableError` or `StoreRefusedError`."""

    @property
    def url(self) -> str:
        """Where it is, without secrets: for people."""
        ...

    def put(self, name: str, data: Buffer | Path) -> None:
        """Store an object, in the place of one that is there.

        Args:
            name: Its name.
            data: The bytes, or a file that holds them, which is read as it is sent: memory stays bounded.

        Raises:
            OSError: The file cannot be read.
        """
        ...

    def create(self, name: str, data: Buffer) -> None:
        """Store an object if there is none of this name: of two callers at once one succeeds.

        Raises:
            ObjectExistsError: There is one.
        """
        ...

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """Return an object's bytes, or `size` of them from `start` on, fewer where it ends before.

        Raises:
            ObjectMissingError: There is none.
        """
        ...

    def size(self, name: str) -> int:
        """Return how many bytes an object has.

        Raises:
            ObjectMissingError: There is none.
        """
        ...

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Iterate over the objects whose names begin with `prefix` (it ends with a slash, or is empty); in no order."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; nothing happens when there is none."""
        ...
