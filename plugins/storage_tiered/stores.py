"""Shell: open the store that a URL names: S3, Google's, Azure's, a folder, or memory.

`obstore` speaks to the providers; it is imported when the first of its stores is opened, so a broker without tiers, or
with a folder, pays nothing for it. All of its calls release the interpreter lock.

.. versionadded:: 0.1
"""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from odradek.kernel.api import ConfigError, Lock, ObjectInfo, ObjectMissingError

from .folder_store import FolderStore
from .store_errors import explain, is_beyond_the_end
from .store_settings import STORE_KEY, StoreSettings, client_options, parse_store_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import Buffer, ObjectStore

    from .store_settings import StoreAddress

PART_BYTES: Final = 8 << 20
"""A file that is larger is sent in parts of this size; S3 takes 10,000 parts, 80 GiB."""

PARTS_AT_ONCE: Final = 2
"""How many parts of a file are sent at once: with their size the bound of memory for each file."""

REQUESTS_AT_ONCE: Final = 8
"""How many requests a command makes at once."""

_BACKOFF: Final = {"init_backoff": datetime.timedelta(milliseconds=100), "max_backoff": datetime.timedelta(seconds=1)}

_given: WeakValueDictionary[str, ObjectStore] = WeakValueDictionary()
_memories: dict[str, Any] = {}
_memories_lock = Lock()


@contextmanager
def store_threads() -> Iterator[ThreadPoolExecutor]:
    """Give threads for many requests at once; what has not begun when the block ends is given up."""
    threads = ThreadPoolExecutor(REQUESTS_AT_ONCE)
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


def give_memory(name: str, store: ObjectStore) -> None:
    """Have `memory://name` be this store, as long as somebody holds it: tests look into it, and have it fail."""
    _given[name] = store


def open_store(url: str, settings: StoreSettings | None = None) -> ObjectStore:
    """Open the store that a URL names. Nothing is asked of it yet: it may be away.

    Args:
        url: `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `file:///folder`, or `memory://name`:
            one of that name in this process.
        settings: How to reach it; with the URL all that another process needs to open it too.

    Raises:
        ConfigError: The URL or a setting is wrong.
    """
    address = parse_store_url(url)
    settings = settings or StoreSettings()
    options = client_options(address, settings)
    if address.scheme == "file":
        return FolderStore(Path(address.path))
    if address.scheme == "memory" and address.bucket in _given:
        return _given[address.bucket]
    if address.scheme == "memory":
        return ObstoreStore(url, _memory(address.bucket), address.path)
    return ObstoreStore(url, _client(address, settings, options))


def _memory(name: str) -> object:
    from obstore.store import MemoryStore

    with _memories_lock:
        return _memories.setdefault(name, MemoryStore())


def _client(address: StoreAddress, settings: StoreSettings, options: dict[str, str]) -> object:
    from obstore import store as stores
    from obstore.exceptions import BaseError

    retry: dict[str, Any] = {
        "max_retries": settings.retries,
        "retry_timeout": datetime.timedelta(milliseconds=settings.timeout_ms),
        "backoff": _BACKOFF,
    }
    kinds: dict[str, Any] = {"s3": stores.S3Store, "gs": stores.GCSStore, "az": stores.AzureStore}
    try:
        return kinds[address.scheme](address.bucket, prefix=address.path or None, config=options, retry_config=retry)
    except (BaseError, ValueError) as exc:
        text = str(exc).partition("\n")[0]
        raise ConfigError(f"the store cannot be opened: {text}", where=STORE_KEY, hint="correct its settings") from exc


class ObstoreStore:
    """An `ObjectStore` that `obstore` speaks to."""

    def __init__(self, url: str, client: Any, prefix: str = "") -> None:
        """Take a client of `obstore`.

        Args:
            url: Without secrets.
            client: It.
            prefix: What it does not put before names by itself.
        """
        self._url = url
        self._client = client
        self._prefix = f"{prefix}/" if prefix else ""

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self._url

    def put(self, name: str, data: Buffer | Path) -> None:
        """See `ObjectStore.put`: a file goes in parts, and counts when the last of them has arrived."""
        import obstore

        if isinstance(data, Path):
            data.open("rb").close()  # an `OSError` of the file is the caller's
        with self._telling("put", name):
            obstore.put(self._client, self._prefix + name, data, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)

    def create(self, name: str, data: Buffer) -> None:
        """See `ObjectStore.create`."""
        import obstore

        with self._telling("create", name):
            obstore.put(self._client, self._prefix + name, data, mode="create")

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        import obstore

        if size == 0:
            self.size(name)
            return b""
        with self._telling("get", name):
            try:
                if size is not None:
                    return bytes(obstore.get_range(self._client, self._prefix + name, start=start, length=size))
                wanted: Any = {"range": {"offset": start}} if start else None
                return bytes(obstore.get(self._client, self._prefix + name, options=wanted).bytes())
            except Exception as exc:
                if is_beyond_the_end(str(exc)):
                    return b""
                raise

    def size(self, name: str) -> int:
        """See `ObjectStore.size`."""
        import obstore

        try:
            with self._telling("look at", name):
                return int(obstore.head(self._client, self._prefix + name)["size"])
        except ObjectMissingError:
            self._check_bucket()  # the answer to this request has no body, and says of a missing bucket the same
            raise

    def _check_bucket(self) -> None:
        for _ in self.list("nothing/"):
            break

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        import obstore

        with self._telling("list", prefix):
            for portion in obstore.list(self._client, (self._prefix + prefix) or None, chunk_size=1000):
                for found in portion:
                    modified_ms = int(found["last_modified"].timestamp() * 1000)
                    yield ObjectInfo(found["path"].removeprefix(self._prefix), found["size"], modified_ms)

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`."""
        import obstore

        try:
            with self._telling("delete", name):
                obstore.delete(self._client, self._prefix + name)
        except ObjectMissingError:
            return

    @contextmanager
    def _telling(self, verb: str, name: str) -> Iterator[None]:
        """Turn what `obstore` raises into what it means."""
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError) as exc:
            raise explain(str(exc), f"cannot {verb} {name!r} in {self._url}") from exc
