"""Brokers that begin beside each other may have a directory above theirs in common: whoever makes it, it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.kernel.machine.files import FileStat, OsFiles
from odradek.kernel.quorum.founding_directory import make_directory
from odradek.plugins.storage_segment.log_dir import LogDir


class Overtaken(OsFiles):
    """What is looked for and is not there is made by another process right after the look."""

    def stat(self, path: Path) -> FileStat:
        try:
            return super().stat(path)
        except FileNotFoundError:
            path.mkdir()
            raise


def test_a_directory_that_another_broker_makes_meanwhile_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "of all" / "1"
    make_directory(Overtaken(), path)
    assert path.is_dir()


def test_a_log_directory_that_another_broker_makes_meanwhile_is_taken(tmp_path: Path) -> None:
    directory = LogDir(Overtaken(), tmp_path / "of all" / "1")
    assert directory.take() is None
    directory.release()


def test_a_file_in_the_place_of_a_directory_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_directory(OsFiles(), tmp_path / "file" / "1")
