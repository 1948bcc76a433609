"""What a release's files have to be before anybody may publish them."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.metadata import Metadata
from packaging.utils import parse_sdist_filename, parse_wheel_filename

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMPILED: Final = (".so", ".pyd")
BESIDE: Final = (".a", ".c", ".def", ".h", ".lib", ".o", ".pdb")
"""What compilers read and leave, which belongs into no wheel."""

_PROCESSORS: Final = {
    (b"\x7fELF", 62): "x86_64",
    (b"\x7fELF", 183): "aarch64",
    (b"\xcf\xfa\xed\xfe", 0x0100_0007): "x86_64",
    (b"\xcf\xfa\xed\xfe", 0x0100_000C): "arm64",
    (b"MZ\0\0", 0x8664): "amd64",
    (b"MZ\0\0", 0xAA64): "arm64",
}
"""(how a system's libraries begin, its number of the processor): how a wheel's tag ends that may hold them."""

_OF_WINDOWS: Final = ("python3.dll", "kernel32.dll", "api-ms-win-crt-")
"""What an extension for Windows may need: the stable ABI, and what each Windows from 10 on has."""


def check_wheel(wheel: Path, parts: Iterable[str]) -> None:
    """Check that a wheel has all that is compiled, for the processor that its name says, and needs nothing unusual.

    Raises:
        SystemExit: It is not so.
    """
    with zipfile.ZipFile(wheel) as archive:
        compiled = {name: archive.read(name) for name in archive.namelist() if name.endswith(COMPILED)}
        strays = [name for name in archive.namelist() if name.endswith(BESIDE)]
    found = sorted(Path(name).name.partition(".")[0] for name in compiled)
    if found != sorted(parts):  # a part that does not compile is left out without an error
        raise SystemExit(f"{wheel.name} has {found}, not {sorted(parts)}")
    if strays:
        raise SystemExit(f"{wheel.name} has {strays}")
    (platform,) = {tag.platform for tag in parse_wheel_filename(wheel.name)[3]}
    for name, data in compiled.items():
        if not platform.endswith(processor_of(data)):
            raise SystemExit(f"{wheel.name}: {name} is for {processor_of(data)}")
        if unusual := [need for need in needs_on_windows(data) if not need.startswith(_OF_WINDOWS)]:
            raise SystemExit(f"{wheel.name}: {name} needs {unusual}")
    _run("abi3audit", "--strict", wheel, fault=f"{wheel.name} asks for more than the stable ABI")


def processor_of(library: bytes) -> str:
    """Return which processor an ELF, Mach-O or PE file is for; `nothing known` for all others."""
    magic = library[:4]
    if magic == b"\x7fELF":
        (number,) = struct.unpack_from("<H", library, 18)
    elif magic[:2] == b"MZ":
        magic = b"MZ\0\0"
        (number,) = struct.unpack_from("<H", library, _pe_header(library) + 4)
    else:
        (number,) = struct.unpack_from("<I", library, 4)
    return _PROCESSORS.get((magic, number), "nothing known")


def needs_on_windows(library: bytes) -> Iterator[str]:
    """Yield the names of the libraries that a PE file needs, in small letters; none for other files."""
    if library[:2] != b"MZ":
        return
    header = _pe_header(library)
    sections_count, options_size = struct.unpack_from("<H12xH", library, header + 6)
    options = header + 24
    sections = [
        struct.unpack_from("<III", library, options + options_size + 40 * number + 12)
        for number in range(sections_count)
    ]

    def place(address: int) -> int:
        for begin, size, at in sections:
            if begin <= address < begin + size:
                return int(address - begin + at)
        raise SystemExit(f"no section holds {address:#x}")

    (imports,) = struct.unpack_from("<I", library, options + 120)  # the second of the directories of PE32+
    at = place(imports)
    while name := struct.unpack_from("<12xI", library, at)[0]:
        begin = place(name)
        yield library[begin : library.index(b"\0", begin)].decode("ascii").lower()
        at += 20


def _pe_header(library: bytes) -> int:
    return int.from_bytes(library[0x3C:0x40], "little")


def check_release(files: Iterable[Path]) -> str:
    """Check that files make one release: a source distribution and wheels of one version that an index will take.

    Returns:
        The version.

    Raises:
        SystemExit: It is not so.
    """
    files = sorted(files)
    sources = [file for file in files if file.name.endswith(".tar.gz")]
    wheels = [file for file in files if file.suffix == ".whl"]
    versions = {parse_sdist_filename(file.name)[1] for file in sources}
    versions |= {parse_wheel_filename(file.name)[1] for file in wheels}
    if len(sources) != 1 or not wheels or len(versions) != 1:
        raise SystemExit(f"not one release: {[file.name for file in files]}")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            Metadata.from_email(archive.read(name), validate=True)
    _run("twine", "check", "--strict", *files, fault="an index would refuse it")
    (version,) = versions
    return str(version)


def _run(module: str, *arguments: str | Path, fault: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout}\n{fault}")
