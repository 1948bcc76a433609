"""A copy of the checkout, a wheel of it, and an environment with nothing but that wheel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.rooms import LINKED

from .building import ROOT, Environment, build

CHECKOUT = (*LINKED, "src", "LICENSE", "NOTICE", "README.md", "pyproject.toml", "setup.py")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of what a wheel is built from, as git checks it out, links and all."""
    return copy_checkout(tmp_path / "checkout")


def copy_checkout(folder: Path) -> Path:
    folder.mkdir()
    for name in CHECKOUT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=LEFT_OUT)
        else:
            shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="package")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel of the checkout."""
    return build(copy_checkout(tmp_path_factory.mktemp("wheel") / "checkout"), "wheel")


@pytest.fixture(scope="package")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment with the wheel and what it needs for tests, installed by pip."""
    environment = Environment(tmp_path_factory.mktemp("user") / "venv")
    environment.install(f"odradek[testing] @ {wheel.as_uri()}")
    return environment
