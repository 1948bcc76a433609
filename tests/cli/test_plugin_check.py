"""`odradek plugins check` of stages that are right: settings that use one are found, or it is said that none were."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = '''\
"""A stage of a test."""

from odradek.kernel.api import ConfigKey, ConfigType, OneOf, Part, Scope, hookimpl

odradek_plugin_api = 1
MODE = "odradek.checked.mode"


class Stage:
    """Lets every batch pass."""

    def accept(self, batch):
        """Return it."""
        return batch


def make_stage(partition, settings):
    """Make the stage."""
    mode = settings[MODE]
    return {made}


@hookimpl
def odradek_config_keys():
    """Offer the key."""
    choices = OneOf(("off", "upper")) if {is_checked} else None
    return [
        ConfigKey(MODE, ConfigType.STRING, "off", validator=choices, scope=Scope.TOPIC, part=Part.PLUGINS, doc="d.")
    ]


@hookimpl
def odradek_append_stages():
    """Offer the stage."""
    return {offered}
'''
STAGE = '{"checked": make_stage}'
NOT_FOUND = "checked: append stage checked: no settings were found that use it, so its own tests have to try it"


def check(tmp_path: Path, made: str, *, is_checked: bool, offered: str = STAGE) -> subprocess.CompletedProcess[str]:
    text = PLUGIN
    for name, value in (("made", made), ("is_checked", is_checked), ("offered", offered)):
        text = text.replace(f"{{{name}}}", str(value))
    (tmp_path / "checked.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "odradek", "plugins", "check", "checked"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("made", ['Stage() if mode == "upper" else None', '{"off": None, "upper": Stage()}[mode]'])
def test_settings_that_use_a_stage_are_found_among_those_that_its_keys_take(tmp_path: Path, made: str) -> None:
    done = check(tmp_path, made, is_checked=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "checked: quick part of its kit: 6 passed" in done.stdout
    assert "no settings" not in done.stdout


@pytest.mark.parametrize("made", ['Stage() if mode == "upper" else None', '{"off": None, "upper": Stage()}[mode]'])
def test_a_stage_that_no_settings_were_found_for_is_told_and_no_fault_of_its_own(tmp_path: Path, made: str) -> None:
    done = check(tmp_path, made, is_checked=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert NOT_FOUND in done.stdout
    assert "checked: quick part of its kit: 1 passed, 5 skipped" in done.stdout


def test_a_stage_that_cannot_be_made_with_its_defaults_is_found(tmp_path: Path) -> None:
    done = check(tmp_path, '{"upper": Stage()}[mode.strip("f")]', is_checked=False)

    assert done.returncode == 1
    assert "does not keep what its kit asks: " in done.stderr


def test_a_plugin_that_offers_nothing_after_all_has_no_kit(tmp_path: Path) -> None:
    done = check(tmp_path, "None", is_checked=True, offered="{}")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "checked: no kit for what it offers" in done.stdout
