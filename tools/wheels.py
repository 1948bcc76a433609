"""Build the wheels of a release: for Linux and macOS, on one machine, with zig as the compiler. `tox -e wheels`.

Each comes from the source distribution, has to have all that is compiled, and may ask for nothing but Python's stable
ABI. The one for this machine is tried on each Python from 3.11 on that is found.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final, NamedTuple

from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename

ROOT: Final = Path(__file__).parents[1]
EVERYWHERE: Final = {"_columns", "_kernel", "_runs", "_repeated"}
ON_LINUX: Final = EVERYWHERE | {"_pump"}
PYTHONS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
TESTS: Final = tuple(f"tests/records/test_{name}.py" for name in ("column_twins", "follow_batches", "runs", "scan"))
"""What is compiled does what its twin in Python does."""

BUILD: Final = """
import sys
from setuptools import build_meta
out, kind, *options = sys.argv[1:]
print(getattr(build_meta, "build_" + kind)(out, config_settings={"--build-option": options}))
"""


class Target(NamedTuple):
    """A system that wheels are built for.

    Attributes:
        platform: The wheel's tag.
        zig: What zig calls the system.
        host: What Python calls it.
        link: What its linker has to be told.
        parts: Which extensions it has.
    """

    platform: str
    zig: str
    host: str
    link: str
    parts: set[str]


_LINUX: Final = "-rtlib=none"  # memory is copied by the C library, in half of the time that zig's own takes
_MAC: Final = "-undefined dynamic_lookup"  # Python's own names are found when a process loads it
TARGETS: Final = (
    Target("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17", "linux-x86_64", _LINUX, ON_LINUX),
    Target("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17", "linux-aarch64", _LINUX, ON_LINUX),
    Target("musllinux_1_2_x86_64", "x86_64-linux-musl", "linux-x86_64", _LINUX, ON_LINUX),
    Target("musllinux_1_2_aarch64", "aarch64-linux-musl", "linux-aarch64", _LINUX, ON_LINUX),
    Target("macosx_11_0_x86_64", "x86_64-macos.11.0", "macosx-11.0-x86_64", _MAC, EVERYWHERE),
    Target("macosx_11_0_arm64", "aarch64-macos.11.0", "macosx-11.0-arm64", _MAC, EVERYWHERE),
)


def run(command: list[str | Path], folder: Path, **variables: str) -> str:
    """Run a program and return what it prints.

    Raises:
        SystemExit: It failed.
    """
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{' '.join(map(str, command[:4]))} ... ended with {done.returncode}")
    return done.stdout


def build(kind: str, checkout: Path, out: Path, *options: str, **variables: str) -> Path:
    """Build a distribution (`sdist` or `wheel`) of a checkout and return its file."""
    printed = run([sys.executable, "-c", BUILD, out.absolute(), kind, *options], checkout, **variables)
    return out / printed.splitlines()[-1]


def build_wheel(target: Target, source: Path, out: Path) -> Path:
    """Build the wheel of a system from a source distribution.

    Raises:
        SystemExit: The build failed, or left out what did not compile, as builds do without an error.
    """
    zig = f"{sys.executable} -m ziglang cc -target {target.zig}"
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        (checkout,) = Path(folder).iterdir()
        wheel = build(
            "wheel",
            checkout,
            out,
            f"--plat-name={target.platform}",
            CC=zig,
            CFLAGS="-O3 -g0",
            LDSHARED=f"{zig} -shared -s {target.link}",
            _PYTHON_HOST_PLATFORM=target.host,
        )
    with zipfile.ZipFile(wheel) as archive:
        parts = {Path(name).name.removesuffix(".abi3.so") for name in archive.namelist() if name.endswith(".so")}
    if parts != target.parts:
        raise SystemExit(f"{wheel.name} has {sorted(parts)}, not {sorted(target.parts)}")
    return wheel


def try_wheel(wheel: Path, python: str) -> str:
    """Test what is compiled of a wheel in an environment of its own; return pytest's last line.

    Raises:
        SystemExit: A test failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        run([python, "-m", "venv", folder], ROOT)
        own = Path(folder) / "bin" / "python"
        run([own, "-m", "pip", "install", "--quiet", wheel.absolute(), "pytest", "hypothesis"], ROOT)
        run([own, "-c", "from odradek.kernel.records import _columns, _kernel, _runs"], ROOT)
        printed = run([own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], ROOT)
    return printed.splitlines()[-1]


def pythons() -> list[str]:
    """Return the Pythons of this machine that the wheels are for."""
    found = [name for name in PYTHONS if shutil.which(name)]
    return [name for name in found if not subprocess.run([name, "-c", ""], capture_output=True, check=False).returncode]


def main(arguments: list[str] | None = None) -> None:
    """Build them all, then try the one for this machine."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description="Build the wheels of a release.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the wheels (default: dist)")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    source = build("sdist", ROOT, out)
    here = set(sys_tags())
    for target in TARGETS:
        wheel = build_wheel(target, source, out)
        run([sys.executable, "-m", "abi3audit", "--strict", wheel], ROOT)
        print(f"{wheel}  {wheel.stat().st_size:,} bytes", flush=True)
        if here & parse_wheel_filename(wheel.name)[3]:
            for python in pythons():
                print(f"  {python}: {try_wheel(wheel, python)}", flush=True)


if __name__ == "__main__":
    main()
