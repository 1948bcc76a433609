"""Without a compiler Odradek is slow; who asks for the version, or tries the demo, is told so."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from odradek import __version__
from odradek.cli.demo.stage import Stage
from odradek.cli.demo.story import tell
from odradek.kernel.machine.system.compiled_parts import PARTS, missing_parts, told

if TYPE_CHECKING:
    from odradek.cli.demo.broker_process import BrokerProcess

SETUP = Path(__file__).parents[2] / "setup.py"
ALL = "Not compiled: records, compaction, columns for Spark, repeated requests"


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in PARTS:
        monkeypatch.setitem(sys.modules, f"odradek.kernel.{module}", None)


def test_every_part_that_is_built_is_known() -> None:
    built = {path.stem for path in SETUP.parent.glob("kernel/**/_*.c")}

    assert all(name in SETUP.read_text() for name in built)
    assert {module.rpartition(".")[2] for module in PARTS} | {"_pump"} == built


def test_the_version_is_all_that_is_said_where_everything_is_compiled(
    command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.kernel.machine.system.compiled_parts.missing_parts", list)

    assert command.run("--version").out == f"odradek {__version__}\n"


@pytest.mark.usefixtures("no_compiler")
def test_the_version_tells_of_slow_twins_and_what_to_do(command: Any) -> None:
    done = command.run("--version")

    assert done.status == 0
    first, second = done.out.splitlines()
    assert first == f"odradek {__version__}"
    assert second.startswith(ALL)
    assert "pip install --force-reinstall" in second


def test_one_missing_part_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    present = set(missing_parts())
    monkeypatch.setitem(sys.modules, "odradek.kernel.records._runs", None)

    assert set(missing_parts()) == present | {"compaction"}
    assert told([]) == ""


class _StoppedBroker:
    def stop(self) -> None:
        """It never ran."""


@pytest.mark.usefixtures("no_compiler")
def test_the_demo_begins_with_it() -> None:
    printed = io.StringIO()
    tell(Stage(printed), cast("BrokerProcess", _StoppedBroker()), [], opening="Once", what_now="Go on")

    assert ALL in " ".join(printed.getvalue().split())
