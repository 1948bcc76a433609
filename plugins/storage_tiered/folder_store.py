"""Shell: a folder as an object store, as durable as its disk.

`obstore` has one too, but that never syncs: what it says is stored is gone with the power (seen with strace, 0.12.1),
and a tier removes local segments on the word of its store. Here a file is written under another name in
`.odradek-uploading`, synced, and then renamed, or linked where it must be new; then the directories are synced.

.. versionadded:: 0.1
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odradek.kernel.api import (
    ObjectExistsError,
    ObjectInfo,
    ObjectMissingError,
    StoreRefusedError,
    StoreUnavailableError,
    disk_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.kernel.api import Buffer

UPLOADS_FOLDER: Final = ".odradek-uploading"
"""Where a file lies until it is whole."""

_REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR})
_MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})
_ATTEMPTS: Final = 5
_COPY_BYTES: Final = 1 << 20
_numbers = itertools.count()


class FolderStore:
    """An `ObjectStore` in a folder, for any number of threads and processes of one machine."""

    def __init__(self, root: Path) -> None:
        """Take a folder; it is made if only it is missing and the one that it lies in is there."""
        self._root = root
        self._uploads = root / UPLOADS_FOLDER
        with suppress(OSError):  # whoever uses it hears why not
            root.mkdir(exist_ok=True)

    @property
    def url(self) -> str:
        """See `ObjectStore.url`."""
        return self._root.as_uri()

    def put(self, name: str, data: Buffer | Path) -> None:
        """See `ObjectStore.put`."""
        if not isinstance(data, Path):
            self._put(name, data)
            return
        with data.open("rb") as source:  # an `OSError` of this one is the caller's
            self._put(name, source)

    def _put(self, name: str, data: Buffer | BufferedReader) -> None:
        with self._telling("put", name):
            self._settle(self._upload(data), name, is_new=False)

    def create(self, name: str, data: Buffer) -> None:
        """See `ObjectStore.create`."""
        with self._telling("create", name):
            self._settle(self._upload(data), name, is_new=True)

    def get(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """See `ObjectStore.get`."""
        with self._telling("get", name), (self._root / name).open("rb", buffering=0) as file:
            if start:
                file.seek(start)
            return file.read() if size is None else _read(file.fileno(), start, size)

    def size(self, name: str) -> int:
        """See `ObjectStore.size`."""
        with self._telling("look at", name):
            path = self._root / name
            found = path.stat()
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "a directory")
            return found.st_size

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """See `ObjectStore.list`."""
        with self._telling("list", prefix):
            if not self._root.is_dir():
                raise FileNotFoundError(errno.ENOENT, "no such folder")
            found = list(self._walk(self._root / prefix))
        yield from found

    def delete(self, name: str) -> None:
        """See `ObjectStore.delete`: folders that become empty go with it."""
        path = self._root / name
        try:
            with self._telling("delete", name):
                path.unlink()
        except ObjectMissingError:
            return
        with suppress(OSError):  # as soon as one is not empty
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()

    def _upload(self, data: Buffer | BufferedReader) -> Path:
        """Write a file beside, durably."""
        self._check_root()
        self._uploads.mkdir(exist_ok=True)
        upload = self._uploads / f"{os.getpid()}-{next(_numbers)}"
        try:
            with upload.open("wb") as file:
                if isinstance(data, BufferedReader):
                    shutil.copyfileobj(data, file, _COPY_BYTES)
                else:
                    file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            upload.unlink(missing_ok=True)
            raise
        return upload

    def _settle(self, upload: Path, name: str, *, is_new: bool) -> None:
        """Give an upload its name, durably; it is gone afterwards whatever happens."""
        path = self._root / name
        try:
            for attempt in itertools.count(1):
                try:
                    self._make_folders(path.parent)
                    if is_new:
                        os.link(upload, path)
                    else:
                        upload.replace(path)
                    break
                except FileNotFoundError:  # a delete took the empty folder away meanwhile
                    if attempt == _ATTEMPTS:
                        raise
            _sync(path.parent)
        finally:
            upload.unlink(missing_ok=True)

    def _make_folders(self, folder: Path) -> None:
        """Make a folder and those that it lies in, durably."""
        missing = list(itertools.takewhile(lambda each: not each.is_dir(), (folder, *folder.parents)))
        for each in reversed(missing):
            try:
                each.mkdir(exist_ok=True)
            except FileExistsError as exc:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from exc
            _sync(each.parent)

    def _walk(self, folder: Path) -> Iterator[ObjectInfo]:
        try:
            entries = list(os.scandir(folder))
        except FileNotFoundError:
            return  # it went meanwhile, or nothing was ever put there
        for entry in entries:
            if entry.name == UPLOADS_FOLDER:
                continue
            if entry.is_dir():
                yield from self._walk(Path(entry.path))
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                found = entry.stat()
                name = Path(entry.path).relative_to(self._root).as_posix()
                yield ObjectInfo(name, found.st_size, found.st_mtime_ns // 1_000_000)

    def _check_root(self) -> None:
        if not self._root.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such folder")

    @contextmanager
    def _telling(self, verb: str, name: str) -> Iterator[None]:
        """Turn an `OSError` into what it means for an object."""
        try:
            yield
        except FileExistsError as exc:
            raise ObjectExistsError(f"{name!r} is in {self.url} already") from exc
        except OSError as exc:
            what = f"cannot {verb} {name!r} in {self.url}"
            if not self._root.is_dir():
                advice = "the folder is not there: create it, mount its disk, or correct odradek.tiered.store"
                raise StoreRefusedError(f"{what}: {advice}") from exc
            if exc.errno in _MISSING and verb not in {"put", "create"}:
                raise ObjectMissingError(f"{what}: there is no such object") from exc
            kind = StoreRefusedError if exc.errno in _REFUSED else StoreUnavailableError
            raise kind(str(disk_error(exc, verb, f"{self._root}/{name}"))) from exc


def _read(fd: int, start: int, size: int) -> bytes:
    """Read as much of a range as there is: one read may give less."""
    parts = []
    while size > 0 and (part := os.pread(fd, size, start)):
        parts.append(part)
        start, size = start + len(part), size - len(part)
    return b"".join(parts)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
