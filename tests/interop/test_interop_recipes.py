"""The recipes of the how-to, each run as a project of somebody else's, with the plugins of pytest that it names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .clients import import_or_skip

pytestmark = pytest.mark.interop

RECIPES = Path(__file__).parents[2] / "examples" / "testing"
NEEDS = {
    "test_with_anyio.py": ["anyio"],
    "test_with_fastapi.py": ["aiokafka", "fastapi", "httpx"],
    "test_with_pytest_asyncio.py": ["aiokafka", "pytest_asyncio"],
}


def run_recipes(temporary: Path, *what: str) -> str:
    """Run pytest as it is run beside the recipes; return what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={temporary}", *what]
    done = subprocess.run(command, cwd=RECIPES, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_recipe_is_run() -> None:
    assert {path.name for path in RECIPES.glob("test_*.py")} == NEEDS.keys()


@pytest.mark.parametrize("recipe", NEEDS)
def test_a_recipe_works(tmp_path: Path, recipe: str) -> None:
    for module in NEEDS[recipe]:
        import_or_skip(module)

    assert " passed" in run_recipes(tmp_path / "temporary", recipe)


def test_workers_of_xdist_have_a_broker_each(tmp_path: Path) -> None:
    for module in {module for needs in NEEDS.values() for module in needs}:
        import_or_skip(module)

    assert "5 passed" in run_recipes(tmp_path / "temporary", "-n", "2")
