"""The fixtures in a pytest run of somebody else's: found without a word, once, and at no cost to who wants none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from odradek.testing.running_broker import RunningBroker

PLUGIN = "odradek.testing.pytest_plugin"
WITH_A_BROKER = """
def test_there_is_a_broker(odradek_broker, fresh_odradek_broker):
    assert odradek_broker.port != fresh_odradek_broker.port
"""
WITH_VIRTUAL_TIME = """
import pytest

@pytest.fixture(scope="session")
def odradek_virtual_time():
    return True

def test_time_passes(odradek_broker, fresh_odradek_broker):
    for broker in (odradek_broker, fresh_odradek_broker):
        before_ms = broker.now_ms()
        broker.advance("1d")
        assert broker.now_ms() - before_ms >= 86_400_000
"""
WITHOUT_A_BROKER = """
import sys

def test_nothing_of_a_broker_is_imported():
    ours = {name for name in sys.modules if name.split(".")[0] in ("odradek", "trio", "attrs", "attr")}
    assert ours <= {"odradek", "odradek.kernel", "odradek.testing", "odradek.testing.pytest_plugin"}
"""


def run_pytest(folder: Path, test: str, *options: str, conftest: str = "") -> subprocess.CompletedProcess[str]:
    """Run a test of somebody else's, where a warning is an error."""
    (folder / "test_theirs.py").write_text(test)
    (folder / "conftest.py").write_text(conftest)
    others = [
        word for name in ("anyio", "asyncio", "cacheprovider", "hypothesispytest") for word in ("-p", f"no:{name}")
    ]
    own = [f"--rootdir={folder}", f"--basetemp={folder / 'temporary'}"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *others, *own, "-W", "error", *options, "test_theirs.py"],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("options", "conftest"),
    [
        pytest.param([], "", id="by itself"),
        pytest.param([], f'pytest_plugins = ["{PLUGIN}"]', id="named in conftest.py, too"),
        pytest.param(["-p", PLUGIN], "", id="named by -p, too"),
    ],
)
def test_the_fixtures_are_there_once(tmp_path: Path, options: list[str], conftest: str) -> None:
    done = run_pytest(tmp_path, WITH_A_BROKER, *options, conftest=conftest)

    assert done.returncode == 0, done.stdout + done.stderr
    listed = run_pytest(tmp_path, WITH_A_BROKER, "--fixtures", *options, conftest=conftest).stdout
    assert listed.count("\nodradek_broker ") == 1


def test_who_starts_no_broker_imports_nothing_of_one(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, WITHOUT_A_BROKER)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_time_of_brokers_is_virtual_where_a_module_wants_it(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, WITH_VIRTUAL_TIME)

    assert done.returncode == 0, done.stdout + done.stderr


def test_it_can_be_left_out(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, WITH_A_BROKER, "-p", f"no:{PLUGIN}")

    assert "fixture 'odradek_broker' not found" in done.stdout


def test_the_broker_with_tls_has_an_address_for_either(odradek_tls_broker: RunningBroker) -> None:
    assert odradek_tls_broker.bootstrap == odradek_tls_broker.bootstrap_of("PLAINTEXT")
    assert odradek_tls_broker.bootstrap_of("SSL").startswith("localhost:")
