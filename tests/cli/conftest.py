"""One broker for the tests of the command line, and a way to run commands as a person does."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from odradek.cli import main
from odradek.testing.running_broker import RunningBroker, running_broker


class Done(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Odradek:
    """Runs commands and catches what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], bootstrap: str = "") -> None:
        self._capsys = capsys
        self._bootstrap = bootstrap

    def run(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as end:  # argparse ends so
            status = int(end.code or 0)
        printed = self._capsys.readouterr()
        return Done(status, printed.out, printed.err)

    def __call__(self, *arguments: str) -> Done:
        """Run a command against the test's broker."""
        return self.run(*arguments, "-b", self._bootstrap)

    def ok(self, *arguments: str) -> Done:
        """Run a command that must succeed."""
        done = self(*arguments)
        assert done.status == 0, done.err
        return done


@pytest.fixture(scope="session")
def cli_broker() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture
def odradek(capsys: pytest.CaptureFixture[str], cli_broker: RunningBroker) -> Odradek:
    return Odradek(capsys, cli_broker.bootstrap)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Odradek:
    """Return a runner of commands that need no broker."""
    return Odradek(capsys)
