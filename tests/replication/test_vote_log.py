"""The file of what all elections of a broker must never forget: found again, or nobody of it votes."""

from __future__ import annotations

import errno
import random
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.contracts.disk_work import DiskWork, do_now
from odradek.kernel.errors import CorruptionError, StorageError
from odradek.kernel.machine.files import DiskError, Files, OsFiles
from odradek.kernel.replication.closing_marks import MARK_NAME
from odradek.kernel.replication.vote_log import FILE_NAME, MAGIC, REWRITE_BYTES_MIN, KeptVote, VoteLogs
from odradek.kernel.types import Buffer
from odradek.testing.faults import FaultyFiles, PowerLoss

TOPIC = uuid.UUID(int=1)
OTHER = uuid.UUID(int=2)


BOOT = uuid.UUID(int=100)


class Opened:
    """A file of votes in a directory, as a life of a broker has it."""

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.log = VoteLogs(files or OsFiles(), BOOT).of(str(directory))

    def state_of(self, topic_id: uuid.UUID, partition: int) -> bytes | None:
        kept = self.log.kept(topic_id, partition)
        return None if kept is None else kept.state

    def begin_keep(self, states: Mapping[tuple[uuid.UUID, int], bytes | None]) -> DiskWork:
        return self.log.begin_keep(states)


def opened(directory: Path, files: Files | None = None) -> Opened:
    return Opened(directory, files)


def keep(log: Opened, *states: tuple[uuid.UUID, int, bytes | None]) -> None:
    do_now(log.begin_keep({(topic_id, partition): state for topic_id, partition, state in states}))


def test_where_nothing_was_kept_there_is_nothing(tmp_path: Path) -> None:
    log = opened(tmp_path)

    assert log.state_of(TOPIC, 0) is None
    assert list(tmp_path.iterdir()) == []


def test_what_was_kept_last_of_each_partition_is_found_by_the_next_life(tmp_path: Path) -> None:
    log = opened(tmp_path)
    keep(log, (TOPIC, 0, b"old"), (TOPIC, 1, b"one"), (OTHER, 0, b"another's"))
    keep(log, (TOPIC, 0, b"new"), (TOPIC, 1, None))
    again = opened(tmp_path)

    assert [again.state_of(*key) for key in ((TOPIC, 0), (TOPIC, 1), (OTHER, 0))] == [b"new", None, b"another's"]
    assert [log.state_of(*key) for key in ((TOPIC, 0), (TOPIC, 1), (OTHER, 0))] == [b"new", None, b"another's"]


def test_what_is_not_durable_yet_is_not_told(tmp_path: Path) -> None:
    log = opened(tmp_path)
    work = log.begin_keep({(TOPIC, 0): b"vote"})
    before = log.state_of(TOPIC, 0)
    do_now(work)

    assert (before, log.state_of(TOPIC, 0)) == (None, b"vote")


@pytest.mark.parametrize("blocks_count", [1, 2])
def test_what_was_kept_survives_the_loss_of_power(tmp_path: Path, blocks_count: int) -> None:
    disk, left = tmp_path / "disk", tmp_path / "left"
    disk.mkdir()
    left.mkdir()
    files = FaultyFiles(disk)
    log = opened(disk, files=files)
    for number in range(blocks_count):
        keep(log, (TOPIC, number, b"voted"))
    files.after_power_loss(left, PowerLoss.LOST, random.Random(1))
    again = opened(left)

    assert [again.state_of(TOPIC, number) for number in range(blocks_count)] == [b"voted"] * blocks_count


def test_a_torn_end_is_cut_off_and_written_over(tmp_path: Path) -> None:
    log = opened(tmp_path)
    keep(log, (TOPIC, 0, b"first"))
    whole = (tmp_path / FILE_NAME).read_bytes()
    keep(log, (TOPIC, 0, b"torn"))
    torn = (tmp_path / FILE_NAME).read_bytes()
    for size in range(len(whole), len(torn)):
        (tmp_path / FILE_NAME).write_bytes(torn[:size])
        again = opened(tmp_path)

        assert again.state_of(TOPIC, 0) == b"first"
        assert (tmp_path / FILE_NAME).read_bytes() == whole

    keep(opened(tmp_path), (TOPIC, 1, b"next"))
    assert opened(tmp_path).state_of(TOPIC, 1) == b"next"


