"""Builds distributions, and runs programs in environments of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tools.wheels import BUILD

ROOT = Path(__file__).parents[2]
NOT_OPTIMIZED = {"CFLAGS": "-O0"}
"""For a wheel of which only the list of files is looked at: it is compiled in a third of the time."""
TIME_LIMIT_S = 300


def plain_environment() -> dict[str, str]:
    """Return this process's variables without those that would lead a child back to the checkout, or change it."""
    led_astray = ("PYTHON", "COV", "ODRADEK_", "VIRTUAL_ENV", "PYTEST")
    return {key: value for key, value in os.environ.items() if not key.startswith(led_astray)}


def run(command: list[str], folder: Path, **variables: str) -> str:
    """Run a program and return its standard output; its whole output is the message when it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**plain_environment(), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def build(checkout: Path, kind: str, **variables: str) -> Path:
    """Build a distribution (`wheel` or `sdist`) by the backend that pyproject.toml names."""
    output = run([sys.executable, "-c", BUILD, "out", kind], checkout, **variables)
    return checkout / "out" / output.splitlines()[-1]


def files_of(distribution: Path) -> set[str]:
    """Return the files in a wheel, or in a source distribution without its own folder's name."""
    if distribution.suffix == ".whl":
        with zipfile.ZipFile(distribution) as archive:
            return set(archive.namelist())
    with tarfile.open(distribution) as archive:
        return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}


class Environment:
    """A virtual environment of somebody else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        run([sys.executable, "-m", "venv", "--without-pip", str(folder)], folder.parent)

    def install(self, *what: str) -> None:
        """Install with the pip of this process's environment: a pip of its own would cost more than all the rest."""
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.folder / "bin/python")]
        run([*pip, "install", "--quiet", "--no-compile", *what], self.folder)

    def uninstall(self, what: str) -> None:
        """Take something out again."""
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(self.folder / "bin/python")]
        run([*pip, "uninstall", "--quiet", "--yes", what], self.folder)

    def run(self, program: str, *arguments: str) -> str:
        """Run a program of the environment, away from the checkout, and return its standard output."""
        return run([str(self.folder / "bin" / program), *arguments], self.folder)
