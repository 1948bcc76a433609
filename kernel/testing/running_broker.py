"""Shell: a real broker inside a test's process: a real port, a data directory of its own, on a thread of its own.

    from odradek.testing import running_broker

    with running_broker({"num.partitions": 4}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

The broker runs in trio on its own thread, so the test may use threads, asyncio or trio as it likes.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import trio

from ..broker import Broker, read_broker_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START_TIMEOUT_S = 30.0


@attrs.define
class RunningBroker:
    """A broker that serves.

    Attributes:
        bootstrap: `HOST:PORT`, for `bootstrap.servers`.
        data_dir: Where it keeps its logs.
    """

    bootstrap: str
    data_dir: Path

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.bootstrap.rpartition(":")[2])


class _Runner:
    """Runs one broker on one thread; hands over what happened there."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._is_ready = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self.failure: BaseException | None = None
        self.bootstrap = ""
        self._thread = threading.Thread(target=self._run, name="odradek broker", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the broker did not start within {START_TIMEOUT_S} s")
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # handed to the test's thread, whatever it is
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            self.failure = error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            first, *_others = await nursery.start(self._broker.run)
            self.bootstrap = f"{first.advertised_host}:{first.advertised_port}"
            self._is_ready.set()

    def stop(self) -> None:
        assert self._token is not None
        with suppress(trio.RunFinishedError):  # it ended by itself; `failure` says why
            self._token.run_sync_soon(self._broker.stop)
        self._thread.join()
        if self.failure is not None:
            raise self.failure


@contextmanager
def running_broker(
    settings: Mapping[str, object] | None = None, *, data_dir: Path | None = None, config: Path | None = None
) -> Iterator[RunningBroker]:
    """Run a broker for the time of a `with` block.

    Args:
        settings: Kafka's broker keys; lists as comma-separated text. A free port on 127.0.0.1 unless `listeners` is
            set.
        data_dir: Where its data lives and stays; by default a temporary directory, removed at the end.
        config: A configuration file, under the settings.

    Raises:
        OdradekError: The broker could not start, or failed while it ran.

    .. versionadded:: 0.1
    """
    chosen = {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in (settings or {}).items()
    }
    directory = data_dir or Path(tempfile.mkdtemp(prefix="odradek-"))
    options = read_broker_options(
        config=config,
        environment={},
        options=[f"{key}={value}" for key, value in chosen.items()],
        listen=[] if "listeners" in chosen else ["127.0.0.1:0"],
        data_dir=directory,
    )
    runner = _Runner(Broker(options))
    try:
        runner.start()
        try:
            yield RunningBroker(runner.bootstrap, directory)
        finally:
            runner.stop()
    finally:
        if data_dir is None:
            shutil.rmtree(directory, ignore_errors=True)
