"""Simulated files: what a process sees of them, and what a loss of power leaves."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.machine.files import CREATE, READ, READ_WRITE, OsFiles, read_file, replace_file, write_all
from odradek.kernel.machine.files import Files as FilesProtocol
from odradek.lab.simulator.disk import SECTOR_BYTES, Directory, Disk, File
from odradek.lab.simulator.files import Files
from odradek.lab.simulator.seeds import Seeds
from odradek.lab.simulator.world import SimulationError, World
from odradek.testing.faults import PowerLoss

ROOT = Path("/")
A, B = ROOT / "a", ROOT / "b"


@pytest.fixture
def disk() -> Disk:
    made = Disk(World(Seeds(1)), "host")
    made.faults.short_write_share = 0.0
    return made


@pytest.fixture
def files(disk: Disk) -> Files:
    return Files(disk, {})


def write(files: FilesProtocol, path: Path, data: bytes, position: int = 0) -> None:
    fd = files.open(path, CREATE)
    write_all(files, fd, [data], position)
    files.close(fd)


def sync(files: FilesProtocol, path: Path) -> None:
    fd = files.open(path, READ_WRITE)
    files.fsync(fd)
    files.close(fd)


def after_power_loss(disk: Disk, files: Files, style: PowerLoss) -> Files:
    files.end()
    disk.lose_power(style)
    return Files(disk, {})


@pytest.mark.parametrize("is_simulated", [True, False])
def test_files_do_what_the_systems_do(is_simulated: bool, disk: Disk, files: Files, tmp_path: Path) -> None:
    tried: FilesProtocol = files if is_simulated else OsFiles()
    root = ROOT if is_simulated else tmp_path
    path, other, folder = root / "a", root / "b", root / "folder"
    with pytest.raises(FileNotFoundError):
        tried.open(path, READ)
    write(tried, path, b"hello")
    write(tried, path, b"!", 7)
    assert read_file(tried, path) == b"hello\0\0!"
    fd = tried.open(path, READ_WRITE)
    tried.truncate(fd, 4)
    tried.truncate(fd, 6)
    assert (tried.pread(fd, 100, 2), tried.size(fd)) == (b"ll\0\0", 6)
    mapped = tried.mmap(fd, 4, is_writable=True)
    mapped[1] = ord("a")
    assert tried.pread(fd, 4, 0) == b"hall"
    tried.pwritev(fd, [b"f"], 2)
    assert mapped[:4] == b"hafl"
    mapped.close()
    tried.unlink(path)
    with pytest.raises(FileNotFoundError):
        tried.stat(path)
    assert tried.pread(fd, 100, 0) == b"hafl\0\0"
    tried.close(fd)
    tried.mkdir(folder)
    with pytest.raises(FileExistsError):
        tried.mkdir(folder)
    write(tried, folder / "x", b"1")
    replace_file(tried, other, b"whole", is_durable=True)
    tried.rename(folder / "x", other)
    assert read_file(tried, other) == b"1"
    assert sorted(entry.name for entry in tried.listdir(root)) == ["b", "folder"]
    assert tried.stat(folder).is_directory
    write(tried, folder / "y", b"")
    with pytest.raises(OSError, match="not empty"):
        tried.rmdir(folder)
    tried.unlink(folder / "y")
    tried.rmdir(folder)
    with pytest.raises(FileNotFoundError):
        tried.listdir(folder)


def test_a_lock_is_held_by_one_process_and_dropped_by_its_death(disk: Disk) -> None:
    locked: dict[Path, Files] = {}
    first, second = Files(disk, locked), Files(disk, locked)
    first.lock(A)
    with pytest.raises(BlockingIOError):
        second.lock(A)
    first.end()
    second.lock(A).release()
    second.lock(A)


@pytest.mark.parametrize("style", [PowerLoss.LOST, PowerLoss.KEPT])
def test_what_was_not_synced_is_lost_with_the_power(disk: Disk, files: Files, style: PowerLoss) -> None:
    write(files, A, b"synced")
    sync(files, A)
    files.fsync_directory(ROOT)
    write(files, A, b"unsynced, and longer")
    write(files, B, b"new")
    sync(files, B)

    left = after_power_loss(disk, files, style)

    assert read_file(left, A) == b"synced"
    assert [entry.name for entry in left.listdir(ROOT)].count("b") == (style is PowerLoss.KEPT)


def test_a_process_that_dies_leaves_what_it_wrote_and_does_no_more(disk: Disk, files: Files) -> None:
    write(files, A, b"written")
    fd = files.open(A, READ_WRITE)
    mapped = files.mmap(fd, 7, is_writable=True)
    mapped[0] = ord("W")
    files.end()
    mapped[1] = ord("R")
    assert files.pwritev(fd, [b"from the grave"], 0) == 14
    files.truncate(fd, 0)
    files.unlink(A)
    files.rename(A, B)
    files.mkdir(ROOT / "c")
    files.close(files.open(ROOT / "d", CREATE))
    mapped.close()

    left = Files(disk, {})

    assert read_file(left, A) == b"Written"
    assert len(left.listdir(ROOT)) == 1


def test_a_cut_that_was_not_synced_comes_back(disk: Disk, files: Files) -> None:
    content = bytes(range(250)) * 10
    write(files, A, content)
    sync(files, A)
    files.fsync_directory(ROOT)
    fd = files.open(A, READ_WRITE)
    files.truncate(fd, 100)
    files.truncate(fd, 1000)
    write(files, A, b"x" * 50, 50)

    assert read_file(after_power_loss(disk, files, PowerLoss.LOST), A) == content


def test_a_store_into_the_hole_of_a_mapped_file_is_a_mistake_that_a_full_disk_would_end_the_process_for(
    files: Files,
) -> None:
    fd = files.open(A, READ_WRITE | CREATE)
    files.truncate(fd, 200_000)
    files.pwritev(fd, [bytes(100_000)], 0)
    mapped = files.mmap(fd, 200_000, is_writable=True)
    mapped[99_999] = 7
    assert files.pread(fd, 9, 99_998) == b"\0\x07".ljust(9, b"\0")
    mapped[100_000] = 8

    with pytest.raises(SimulationError, match="a store behind byte 100000 of a mapped file"):
        files.pread(fd, 1, 0)


def test_a_mapping_is_durable_as_of_its_files_sync(disk: Disk, files: Files) -> None:
    write(files, A, bytes(2000))
    files.fsync_directory(ROOT)
    fd = files.open(A, READ_WRITE)
    mapped = files.mmap(fd, 2000, is_writable=True)
    mapped[10] = 1
    files.fsync(fd)
    mapped[10] = 2
    mapped[1999] = 3

    left = read_file(after_power_loss(disk, files, PowerLoss.LOST), A)

    assert (left[10], left[1999]) == (1, 0)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.integers(0, 3000), st.binary(min_size=1, max_size=1500)),
            st.tuples(st.just("resize"), st.integers(0, 3000)),
            st.tuples(st.just("sync")),
        ),
        max_size=12,
    ),
    st.integers(0, 1000),
)
def test_a_file_is_durable_as_it_was_at_its_last_sync(steps: list[tuple[str, int, bytes]], seed: int) -> None:
    file, synced, present = File(), b"", b""
    for name, *facts in steps:
        if name == "write":
            position, data = facts
            assert isinstance(position, int)
            assert isinstance(data, bytes)
            file.write(position, data)
            present = present.ljust(position, b"\0")
            present = present[:position] + data + present[position + len(data) :]
        elif name == "resize":
            (size,) = facts
            assert isinstance(size, int)
            file.resize(size)
            present = present[:size].ljust(size, b"\0")
        else:
            file.sync()
            synced = present
        assert (file.content, file.durable) == (present, synced)
    file.lose_power(PowerLoss.TORN, random.Random(seed))

    assert min(len(synced), len(present)) <= file.size_bytes <= max(len(synced), len(present))
    for start in range(0, file.size_bytes, SECTOR_BYTES):
        left = file.read(start, SECTOR_BYTES)
        old, new = (each[start : start + len(left)].ljust(len(left), b"\0") for each in (synced, present))
        assert left in (old, new)


def test_torn_files_differ_by_seed_and_keep_the_order_of_nothing() -> None:
    seen = set()
    for seed in range(60):
        file = File()
        file.write(0, b"old " * 512)
        file.sync()
        file.write(0, b"new " * 512)
        file.lose_power(PowerLoss.TORN, random.Random(seed))
        seen.add(tuple(bytes(file.data[place : place + 3]) for place in range(0, 2048, SECTOR_BYTES)))

    assert (b"old", b"new", b"new", b"new") in seen
    assert (b"new", b"new", b"new", b"new") in seen
    assert (b"old", b"old", b"old", b"old") in seen
    assert len(seen) > 8


def test_of_a_torn_directory_the_first_changes_stay() -> None:
    seen = set()
    for seed in range(40):
        directory = Directory()
        for name in "abc":
            directory.put(name, File())
        directory.lose_power(PowerLoss.TORN, random.Random(seed))
        seen.add("".join(directory.entries))

    assert seen == {"", "a", "ab", "abc"}


def test_an_operation_fails_once_and_a_write_that_fails_is_half_done(disk: Disk, files: Files) -> None:
    write(files, A, b"")
    disk.faults.errors[disk.operations_count + 1] = errno.ENOSPC
    fd = files.open(A, READ_WRITE)
    with pytest.raises(OSError, match="ENOSPC"):
        files.pwritev(fd, [b"1234"], 0)
    assert read_file(files, A) == b"12"
    assert files.pwritev(fd, [b"1234"], 0) == 4


def test_a_full_disk_takes_no_more(disk: Disk, files: Files) -> None:
    disk.capacity_bytes = 100
    write(files, A, bytes(80))
    assert files.disk_space(ROOT) == (100, 20)
    fd = files.open(A, READ_WRITE)
    assert files.pwritev(fd, [bytes(30)], 0) == 30
    with pytest.raises(OSError, match="No space left"):
        files.pwritev(fd, [bytes(30)], 80)
    files.truncate(fd, 10)
    files.pwritev(fd, [bytes(60)], 10)


def test_a_crash_in_the_middle_of_an_operation_leaves_it_undone(disk: Disk, files: Files) -> None:
    write(files, A, b"before")
    disk.before_operation = lambda _path: files.end()
    write(files, A, b"after!")
    disk.before_operation = lambda _path: None

    assert read_file(Files(disk, {}), A) == b"before"


def test_short_writes_come_to_an_end(disk: Disk, files: Files) -> None:
    disk.faults.short_write_share = 0.9
    write(files, A, bytes(range(256)))

    assert read_file(files, A) == bytes(range(256))


def test_after_a_loss_of_power_files_are_cold_until_read(disk: Disk, files: Files) -> None:
    write(files, A, bytes(200_000))
    sync(files, A)
    files.fsync_directory(ROOT)
    fd = files.open(A, READ)
    assert files.is_cached(fd, 0, 200_000)
    left = after_power_loss(disk, files, PowerLoss.KEPT)
    fd = left.open(A, READ)
    assert not left.is_cached(fd, 0, 200_000)
    busy_ns = disk.busy_ns
    left.pread(fd, 10, 70_000)
    assert disk.busy_ns > busy_ns
    assert left.is_cached(fd, 70_000, 1000)
    assert not left.is_cached(fd, 0, 200_000)


def test_one_bit_rots(disk: Disk, files: Files) -> None:
    write(files, A, bytes(100))

    rotten = disk.rot()

    assert rotten is not None
    assert rotten.path == "/a"
    assert sum(byte.bit_count() for byte in read_file(files, A)) == 1


def test_a_sync_takes_time_and_no_two_take_the_same(disk: Disk, files: Files) -> None:
    write(files, A, b"x")
    taken = set()
    for _ in range(5):
        before = disk.busy_ns
        sync(files, A)
        taken.add(disk.busy_ns - before)

    assert len(taken) == 5


def test_a_descriptor_that_was_closed_is_refused(files: Files) -> None:
    write(files, A, b"x")
    fd = files.open(A, os.O_RDONLY)
    files.close(fd)
    with pytest.raises(OSError, match="Bad file"):
        files.pread(fd, 1, 0)
