"""What a wheel and a source distribution hold, however the checkout came about."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

from tools.rooms import FOLDERS, LINKED, path_of
from tools.wheels import ON_LINUX

from .building import NOT_OPTIMIZED, ROOT, build, files_of, run

LICENSES = {"LICENSE", "NOTICE"}


def modules() -> set[str]:
    """Return every module of the checkout, as a path below site-packages."""
    below = {
        f"{path_of(folder)}/{path.relative_to(ROOT / folder)}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py*")
    }
    top = {f"odradek/{path.name}" for path in (ROOT / "src/odradek").glob("*.py*")}
    return {name for name in below | top if "__pycache__" not in name}


def packed(wheel: Path) -> set[str]:
    """Return what a wheel installs as `odradek`, but for what was compiled."""
    return {name for name in files_of(wheel) if name.startswith("odradek/") and not name.endswith(".so")}


def compiled(wheel: Path) -> list[str]:
    return [name for name in files_of(wheel) if name.endswith(".so")]


def test_a_wheel_holds_every_module_the_marker_of_types_and_nothing_else(wheel: Path) -> None:
    assert modules() | {"odradek/py.typed"} == packed(wheel)


def test_a_wheel_holds_the_module_that_spark_looks_for(wheel: Path) -> None:
    top = {name for name in files_of(wheel) if "/" not in name}

    assert top == {"pyspark_odradek.py"}


def test_a_wheel_holds_the_licenses_and_the_compiled_kernel(wheel: Path) -> None:
    licenses = {Path(name).name for name in files_of(wheel) if "/licenses/" in name}

    assert licenses == LICENSES
    assert {Path(name).name for name in compiled(wheel)} == {f"{part}.abi3.so" for part in ON_LINUX}
    assert "-cp311-abi3-" in wheel.name, "any Python from 3.11 on may install it"
    assert [name.partition(".")[0] for name in sorted(compiled(wheel))] == [
        "odradek/kernel/dispatch/handlers/_repeated",
        "odradek/kernel/network/_pump",
        "odradek/kernel/records/_columns",
        "odradek/kernel/records/_kernel",
        "odradek/kernel/records/_runs",
    ]


def test_a_source_distribution_builds_the_same_wheel(wheel: Path, checkout: Path, tmp_path: Path) -> None:
    source = build(checkout, "sdist")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("odradek-*")

    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "kernel").rglob("*.[ch]")}
    assert {"kernel/records/_columns.c", "kernel/records/_walking.h"} <= sources
    assert {*LICENSES, "README.md", *sources} <= files_of(source)
    assert files_of(wheel) == files_of(build(unpacked, "wheel", **NOT_OPTIMIZED))


def test_a_checkout_without_symbolic_links_builds_the_same_wheel(wheel: Path, checkout: Path) -> None:
    for room in LINKED:
        link = checkout / "src/odradek" / room
        target = link.readlink().as_posix()
        link.unlink()
        link.write_text(target)  # what git on Windows leaves where it may not make links

    assert files_of(wheel) == files_of(build(checkout, "wheel", **NOT_OPTIMIZED))


def test_a_wheel_is_built_without_a_compiler(checkout: Path) -> None:
    wheel = build(checkout, "wheel", CC="/there/is/no/compiler")

    assert compiled(wheel) == []
    assert modules() | {"odradek/py.typed"} == packed(wheel)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(checkout / "unpacked")
    said = run([sys.executable, "-m", "odradek", "--version"], checkout, PYTHONPATH=str(checkout / "unpacked"))
    assert "Not compiled: records, compaction, columns for Spark, repeated requests" in said
