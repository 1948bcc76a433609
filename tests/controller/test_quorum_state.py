"""The file of what an election must never forget: replaced as a whole, durable before anything follows, or refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from odradek.kernel.contracts.disk_work import do_now
from odradek.kernel.controller.quorum_state import QuorumState
from odradek.kernel.errors import StorageError
from odradek.kernel.machine.files import OsFiles
from odradek.testing.faults import FaultyFiles, PowerLoss


def test_where_nothing_was_kept_there_is_nothing(tmp_path: Path) -> None:
    assert QuorumState(tmp_path, OsFiles()).read() is None


def test_what_was_kept_last_is_found_by_the_next_life(tmp_path: Path) -> None:
    state = QuorumState(tmp_path, OsFiles())
    for kept in (b"a longer one", b"newest"):
        do_now(state.begin_keep(kept))

    assert QuorumState(tmp_path, OsFiles()).read() == b"newest"
    assert (str(state), [path.name for path in tmp_path.iterdir()]) == (
        str(tmp_path / "quorum-state"),
        ["quorum-state"],
    )


def test_what_was_kept_survives_the_loss_of_power(tmp_path: Path) -> None:
    disk, left = tmp_path / "disk", tmp_path / "left"
    disk.mkdir()
    left.mkdir()
    files = FaultyFiles(disk)
    do_now(QuorumState(disk, files).begin_keep(b"voted"))
    files.after_power_loss(left, PowerLoss.LOST, random.Random(1))

    assert QuorumState(left, OsFiles()).read() == b"voted"


def test_without_a_disk_it_is_kept_in_memory() -> None:
    state = QuorumState(None, OsFiles())
    before = state.read()
    do_now(state.begin_keep(b"voted"))

    assert (before, state.read(), str(state), repr(state)) == (None, b"voted", "the quorum-state", "QuorumState(None)")


def test_a_disk_that_fails_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "quorum-state").mkdir()
    state = QuorumState(tmp_path, OsFiles())

    with pytest.raises(StorageError, match="quorum-state"):
        do_now(state.begin_keep(b"voted"))
    with pytest.raises(StorageError, match="quorum-state"):
        state.read()
