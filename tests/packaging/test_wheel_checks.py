"""What `tools.wheel_checks` lets pass, and what it refuses."""

from __future__ import annotations

import struct
import sys
import zipfile
from pathlib import Path

import pytest

from tools.wheel_checks import check_wheel, needs_on_windows, processor_of
from tools.wheels import main

SECTION_ADDRESS, SECTION_AT = 0x1000, 0x200


def pe_file(*needs: str, machine: int = 0x8664) -> bytes:
    """Return a library of Windows with one section that holds the names of what it needs (Microsoft's PE format)."""
    names, descriptors = bytearray(), bytearray()
    names_address = SECTION_ADDRESS + 20 * (len(needs) + 1)
    for need in needs:
        descriptors += struct.pack("<12xII", names_address + len(names), 0)
        names += need.encode() + b"\0"
    section = bytes(descriptors) + bytes(20) + bytes(names)
    options = struct.pack("<H110xII", 0x20B, 0, 0) + struct.pack("<II", SECTION_ADDRESS, len(section)) + bytes(112)
    header = struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, len(options), 0x2022)
    table = struct.pack("<8sIIII16x", b".rdata", len(section), SECTION_ADDRESS, len(section), SECTION_AT)
    head = struct.pack("<2s58xI", b"MZ", 0x40) + b"PE\0\0" + header + options + table
    return head.ljust(SECTION_AT, b"\0") + section


def elf_file(machine: int) -> bytes:
    return b"\x7fELF".ljust(18, b"\0") + struct.pack("<H", machine)


def mach_o_file(processor: int) -> bytes:
    return struct.pack("<II", 0xFEEDFACF, processor)


@pytest.mark.parametrize(
    ("library", "processor"),
    [
        (elf_file(62), "x86_64"),
        (elf_file(183), "aarch64"),
        (elf_file(8), "nothing known"),
        (mach_o_file(0x0100_0007), "x86_64"),
        (mach_o_file(0x0100_000C), "arm64"),
        (pe_file(), "amd64"),
        (pe_file(machine=0xAA64), "arm64"),
        (pe_file(machine=0x14C), "nothing known"),
        (b"nonsense", "nothing known"),
    ],
)
def test_a_library_says_which_processor_it_is_for(library: bytes, processor: str) -> None:
    assert processor_of(library) == processor


def test_this_pythons_own_program_is_for_this_machine() -> None:
    program = Path(sys.executable).read_bytes()

    assert processor_of(program) != "nothing known"
    assert list(needs_on_windows(program)) == []


def test_a_library_of_windows_says_what_it_needs() -> None:
    assert list(needs_on_windows(pe_file("python3.dll", "KERNEL32.dll"))) == ["python3.dll", "kernel32.dll"]


def wheel_of(folder: Path, platform: str, files: dict[str, bytes]) -> Path:
    wheel = folder / f"odradek-0.1.0-cp311-abi3-{platform}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return wheel


@pytest.mark.parametrize(
    ("platform", "files", "fault"),
    [
        ("win_amd64", {}, "not ..a', 'b'"),
        ("win_amd64", {"a.pyd": pe_file()}, "not ..a', 'b'"),
        ("win_amd64", {"a.pyd": pe_file(), "b.pyd": pe_file(), "a.lib": b""}, "a.lib"),
        ("win_amd64", {"a.pyd": pe_file(), "b.pyd": pe_file(machine=0xAA64)}, "b.pyd is for arm64"),
        ("win_amd64", {"a.pyd": pe_file("python311.dll"), "b.pyd": pe_file()}, "a.pyd needs .*python311.dll"),
        ("manylinux_2_17_aarch64", {"a.abi3.so": elf_file(183), "b.abi3.so": elf_file(62)}, "b.abi3.so is for x86_64"),
    ],
)
def test_a_wheel_that_is_not_what_its_name_says_is_refused(
    tmp_path: Path, platform: str, files: dict[str, bytes], fault: str
) -> None:
    with pytest.raises(SystemExit, match=fault):
        check_wheel(wheel_of(tmp_path, platform, files), {"a", "b"})


def test_nothing_is_built_beside_what_is_there_already(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odradek-0.0.9.tar.gz").touch()

    with pytest.raises(SystemExit, match="2"):
        main(["--out", str(tmp_path)])

    assert "odradek-0.0.9.tar.gz would be published" in capsys.readouterr().err