def test_an_end_of_zeros_is_a_torn_one(tmp_path: Path) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"first"))
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(bytes(100))

    assert opened(tmp_path).state_of(TOPIC, 0) == b"first"


def test_damage_before_the_end_is_refused(tmp_path: Path) -> None:
    log = opened(tmp_path)
    keep(log, (TOPIC, 0, b"first"))
    keep(log, (TOPIC, 0, b"second"))
    data = bytearray((tmp_path / FILE_NAME).read_bytes())
    data[data.index(b"first")] ^= 1
    (tmp_path / FILE_NAME).write_bytes(data)

    with pytest.raises(CorruptionError, match=rf"{FILE_NAME}: the block at {len(MAGIC)} is damaged.*given twice"):
        opened(tmp_path)


@pytest.mark.parametrize("blocks_behind", [1, 2])
@pytest.mark.parametrize("length", [0, 1, 44, 0xFFFF, 0xFFFFFFFF])
def test_a_block_whose_length_is_damaged_is_no_torn_one_where_others_follow(
    tmp_path: Path, length: int, blocks_behind: int
) -> None:
    log = opened(tmp_path)
    for number in range(blocks_behind + 1):
        keep(log, (TOPIC, number, b"voted"))
    data = bytearray((tmp_path / FILE_NAME).read_bytes())
    data[len(MAGIC) : len(MAGIC) + 4] = length.to_bytes(4, "big")
    (tmp_path / FILE_NAME).write_bytes(data)

    with pytest.raises(CorruptionError, match=f"the block at {len(MAGIC)} is damaged"):
        opened(tmp_path)
    assert (tmp_path / FILE_NAME).read_bytes() == data


def test_a_torn_end_of_many_entries_is_cut_off(tmp_path: Path) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"first"))
    whole = (tmp_path / FILE_NAME).read_bytes()
    do_now(opened(tmp_path).begin_keep({(TOPIC, number): bytes([number]) * number for number in range(1, 200)}))
    torn = bytearray((tmp_path / FILE_NAME).read_bytes())
    for hole in range(len(whole), len(torn), 512):  # pages of it were not written
        damaged = torn.copy()
        damaged[hole : hole + 512] = bytes(len(damaged[hole : hole + 512]))
        (tmp_path / FILE_NAME).write_bytes(damaged)

        assert opened(tmp_path).state_of(TOPIC, 0) == b"first"
        assert (tmp_path / FILE_NAME).read_bytes() == whole


def test_a_file_that_is_none_of_these_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"odradek partition votes 2\n")

    with pytest.raises(CorruptionError, match="no file of votes that this release knows"):
        opened(tmp_path)


def test_a_file_of_which_most_is_of_no_use_is_written_anew(tmp_path: Path) -> None:
    log = opened(tmp_path)
    keep(log, (OTHER, 7, b"stays"), (OTHER, 8, b"goes"))
    keep(log, (OTHER, 8, None))
    sizes = []
    for number in range(200):
        keep(log, (TOPIC, 0, b"%04d" % number + bytes(1000)))
        sizes.append((tmp_path / FILE_NAME).stat().st_size)
    again = opened(tmp_path)

    assert max(sizes) < REWRITE_BYTES_MIN + 2000
    assert again.state_of(TOPIC, 0) == b"0199" + bytes(1000)
    assert (again.state_of(OTHER, 7), again.state_of(OTHER, 8)) == (b"stays", None)


