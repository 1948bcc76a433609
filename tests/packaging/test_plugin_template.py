"""A stranger's plugin: built, installed and tested with pip alone, against our wheel."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .building import ROOT, Environment

TEMPLATE = ROOT / "examples/plugin_template"


@pytest.fixture(scope="module")
def project(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the template, installed."""
    project = tmp_path_factory.mktemp("stranger") / "project"
    shutil.copytree(TEMPLATE, project, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    environment.install(str(project))
    return project


def test_the_templates_own_tests_pass(environment: Environment, project: Path) -> None:
    output = environment.run("python", "-m", "pytest", "-p", "no:cacheprovider", str(project))

    assert " passed" in output
    assert "skipped" not in output


def test_the_plugin_is_listed(environment: Environment, project: Path) -> None:
    assert project.exists()
    assert "template" in environment.run("odradek", "plugins", "list")
