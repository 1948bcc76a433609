"""Standard streams that cannot be written, and commands that have them."""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FULL = Path("/dev/full")


def run_with(
    line: str, *, text: str = "", out: int = subprocess.PIPE, err: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run a command with these standard streams, buffered as they are for a person."""
    return subprocess.run(
        [sys.executable, "-m", "odradek", *shlex.split(line)],
        input=text,
        stdout=out,
        stderr=err,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        text=True,
        check=False,
    )


@contextmanager
def closed_pipe() -> Iterator[int]:
    """Open a pipe that nobody reads, for a while."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@contextmanager
def full_disk() -> Iterator[int]:
    """Open a device that is always full, for a while."""
    if not FULL.exists():
        pytest.skip("this system has no device that is always full")
    with FULL.open("wb") as full:
        yield full.fileno()
