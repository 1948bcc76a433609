"""Shell: copy and remove the directory of a closed log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.kernel.api import CREATE, READ, write_all

from .formats import parse_segment_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from odradek.kernel.api import Files

_CHUNK: Final = 1 << 20


def copy_directory(files: Files, source: Path, target: Path) -> None:
    """Copy a closed log into a new directory; durable on return. Leftovers (`.deleted`, `.tmp`) stay behind. Blocks.

    Args:
        files: Where.
        source: The log's directory.
        target: The copy's, not there yet.

    Raises:
        OSError: A disk fails, or `target` is there.
    """
    files.mkdir(target)
    for entry in files.listdir(source):
        parsed = parse_segment_file(entry.name)
        if entry.is_directory or entry.name.endswith(".tmp") or (parsed is not None and parsed.mark == ".deleted"):
            continue
        copy_file(files, source / entry.name, target / entry.name)
    files.fsync_directory(target)
    files.fsync_directory(target.parent)


def copy_file(
    files: Files,
    source: Path,
    target: Path,
    check: Callable[[int], None] | None = None,
    *,
    start: int = 0,
    limit_bytes: int | None = None,
) -> None:
    """Copy the bytes of a file from `start` on to the same place of another; durable on return. Blocks.

    Args:
        files: Where.
        source: A file; it may grow meanwhile.
        target: Its copy, made when it is not there; holds the bytes before `start` already.
        check: Called before each chunk is written, with its size in bytes; what it raises ends the copy.
        start: The first byte to be copied.
        limit_bytes: Where the copy ends; None for all there is.

    Raises:
        OSError: A disk fails, or `source` is gone.
    """
    reading = files.open(source, READ)
    try:
        writing = files.open(target, CREATE)
        try:
            position = start
            size = _CHUNK if limit_bytes is None else min(_CHUNK, limit_bytes - position)
            while size > 0 and (chunk := files.pread(reading, size, position)):
                if check is not None:
                    check(len(chunk))
                write_all(files, writing, [chunk], position)
                position += len(chunk)
                size = _CHUNK if limit_bytes is None else min(_CHUNK, limit_bytes - position)
            files.fsync(writing)
        finally:
            files.close(writing)
    finally:
        files.close(reading)


def remove_directory(files: Files, path: Path) -> None:
    """Remove a log's directory and the files in it; nothing happens when it is gone. Blocks for large files."""
    try:
        for entry in files.listdir(path):
            files.unlink(path / entry.name)
        files.rmdir(path)
    except FileNotFoundError:
        return
