"""A client that is not on a machine: told, with what to install; skipped for a person, failed where nobody looks."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import pytest

from .clients import CLIENTS, MissingClientError, import_or_skip, peers_command, skip_or_fail

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide programs, packages, the folder of peers and what was built before."""
    for name in ("PATH", "XDG_CACHE_HOME", "ODRADEK_PEERS"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)


@pytest.mark.usefixtures("bare_machine")
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_is_missing_says_what_it_needs(client: str) -> None:
    with pytest.raises(MissingClientError, match=r"pip install|apt-get install|Java 17|Node 20|Go 1"):
        CLIENTS[client].command()


@pytest.mark.usefixtures("bare_machine")
def test_peers_that_are_missing_say_which_variable_names_them() -> None:
    with pytest.raises(MissingClientError, match="ODRADEK_PEERS"):
        peers_command("run", "kafka")


def test_a_driver_that_was_built_before_needs_its_program_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingClientError, match="Node 20"):
        CLIENTS["kafkajs"].command()


@pytest.mark.parametrize(
    ("ci", "outcome"), [("true", pytest.fail.Exception), ("false", pytest.skip.Exception), ("", pytest.skip.Exception)]
)
def test_what_is_missing_is_skipped_and_fails_where_ci_is_true(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="kcat is not on this machine"):
        skip_or_fail("kcat is not on this machine")


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_package_that_is_missing_says_what_to_install(
    ci: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match=r"there_is_no_such_module.*; pip install --group interop"):
        import_or_skip("there_is_no_such_module")
