"""Build all that is published: a source distribution, and wheels for Linux, macOS and Windows. `tox -e wheels`.

One machine does it, with zig as the compiler. Each wheel comes from the source distribution, has to have all that is
compiled, and may ask for nothing but Python's stable ABI. The one for this machine is tried on each Python from 3.11
on that is found. What is left to do by hand, the upload, is printed at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from packaging.tags import sys_tags

from .wheel_checks import check_release, check_wheel
from .windows_parts import make_headers, make_import_library

ROOT: Final = Path(__file__).parents[1]
EVERYWHERE: Final = {"_columns", "_kernel", "_runs", "_repeated"}
ON_LINUX: Final = EVERYWHERE | {"_pump"}
PYTHONS: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
TESTS: Final = tuple(f"tests/records/test_{name}.py" for name in ("column_twins", "follow_batches", "runs", "scan"))
"""What is compiled does what its twin in Python does."""

BUILD: Final = """
import os, sys, sysconfig
sysconfig.get_config_vars().update({"EXT_SUFFIX": os.environ["SUFFIX"]} if "SUFFIX" in os.environ else {})
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
        dlltool: What dlltool calls the processor; Windows has it.
    """

    platform: str
    zig: str
    host: str
    link: str
    parts: set[str]
    dlltool: str = ""


_LINUX: Final = "-rtlib=none"  # memory is copied by the C library, in half of the time that zig's own takes
_MAC: Final = "-undefined dynamic_lookup"  # Python's own names are found when a process loads it
_WINDOWS: Final = "-Wl,--out-implib,{folder}/none.lib"  # or it would be left beside the extension, in the wheel
TARGETS: Final = (
    Target("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17", "linux-x86_64", _LINUX, ON_LINUX),
    Target("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17", "linux-aarch64", _LINUX, ON_LINUX),
    Target("musllinux_1_2_x86_64", "x86_64-linux-musl", "linux-x86_64", _LINUX, ON_LINUX),
    Target("musllinux_1_2_aarch64", "aarch64-linux-musl", "linux-aarch64", _LINUX, ON_LINUX),
    Target("macosx_11_0_x86_64", "x86_64-macos.11.0", "macosx-11.0-x86_64", _MAC, EVERYWHERE),
    Target("macosx_11_0_arm64", "aarch64-macos.11.0", "macosx-11.0-arm64", _MAC, EVERYWHERE),
    Target("win_amd64", "x86_64-windows-gnu", "win-amd64", _WINDOWS, EVERYWHERE, "i386:x86-64"),
    Target("win_arm64", "aarch64-windows-gnu", "win-arm64", _WINDOWS, EVERYWHERE, "arm64"),
)
QUICK: Final = "macosx_11_0_arm64"
"""What `--quick` builds beside the wheel for this machine, so that it is known that cross-compiling works."""


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
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        (checkout,) = Path(folder).iterdir()
        wheel = build("wheel", checkout, out, f"--plat-name={target.platform}", **compiler(target, Path(folder)))
    check_wheel(wheel, target.parts)
    return wheel


def compiler(target: Target, folder: Path) -> dict[str, str]:
    """Return the variables by which setuptools compiles for a system; what that needs is put into `folder`."""
    zig = f"{sys.executable} -m ziglang cc -target {target.zig}"
    variables = {
        "CC": zig,
        "CFLAGS": "-O3 -g0",
        "LDSHARED": f"{zig} -shared -s {target.link.format(folder=folder)}",
        "_PYTHON_HOST_PLATFORM": target.host,
    }
    if target.dlltool:
        headers = make_headers(folder)
        variables["CFLAGS"] += f" -I{headers}"
        variables["LDSHARED"] += f" {make_import_library(folder, headers, target.dlltool)}"
        variables["SUFFIX"] = ".pyd"
    return variables


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


def is_for_this_machine(platform: str) -> bool:
    """Return whether pip installs wheels of a platform here."""
    return any(tag.platform == platform for tag in sys_tags())


def main(arguments: list[str] | None = None) -> None:
    """Build them all, try the one for this machine, check the release, and say how it is published."""
    parser = argparse.ArgumentParser(prog="python -m tools.wheels", description="Build what a release consists of.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="an empty folder for it (default: dist)")
    parser.add_argument("--quick", action="store_true", help=f"only wheels for this machine, tried once, and {QUICK}")
    options = parser.parse_args(arguments)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    if strays := [path.name for path in out.iterdir()]:
        parser.error(f"{out} is not empty: {', '.join(strays)} would be published, too")
    files = [build("sdist", ROOT, out)]
    for target in TARGETS:
        is_here = is_for_this_machine(target.platform)
        if options.quick and not is_here and target.platform != QUICK:
            continue
        wheel = build_wheel(target, files[0], out)
        files.append(wheel)
        print(f"{wheel}  {wheel.stat().st_size:,} bytes", flush=True)
        if is_here:
            for python in pythons()[: 1 if options.quick else None]:
                print(f"  {python}: {try_wheel(wheel, python)}", flush=True)
    version = check_release(files)
    print(f"odradek {version}: {len(files)} files, built and checked.")
    if not options.quick:
        print(f"To publish them:\n\n    {sys.executable} -m twine upload {out}/*")


if __name__ == "__main__":
    main()
