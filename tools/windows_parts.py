"""What an extension for Windows is compiled and linked with where there is no Python for Windows.

The stable ABI needs two things of Windows' own: a `pyconfig.h`, and a library that says which names are found in
`python3.dll`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

_PYCONFIG: Final = """
#define MS_WINDOWS
#define MS_WIN32
#define MS_WIN64
#define Py_ENABLE_SHARED 1
#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_TIME_T 8
"""
"""What Python's headers ask of a 64-bit Windows; all others are the same on every system."""

_DECLARED: Final = re.compile(r"\bPyAPI_(FUNC|DATA)\([^)]*\)\s*(\w+)")
_RENAMED: Final = re.compile(r"^#\s*define\s+Py\w+\s+(_Py\w+_SizeT)$", re.MULTILINE)
"""By `PY_SSIZE_T_CLEAN`."""


def make_headers(folder: Path) -> Path:
    """Copy Python's headers, with the `pyconfig.h` of Windows; return their folder."""
    headers = folder / "include"
    shutil.copytree(sysconfig.get_path("include"), headers)
    (headers / "pyconfig.h").write_text(_PYCONFIG)
    return headers


def make_import_library(folder: Path, headers: Path, machine: str) -> Path:
    """Make a library that leads every name of Python's to `python3.dll`; return its file.

    That DLL has those of the stable ABI alone. Whether a wheel asks for others, its audit tells.

    Args:
        folder: Where it is made.
        headers: Python's, which declare the names.
        machine: What dlltool calls the processor: `i386:x86-64`, `arm64`.
    """
    text = "\n".join(path.read_text() for path in headers.glob("*.h"))
    declared = {f"{name} DATA" if kind == "DATA" else name for kind, name in _DECLARED.findall(text)}
    names = sorted(declared.union(_RENAMED.findall(text)))
    definition, library = folder / "python3.def", folder / "libpython3.a"
    definition.write_text("\n".join(("LIBRARY python3.dll", "EXPORTS", *names, "")))
    dlltool: list[str | Path] = [sys.executable, "-m", "ziglang", "dlltool", "-m", machine]
    subprocess.run([*dlltool, "-d", definition, "-l", library], check=True)
    return library
