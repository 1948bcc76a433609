"""Shell: small files that a controller reads and writes: a disk that fails is told with what was done to which file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..config.meta_properties import META_PROPERTIES, MetaProperties, decode_meta_properties
from ..errors import CorruptionError
from ..machine.files import disk_error, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..machine.files import Files


@contextmanager
def telling_disk_errors(what: str, path: Path) -> Iterator[None]:
    """Raise what the system refuses as `StorageError`; see `disk_error` for the arguments."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, what, path) from error


def read_if_there(files: Files, path: Path) -> bytes | None:
    """Return all bytes of a small file, None where there is none. Blocks.

    Raises:
        StorageError: The disk is failing.
    """
    with telling_disk_errors("read", path):
        try:
            return read_file(files, path)
        except FileNotFoundError:
            return None


def read_meta_properties(files: Files, directory: Path) -> MetaProperties | None:
    """Return what a log directory says of itself, None where it says nothing. Blocks.

    Raises:
        CorruptionError: Its `meta.properties` is damaged.
        StorageError: The disk is failing.
    """
    path = directory / META_PROPERTIES
    data = read_if_there(files, path)
    try:
        return None if data is None else decode_meta_properties(data)
    except CorruptionError as error:
        raise CorruptionError(f"{path}: {error}") from error