class FullDisk(OsFiles):
    """No write gets anywhere while it is full, or not far."""

    def __init__(self, taken_bytes: int = 0) -> None:
        super().__init__()
        self.is_full = False
        write = self.pwritev

        def pwritev(fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
            if self.is_full:
                write(fd, [memoryview(buffers[0])[:taken_bytes]], position)
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(fd, buffers, position)

        self.pwritev = pwritev


class FailingSync(OsFiles):
    """What is written may be on the disk, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.is_failing = False
        fsync = self.fsync

        def failing(fd: int, /) -> None:
            if self.is_failing:
                raise OSError(errno.EIO, "Input/output error")
            fsync(fd)

        self.fsync = failing


class CountedFiles(OsFiles):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written_bytes: list[int] = []
        write = self.pwritev

        def pwritev(fd: int, buffers: Sequence[Buffer], position: int, /) -> int:
            self.written_bytes.append(sum(map(len, buffers)))
            return write(fd, buffers, position)

        self.pwritev = pwritev


@pytest.mark.parametrize("taken_bytes", [0, 10])
def test_a_disk_that_was_full_keeps_votes_again_when_it_has_room(tmp_path: Path, taken_bytes: int) -> None:
    files = FullDisk(taken_bytes)
    log = opened(tmp_path, files=files)
    keep(log, (TOPIC, 0, b"first"), (TOPIC, 1, b"another"))
    files.is_full = True
    for _ in range(2):
        with pytest.raises(DiskError, match=f"{FILE_NAME}.*disk is full") as refused:
            keep(log, (TOPIC, 0, b"refused, and rather long"))
        assert refused.value.is_disk_full
    assert (log.state_of(TOPIC, 0), opened(tmp_path).state_of(TOPIC, 0)) == (b"first", b"first")

    files.is_full = False
    keep(log, (TOPIC, 0, b"2nd"))
    keep(log, (TOPIC, 1, None))
    again = opened(tmp_path)

    assert [again.state_of(TOPIC, number) for number in (0, 1)] == [b"2nd", None]


def test_what_was_written_and_perhaps_not_forced_is_written_anew(tmp_path: Path) -> None:
    files = FailingSync()
    log = opened(tmp_path, files=files)
    keep(log, (TOPIC, 0, b"first"))
    before = (tmp_path / FILE_NAME).stat().st_ino
    files.is_failing = True
    with pytest.raises(DiskError, match=FILE_NAME):
        keep(log, (TOPIC, 0, b"second"))
    files.is_failing = False
    keep(log, (TOPIC, 1, b"another"))
    again = opened(tmp_path)

    assert [again.state_of(TOPIC, number) for number in (0, 1)] == [b"first", b"another"]
    assert (tmp_path / FILE_NAME).stat().st_ino != before


def test_what_is_kept_costs_what_is_new_and_not_what_was_there(tmp_path: Path) -> None:
    files = CountedFiles()
    log = opened(tmp_path, files=files)
    keep(log, *((TOPIC, number, bytes([1]) * 150) for number in range(2000)))
    files.written_bytes.clear()
    for number in range(500):
        keep(log, (TOPIC, number, bytes([2]) * 150))

    assert max(files.written_bytes) < 250
    assert opened(tmp_path).state_of(TOPIC, 499) == bytes([2]) * 150


def test_a_disk_that_cannot_be_read_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()

    with pytest.raises(StorageError, match=FILE_NAME):
        opened(tmp_path)


def test_each_log_directory_has_its_own(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for directory in (one, other):
        directory.mkdir()
    logs = VoteLogs(OsFiles(), BOOT)
    do_now(logs.of(str(one)).begin_keep({(TOPIC, 0): b"one"}))
    do_now(logs.of(str(other)).begin_keep({(TOPIC, 0): b"other"}))

    assert logs.of(str(one)) is logs.of(str(one))
    assert [opened(each).state_of(TOPIC, 0) for each in (one, other)] == [b"one", b"other"]
    assert repr(logs.of(str(one))).startswith(f"<VoteLog {one / FILE_NAME}: 1 partitions, ")


@pytest.mark.parametrize(("now_in", "is_same"), [(BOOT, True), (OTHER, False)])
def test_what_is_kept_is_known_by_its_boot(tmp_path: Path, now_in: uuid.UUID, *, is_same: bool) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"vote"))

    assert VoteLogs(OsFiles(), now_in).is_of_this_boot(kept_in(tmp_path)) is is_same


def kept_in(directory: Path) -> KeptVote:
    """Return what is kept of the first partition."""
    kept = VoteLogs(OsFiles(), OTHER).of(str(directory)).kept(TOPIC, 0)
    assert kept is not None
    return kept


def ended(directory: Path, boot_id: uuid.UUID, files: Files | None = None) -> VoteLogs:
    """Have voters of a directory begin, keep nothing, and end in good order."""
    logs = VoteLogs(files or OsFiles(), boot_id)
    logs.begin(str(directory))
    logs.of(str(directory))
    logs.end({})
    return logs


def test_an_end_in_good_order_is_told_to_one_start(tmp_path: Path) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"vote"))
    ended(tmp_path, BOOT)
    told = []
    for _ in range(2):
        logs = VoteLogs(OsFiles(), OTHER)
        for _again in range(2):
            logs.begin(str(tmp_path))
            told.append(logs.has_ended_well(str(tmp_path), kept_in(tmp_path)))

    assert told == [True, True, False, False]


def test_an_end_in_another_boot_says_nothing_of_who_has_kept_nothing_in_it(tmp_path: Path) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"vote"))
    ended(tmp_path, OTHER)
    logs = VoteLogs(OsFiles(), OTHER)
    logs.begin(str(tmp_path))

    assert not logs.has_ended_well(str(tmp_path), kept_in(tmp_path))


def test_what_was_to_be_kept_later_is_at_the_end(tmp_path: Path) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"vote"))
    logs = VoteLogs(OsFiles(), OTHER)
    logs.begin(str(tmp_path))
    logs.of(str(tmp_path))
    logs.end({str(tmp_path): {(TOPIC, 0): b"vote"}})
    again = VoteLogs(OsFiles(), uuid.UUID(int=3))
    again.begin(str(tmp_path))

    assert kept_in(tmp_path) == KeptVote(b"vote", OTHER)
    assert again.has_ended_well(str(tmp_path), kept_in(tmp_path))


def test_where_nobody_votes_nothing_is_left(tmp_path: Path) -> None:
    logs = VoteLogs(OsFiles(), BOOT)
    logs.begin(str(tmp_path))
    logs.end({})

    assert list(tmp_path.iterdir()) == []


def test_an_end_that_the_disk_refuses_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"vote"))
    files = FullDisk()
    files.is_full = True
    ended(tmp_path, BOOT, files)
    logs = VoteLogs(OsFiles(), OTHER)
    logs.begin(str(tmp_path))

    assert not logs.has_ended_well(str(tmp_path), kept_in(tmp_path))
    assert "may not trust the end of their logs" in caplog.text


@pytest.mark.parametrize("mark", [b"", b"no id", bytes(15)])
def test_a_mark_that_cannot_be_is_none(tmp_path: Path, mark: bytes) -> None:
    keep(opened(tmp_path), (TOPIC, 0, b"vote"))
    (tmp_path / MARK_NAME).write_bytes(mark)
    logs = VoteLogs(OsFiles(), OTHER)
    logs.begin(str(tmp_path))

    assert not logs.has_ended_well(str(tmp_path), kept_in(tmp_path))
    assert not (tmp_path / MARK_NAME).exists()


def test_a_mark_that_cannot_be_taken_away_keeps_logs_closed(tmp_path: Path) -> None:
    (tmp_path / MARK_NAME).mkdir()

    with pytest.raises(StorageError, match=MARK_NAME):
        VoteLogs(OsFiles(), BOOT).begin(str(tmp_path))


@pytest.mark.parametrize("loss", PowerLoss)
def test_a_mark_that_was_taken_does_not_come_back_with_the_power(tmp_path: Path, loss: PowerLoss) -> None:
    disk, left = tmp_path / "disk", tmp_path / "left"
    disk.mkdir()
    left.mkdir()
    files = FaultyFiles(disk)
    keep(opened(disk, files=files), (TOPIC, 0, b"vote"))
    ended(disk, BOOT, files)
    VoteLogs(files, OTHER).begin(str(disk))
    files.after_power_loss(left, loss, random.Random(1))
    logs = VoteLogs(OsFiles(), OTHER)
    logs.begin(str(left))

    assert not logs.has_ended_well(str(left), kept_in(left))


KEYS = st.tuples(st.sampled_from([TOPIC, OTHER]), st.integers(0, 3))
KEPT = st.lists(st.dictionaries(KEYS, st.none() | st.binary(min_size=1, max_size=20), min_size=1), max_size=8)


@given(KEPT)
def test_the_next_life_finds_what_the_last_one_had(
    tmp_path_factory: pytest.TempPathFactory, kept: list[dict[tuple[uuid.UUID, int], bytes | None]]
) -> None:
    directory = tmp_path_factory.mktemp("votes")
    log = opened(directory)
    expected: dict[tuple[uuid.UUID, int], bytes | None] = {}
    for states in kept:
        do_now(log.begin_keep(states))
        expected.update(states)
    again = opened(directory)

    assert {key: again.state_of(*key) for key in expected} == expected
