"""Builds what pyproject.toml cannot say: the optional compiled record kernel, and a checkout without symbolic links."""

import sysconfig
from pathlib import Path

from setuptools import Distribution, Extension, find_packages, setup

ROOT = Path(__file__).parent
HEADERS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "kernel/records").glob("*.h"))
HANDLERS = "odradek.kernel.dispatch.handlers"
HAS_EPOLL = sysconfig.get_platform().startswith("linux")  # the system that is built for
HAS_STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")
IMPORT_NAME = ROOT / "src" / "odradek"
LOST_LINKS = sorted(entry.name for entry in IMPORT_NAME.iterdir() if not entry.suffix and not entry.is_dir())


def extension(name: str, source: str, **named: list[str]) -> Extension:
    """Return a part that is left out where it cannot be compiled, and serves every Python from 3.11 on where it can."""
    macros: list[tuple[str, str | None]] = [("Py_LIMITED_API", "0x030B0000")] if HAS_STABLE_ABI else []
    return Extension(name, [source], optional=True, define_macros=macros, py_limited_api=HAS_STABLE_ABI, **named)


class CheckoutDistribution(Distribution):
    """Finds the rooms although `src/odradek/kernel` and its like are no folders.

    Git on Windows checks symbolic links out as text files that hold the link's target, unless it was allowed to make
    links. Then the packages are mapped to the rooms at the top of the checkout; with links nothing is changed. A
    source distribution has folders and no links.
    """

    def parse_config_files(self, *arguments: object, **options: object) -> None:
        """Read pyproject.toml, then map each room whose link is none."""
        super().parse_config_files(*arguments, **options)
        for room in LOST_LINKS:
            below = [f"{room}.{name}" for name in find_packages(str(ROOT / room))]
            self.packages = [*(self.packages or []), *(f"odradek.{name}" for name in (room, *below))]
            self.package_dir = {**(self.package_dir or {}), f"odradek.{room}": room}


setup(
    distclass=CheckoutDistribution,
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if HAS_STABLE_ABI else {},
    ext_modules=[
        # Without these, with a warning of the build, records are walked in Python,
        *(
            extension(f"odradek.kernel.records.{name}", f"kernel/records/{name}.c", depends=HEADERS)
            for name in ("_columns", "_kernel", "_runs")
        ),
        # a repeated Produce is recognised in Python,
        extension(f"{HANDLERS}._repeated", "kernel/dispatch/handlers/_repeated.c"),
        # and the reactor calls its sockets one by one.
        *([extension("odradek.kernel.network._pump", "kernel/network/_pump.c")] if HAS_EPOLL else []),
    ],
)
