"""Shell: a broker in a process of its own, with a folder and a port of its own; it can be killed and started again."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs
import trio

from odradek.kernel.errors import OdradekError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

START_TIMEOUT_S: Final = 60
_LOG_TAIL: Final = 400
_READY: Final = "ready "


@attrs.frozen
class BrokerFolder:
    """Where a broker keeps what; below one folder of its own.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def data(self) -> Path:
        """What it calls its log directory."""
        return self.path / "data"

    @property
    def store(self) -> Path:
        """What it takes for an object store, if its settings say so."""
        return self.path / "store"

    @property
    def log_file(self) -> Path:
        """What it says."""
        return self.path / "broker.log"


@attrs.frozen
class ServingBroker:
    """A broker that serves.

    Attributes:
        bootstrap: `HOST:PORT`.
        process_id: Of its process.
        started_s: How long it took until it served, in seconds.
    """

    bootstrap: str
    process_id: int
    started_s: float


@asynccontextmanager
async def serving_broker(
    folder: BrokerFolder, settings: Mapping[str, str], config: Path | None
) -> AsyncIterator[ServingBroker]:
    """Run a broker for the time of an `async with`; at its end the process is killed, as `kill -9` does.

    Args:
        folder: Its own; what is there already is what it begins with.
        settings: Its settings.
        config: A configuration file that it reads first; None for none.

    Raises:
        OdradekError: It ended, or was not ready in time; with what it said last. In a group with what that broke.

    Cancelled, the process is killed too.
    """
    began_s = trio.current_time()
    process = await launch(folder, settings, config, ("--listen", "127.0.0.1:0"))
    try:
        bootstrap = await address_of(process, folder.log_file)
        started_s = trio.current_time() - began_s
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, process, folder.log_file)
            yield ServingBroker(bootstrap, process.pid, started_s)
            nursery.cancel_scope.cancel()
    finally:
        await end(process)


async def launch(
    folder: BrokerFolder, settings: Mapping[str, str], config: Path | None, more: Sequence[str] = ()
) -> trio.Process:
    """Start a process of a broker, and do not wait until it serves; `end` ends it.

    Args:
        folder: Its own.
        settings: Its settings.
        config: A configuration file that it reads first; None for none.
        more: Options of `odradek serve`.
    """
    command = [sys.executable, "-m", "odradek", "serve", "--data-dir", str(folder.data), *more]
    command += ["--config", str(config)] if config is not None else []
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    # The user's own settings are for the user's own broker.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ODRADEK_")}
    with folder.log_file.open("ab") as log:
        return await trio.lowlevel.open_process(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, env=environment
        )


async def end(process: trio.Process) -> None:
    """Kill a process, as `kill -9` does, and wait until it is gone; also one that stands still."""
    process.kill()
    with trio.CancelScope(shield=True):
        await process.wait()
        if process.stdout is not None:
            await process.stdout.aclose()


async def address_of(process: trio.Process, log_file: Path) -> str:
    """Wait until a broker serves, and return where.

    Raises:
        OdradekError: It ended, or was not ready in time; with what it said last.
    """
    assert process.stdout is not None, "its output is a pipe"
    said = ""
    with trio.move_on_after(START_TIMEOUT_S):
        while "\n" not in said:
            some = await process.stdout.receive_some()
            if not some:
                break
            said += some.decode(errors="replace")
    line = said.partition("\n")[0]
    if not line.startswith(_READY):
        raise OdradekError(f"the broker did not start: {_tail(log_file)}")
    return line.removeprefix(_READY).strip()


async def watch(process: trio.Process, log_file: Path) -> None:
    """End everything that is done with a broker as soon as that ends: its clients would try for a minute.

    Raises:
        OdradekError: It did; with what it said last.
    """
    status = await process.wait()
    raise OdradekError(f"the broker ended by itself, with status {status}: {_tail(log_file)}")


def _tail(log_file: Path) -> str:
    """Return what the broker said last, on one line."""
    text = log_file.read_text(errors="replace")[-_LOG_TAIL:].strip()
    lines = text.splitlines()
    return lines[-1].strip() if lines else "it said nothing"
