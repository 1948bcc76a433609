"""The file interface: what it maps, finishes and locks."""

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from odradek.kernel.machine import files as files_module
from odradek.kernel.machine.files import (
    CREATE,
    IOV_MAX,
    READ,
    DiskError,
    FileHandle,
    OsFiles,
    disk_error,
    read_file,
    replace_file,
    sync_file,
    write_all,
)
from odradek.kernel.types import Buffer


class SlowFiles(OsFiles):
    """Files that take three bytes at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.pwritev = self._three

    def _three(self, fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
        return os.pwrite(fd, b"".join(buffers)[:3], position)


@pytest.mark.parametrize(
    ("number", "advice", "is_failing"),
    [
        (errno.ENOSPC, "the disk is full", False),
        (errno.EIO, "the disk is failing", True),
        (errno.EROFS, "read-only", True),
        (errno.EACCES, "permission denied", False),
        (errno.EMFILE, "ulimit -n", False),
        (errno.EXDEV, "see the system log", False),
    ],
)
def test_an_error_of_the_system_says_what_to_do(number: int, advice: str, is_failing: bool) -> None:
    error = disk_error(OSError(number, os.strerror(number)), "write to", "/data/x.log")

    assert isinstance(error, DiskError)
    assert (error.errno, error.is_device_failing) == (number, is_failing)
    assert str(error).startswith("cannot write to /data/x.log: ")
    assert errno.errorcode[number] in str(error)
    assert advice in str(error)


@pytest.mark.parametrize("files", [OsFiles(), SlowFiles()], ids=["whole", "three bytes a call"])
def test_everything_is_written_however_little_is_taken_at_once(files: OsFiles, tmp_path: Path) -> None:
    fd = files.open(tmp_path / "x", CREATE)
    buffers = [bytes([number % 251]) * (number % 5) for number in range(IOV_MAX + 100)]
    write_all(files, fd, buffers, 7)
    files.close(fd)

    assert (tmp_path / "x").read_bytes() == bytes(7) + b"".join(buffers)


def test_a_system_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    files = OsFiles()
    files.pwritev = lambda _fd, _buffers, _position, /: 0
    fd = files.open(tmp_path / "x", CREATE)
    with pytest.raises(OSError, match="wrote nothing"):
        write_all(files, fd, [b"abc"], 0)
    files.close(fd)


def test_seeking_stands_in_for_positioned_calls(tmp_path: Path) -> None:
    fd = OsFiles().open(tmp_path / "x", CREATE)
    written = files_module._seek_and_write(fd, [b"ab", b"cd"], 2)
    found = files_module._seek_and_read(fd, 3, 1)
    os.close(fd)

    assert (written, found) == (4, b"\0ab")


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    files = OsFiles()
    for data in (b"first and long", b"second"):
        replace_file(files, tmp_path / "x", data, is_durable=data == b"second")
    sync_file(files, tmp_path / "x")
    sync_file(files, tmp_path / "missing")

    assert (read_file(files, tmp_path / "x"), [p.name for p in tmp_path.iterdir()]) == (b"second", ["x"])


def test_a_handle_closes_when_the_last_holder_lets_go(tmp_path: Path) -> None:
    files = OsFiles()
    handle = FileHandle(files, files.open(tmp_path / "x", CREATE))
    fd, other = handle.fd, handle
    del handle
    assert os.fstat(fd)
    del other
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_what_was_just_written_counts_as_cached(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(1 << 20))
    files = OsFiles()
    fd = files.open(tmp_path / "x", READ)
    found = files.is_cached(fd, 0, 1 << 20)
    files.close(fd)

    assert found


def test_allocation_makes_the_file_as_long_as_asked(tmp_path: Path) -> None:
    files = OsFiles()
    fd = files.open(tmp_path / "x", CREATE)
    files.preallocate(fd, 10_000)
    found = files.size(fd)
    files.close(fd)

    assert found == 10_000


def test_a_lock_is_held_once_and_given_back(tmp_path: Path) -> None:
    files = OsFiles()
    lock = files.lock(tmp_path / ".lock")
    with pytest.raises(BlockingIOError):
        files.lock(tmp_path / ".lock")
    lock.release()

    files.lock(tmp_path / ".lock").release()


def refusing(number: int) -> Callable[..., int]:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL, 0])
def test_a_file_system_that_cannot_allocate_gets_a_sparse_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    if number:
        monkeypatch.setattr(os, "posix_fallocate", refusing(number))
    else:
        monkeypatch.delattr(os, "posix_fallocate")
    fd = OsFiles().open(tmp_path / "f", CREATE)
    try:
        OsFiles().preallocate(fd, 9_000)

        assert OsFiles().size(fd) == 9_000
    finally:
        os.close(fd)


def test_a_full_disk_is_not_taken_for_one_that_cannot_allocate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", refusing(errno.ENOSPC))
    fd = OsFiles().open(tmp_path / "f", CREATE)
    try:
        with pytest.raises(OSError, match="No space left"):
            OsFiles().preallocate(fd, 9_000)
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("number", "is_cached"), [(errno.EAGAIN, False), (errno.EOPNOTSUPP, True), (errno.EINVAL, True), (errno.EIO, False)]
)
def test_where_nobody_can_tell_bytes_count_as_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_cached: bool
) -> None:
    (tmp_path / "f").write_bytes(bytes(10))
    fd = OsFiles().open(tmp_path / "f", READ)
    try:
        monkeypatch.setattr(os, "preadv", refusing(number))
        assert OsFiles().is_cached(fd, 0, 10) is is_cached

        monkeypatch.setattr(files_module, "_RWF_NOWAIT", 0)
        assert OsFiles().is_cached(fd, 0, 10)
    finally:
        os.close(fd)
