"""Shell: object stores for tests: one in memory, and one around another that fails as it is told to.

A fault loop runs a scenario for n = 1, 2, ... until nothing fails any more::

    for fault in StoreFault:
        for n in itertools.count(1):
            store = FaultyObjectStore(MemoryObjectStore(), fail_at=n, fault=fault)
            scenario(store)
            if store.operations < n:
                break

.. versionadded:: 0.1
"""

from __future__ import annotations

import threading
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.kernel.contracts.remote_store import (
    ObjectExistsError,
    ObjectInfo,
    ObjectMissingError,
    StoreRefusedError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from odradek.kernel.contracts.remote_store import ObjectStore
    from odradek.kernel.types import Buffer


class MemoryObjectStore:
    """An `ObjectStore` in memory, for any number of threads.

    Attributes:
        url: What it is called.
        objects: The objects by name, each with its bytes and the time of its put: tests look, and change.
        now_ms: The store's clock, milliseconds; tests set it.
    """

    def __init__(self, url: str = "memory://test") -> None:
        self.url = url
        self.objects: dict[str, tuple[bytes, int]] = {}
        self.now_ms = 0
        self._lock = threading.Lock()

    def put(self, name: str, data: Buffer | Path) -> None:
        """See `ObjectStore.put`."""
        content = data.read_bytes() if isinstance(data, Path) else bytes(data)
        with self._lock:
            self.objects[name] = content, self.now_ms

    def create(self, name: str, data: Buffer) -> None:
        """See `ObjectStore.create`."""
        with self._lock:
            if name in self.objects:
                raise ObjectExistsError(f"{self.url}/{name} is there already")
            self.objects[name] = bytes(data), self.now_ms

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        content = self._find(name)
        return content[start:] if size is None else content[start : start + size]

    def size(self, name: str) -> int:
        """See `ObjectStore.size`."""
        return len(self._find(name))

    def _find(self, name: str) -> bytes:
        with self._lock:
            found = self.objects.get(name)
        if found is None:
            raise ObjectMissingError(f"there is no {name} in {self.url}")
        return found[0]

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        with self._lock:
            found = list(self.objects.items())
        for name, (content, modified_ms) in found:
            if name.startswith(prefix):
                yield ObjectInfo(name, len(content), modified_ms)

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`."""
        with self._lock:
            self.objects.pop(name, None)


class StoreFault(Enum):
    """How an operation of a `FaultyObjectStore` fails."""

    UNREACHABLE = "nothing is done, and nobody answers"
    BUSY = "nothing is done: 503 Slow Down"
    ANSWER_LOST = "it is done, but the answer is lost"
    PARTIAL_UPLOAD = "the first half of a put arrives, then the connection breaks; `create` is done whole or not at all"
    NO_BUCKET = "there is no such bucket"
    WRONG_CREDENTIALS = "the credentials are refused"
    BYTES_CHANGED = "one bit is flipped, of what is put or of what is got; nobody notices"
    BYTES_MISSING = "the second half is lost, of what is put or of what is got; nobody notices"


_REFUSALS = {
    StoreFault.NO_BUCKET: "there is no such bucket: create it",
    StoreFault.WRONG_CREDENTIALS: "the credentials are refused: correct them",
}
_SILENT = frozenset({StoreFault.BYTES_CHANGED, StoreFault.BYTES_MISSING})


class FaultyObjectStore:
    """An `ObjectStore` around another one, with faults, for any number of threads.

    Attributes:
        operations: How many were asked for so far; a list is one.
        fault: What all operations do from now on, also those before `fail_at`: a test sets it to take the store away,
            and to None to bring it back.
        before_each: Called before each operation, on the thread that asks for it, with the method's and the object's
            name: a test that wants a slow store holds that thread here.
    """

    def __init__(
        self, store: ObjectStore, *, fail_at: int = 0, fault: StoreFault = StoreFault.UNREACHABLE, lasts: bool = False
    ) -> None:
        """Wrap a store.

        Args:
            store: It does what does not fail.
            fail_at: The number of the operation that fails, 0 for none.
            fault: How.
            lasts: All later ones fail too.
        """
        self._store = store
        self._fail_at = fail_at
        self._planned = fault
        self._lasts = lasts
        self._lock = threading.Lock()
        self.operations = 0
        self.fault: StoreFault | None = None
        self.before_each: Callable[[str, str], None] = lambda method, name: None

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self._store.url

    def _begin(self, method: str, name: str) -> StoreFault | None:
        """Count an operation; return the fault that it has to show by itself, and raise the others."""
        self.before_each(method, name)
        with self._lock:
            self.operations += 1
            number = self.operations
        is_planned = bool(self._fail_at) and (number == self._fail_at or (self._lasts and number > self._fail_at))
        fault = self._planned if is_planned else self.fault
        what = f"cannot {method} {name!r} in {self.url}"
        if fault in _REFUSALS:
            raise StoreRefusedError(f"{what}: {_REFUSALS[fault]}")
        if fault is StoreFault.BUSY:
            raise StoreUnavailableError(f"{what}: 503 Slow Down")
        is_nothing_done = fault is StoreFault.PARTIAL_UPLOAD and method != "put"
        if fault is StoreFault.UNREACHABLE or is_nothing_done:
            raise StoreUnavailableError(f"{what}: nobody answers")
        return fault

    def _end(self, method: str, name: str, fault: StoreFault | None) -> None:
        if fault is not None and fault not in _SILENT:
            raise StoreUnavailableError(f"cannot {method} {name!r} in {self.url}: the connection broke")

    def put(self, name: str, data: Buffer | Path) -> None:
        """See `ObjectStore.put`."""
        fault = self._begin("put", name)
        content = data.read_bytes() if isinstance(data, Path) else bytes(data)
        self._store.put(name, _changed(content, fault))
        self._end("put", name, fault)

    def create(self, name: str, data: Buffer) -> None:
        """See `ObjectStore.create`."""
        fault = self._begin("create", name)
        self._store.create(name, _changed(bytes(data), fault))
        self._end("create", name, fault)

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        fault = self._begin("get", name)
        content = self._store.get(name, start, size)
        self._end("get", name, fault)
        return _changed(content, fault)

    def size(self, name: str) -> int:
        """See `ObjectStore.size`."""
        fault = self._begin("size", name)
        size = self._store.size(name)
        self._end("size", name, fault)
        return size // 2 if fault is StoreFault.BYTES_MISSING else size

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`: a fault comes with the first step."""
        fault = self._begin("list", prefix)
        yield from self._store.list(prefix)
        self._end("list", prefix, fault)

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`."""
        fault = self._begin("delete", name)
        self._store.delete(name)
        self._end("delete", name, fault)


def _changed(content: bytes, fault: StoreFault | None) -> bytes:
    """Return what arrives of an object's bytes."""
    middle = len(content) // 2
    if fault in {StoreFault.BYTES_MISSING, StoreFault.PARTIAL_UPLOAD}:
        return content[:middle]
    if fault is StoreFault.BYTES_CHANGED and content:
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    return content
