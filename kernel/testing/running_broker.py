"""Shell: a real broker inside a test's process: a real port, a data directory of its own, on a thread of its own.

    from odradek.kernel.testing.running_broker import running_broker

    with running_broker({"num.partitions": 4}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

The broker runs in trio on its own thread, so the test may use threads, asyncio or trio as it likes. What the broker
consists of is imported when the first one is started: a test run that starts none pays nothing.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import attrs

from ..errors import OdradekError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import trio

    from ..broker import Broker
    from ..files import Files

START_TIMEOUT_S: Final = 30.0

_FREE_PORT: Final = "PLAINTEXT://127.0.0.1:0"
TEST_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0"}
"""What differs from a broker that is no test's: in Kafka, the first member of a new classic group waits three seconds
for others. That spares a deployment some rebalances, and would cost every test that reads as a group three seconds."""


class BrokerDiedError(OdradekError):
    """The broker of a test ended by itself; the cause says why.

    .. versionadded:: 0.1
    """


@attrs.define
class RunningBroker:
    """A broker that serves. Any thread may use it.

    Attributes:
        bootstrap: `HOST:PORT`, for `bootstrap.servers`.
        data_dir: Where it keeps its logs.

    .. versionadded:: 0.1
    """

    bootstrap: str
    data_dir: Path
    _runner: _Runner = attrs.field(repr=False)

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self.bootstrap.rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.bootstrap.rpartition(":")[2])

    def check(self) -> None:
        """Do nothing while the broker lives: for a test that wonders why its client waits.

        Raises:
            BrokerDiedError: It ended by itself.
        """
        self._runner.check()


class _Runner:
    """Runs one broker on one thread; hands over what happened there. Owned by the thread of the test."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._is_ready = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._failure: BaseException | None = None
        self.bootstrap = ""
        self._thread = threading.Thread(target=self._run, name="odradek broker", daemon=True)

    def start(self) -> None:
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the broker did not start within {START_TIMEOUT_S} s")
        if isinstance(self._failure, OdradekError):  # a setting, a plugin, a directory: as `odradek serve` says it
            raise self._failure
        self.check()

    def _run(self) -> None:
        import trio

        try:
            trio.run(self._serve)
        except BaseException as error:  # handed to the test's thread, whatever it is
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            self._failure = error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        import trio

        from ..network.sleeper import take_over_sleep

        take_over_sleep()
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            first, *_others = await nursery.start(self._broker.run)
            self.bootstrap = first.advertised
            self._is_ready.set()

    def check(self) -> None:
        if self._failure is not None:
            reason = str(self._failure) or type(self._failure).__name__
            raise BrokerDiedError(f"the broker of this test ended by itself: {reason}") from self._failure

    def stop(self) -> None:
        import trio

        assert self._token is not None
        with suppress(trio.RunFinishedError):  # it ended by itself; `check` says why
            self._token.run_sync_soon(self._broker.stop)
        self._thread.join()
        self.check()


@contextmanager
def running_broker(
    settings: Mapping[str, object] | None = None,
    *,
    data_dir: Path | None = None,
    config: Path | None = None,
    files: Files | None = None,
) -> Iterator[RunningBroker]:
    """Run a broker for the time of a `with` block.

    Args:
        settings: Kafka's broker keys; lists as comma-separated text. A free port on 127.0.0.1 unless `listeners` is
            set; `TEST_SETTINGS` unless they, or the configuration file, say something else.
        data_dir: Where its data lives and stays: a second block with the same directory finds it again. By default a
            temporary directory, removed at the end.
        config: A configuration file, under the settings; `[plugins]` and `[topics.NAME]` stand there.
        files: What the broker keeps goes through them: `FaultyFiles(data_dir)` for a disk that fails.

    Raises:
        OdradekError: The broker could not start.
        BrokerDiedError: It ended by itself; raised at the end of the block, or by `RunningBroker.check`.

    .. versionadded:: 0.1
    """
    from ..broker import Broker, read_broker_options

    text = config.read_text(encoding="utf-8", errors="replace") if config is not None and config.is_file() else ""
    chosen = {key: value for key, value in TEST_SETTINGS.items() if key not in text}
    chosen["listeners"] = _FREE_PORT
    for key, value in (settings or {}).items():
        chosen[key] = str(value).lower() if isinstance(value, bool) else str(value)
    folder: Path | None = None
    directory = data_dir
    if directory is None:  # plugins keep things beside it, too: all of its folder is removed
        folder = Path(tempfile.mkdtemp(prefix="odradek-"))
        directory = folder / "data"
    try:
        options = read_broker_options(
            config=config,
            environment={},
            options=[f"{key}={value}" for key, value in chosen.items()],
            data_dir=directory,
        )
        runner = _Runner(Broker(options, files=files))
        runner.start()
        try:
            yield RunningBroker(runner.bootstrap, directory, runner)
        finally:
            runner.stop()
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
