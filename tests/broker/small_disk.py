"""A disk that is really small: a tmpfs that only programs in a namespace of their own see, without being root.

    with small_disk(folder, "2m") as disk:
        broker_process(None, ..., within=disk.command)   # sees the disk at `folder`
        disk.seen / "file"                                 # what the test sees there
        disk.grow("64m")

The disk lives as long as the program that holds the namespace, whoever is started in it and killed.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

# A remount names the source, too: else `mount` repeats the options that it finds, and a user's id means nothing inside.
_HOLD: Final = """\
mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted || exit 1
while read size; do mount -o "remount,size=$size" tmpfs "$1" && echo grown || exit 1; done
"""


class NoSmallDiskError(Exception):
    """Such a disk cannot be had here: another system, a missing program, or the system forbids it."""


@attrs.frozen
class SmallDisk:
    """A disk of few bytes.

    Attributes:
        seen: Where the test sees what the programs of the namespace have at the folder.
        command: What starts a program that sees the disk, before the program's own words.
    """

    seen: Path
    command: tuple[str, ...]
    _holder: subprocess.Popen[str] = attrs.field(repr=False)

    def grow(self, size: str) -> None:
        """Give the disk another size, as `mount` writes it."""
        assert self._holder.stdin is not None
        self._holder.stdin.write(f"{size}\n")
        self._holder.stdin.flush()
        assert self._answer() == "grown"

    def _answer(self) -> str:
        assert self._holder.stdout is not None
        return self._holder.stdout.readline().strip()


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """Put a small disk at an empty folder, for programs that are started with its `command`.

    Raises:
        NoSmallDiskError: The machine cannot.
    """
    if not all(map(shutil.which, ("unshare", "nsenter", "mount"))):
        raise NoSmallDiskError("there is no unshare, nsenter or mount")
    holder = subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _HOLD, "sh", str(folder), size],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:  # closes its pipes, upon which it ends, and with it the disk
        namespace = ("nsenter", f"--target={holder.pid}", "--user", "--mount", "--preserve-credentials", "--")
        disk = SmallDisk(Path(f"/proc/{holder.pid}/root") / folder.relative_to("/"), namespace, holder)
        if disk._answer() != "mounted":
            assert holder.stderr is not None
            raise NoSmallDiskError(f"no disk can be mounted in a namespace: {holder.stderr.read().strip()}")
        if subprocess.run([*namespace, "true"], check=False).returncode:
            raise NoSmallDiskError("a namespace cannot be entered")
        yield disk


@contextlib.contextmanager
def small_disk_or_skip(folder: Path, size: str) -> Iterator[SmallDisk]:
    """Mount one on a new folder; skip the test where the machine cannot."""
    folder.mkdir()
    try:
        with small_disk(folder, size) as disk:
            yield disk
    except NoSmallDiskError as error:
        pytest.skip(f"a full disk cannot be had on this machine: {error}")
