"""Builds what pyproject.toml cannot say: the optional compiled record kernel, and a checkout without symbolic links."""

import sys
from pathlib import Path

from setuptools import Distribution, Extension, find_packages, setup

ROOMS = ("kernel", "plugins", "spark_plugin")
ROOT = Path(__file__).parent
HEADERS = ["kernel/records/_crc32c.h", "kernel/records/_walking.h"]
HANDLERS = "odradek.kernel.dispatch.handlers"
HAS_EPOLL = sys.platform == "linux"
IMPORT_NAME = ROOT / "src" / "odradek"


class CheckoutDistribution(Distribution):
    """Finds the rooms although `src/odradek/kernel` and its like are no folders.

    Git on Windows checks symbolic links out as text files that hold the link's target, unless it was allowed to make
    links. Then the packages are mapped to the rooms at the top of the checkout; with links nothing is changed. A
    source distribution has folders and no links.
    """

    def parse_config_files(self, *arguments: object, **options: object) -> None:
        """Read pyproject.toml, then map each room whose link is none."""
        super().parse_config_files(*arguments, **options)
        for room in ROOMS:
            if not (IMPORT_NAME / room).is_dir():
                below = [f"{room}.{name}" for name in find_packages(str(ROOT / room))]
                self.packages = [*(self.packages or []), *(f"odradek.{name}" for name in (room, *below))]
                self.package_dir = {**(self.package_dir or {}), f"odradek.{room}": room}


setup(
    distclass=CheckoutDistribution,
    ext_modules=[
        # Optional: where it cannot be compiled, a warning is printed and records are walked in Python.
        *(
            Extension(f"odradek.kernel.records.{name}", [f"kernel/records/{name}.c"], depends=HEADERS, optional=True)
            for name in ("_columns", "_kernel", "_runs")
        ),
        # Likewise: without it a repeated Produce is recognised in Python.
        Extension(f"{HANDLERS}._repeated", ["kernel/dispatch/handlers/_repeated.c"], optional=True),
        # Likewise: without it the reactor calls its sockets one by one.
        *([Extension("odradek.kernel.network._pump", ["kernel/network/_pump.c"], optional=True)] if HAS_EPOLL else []),
    ],
)
