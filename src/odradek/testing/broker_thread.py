"""Shell: runs one broker on one thread, once: from its start to a clean stop, or to a death like that of a process.

| a process | here |
| --- | --- |
| SIGTERM | `stop` |
| SIGKILL | `kill`: clients are let go unanswered, from then on nothing reaches the disk, and the run is cancelled |
| SIGSTOP, SIGCONT | `pause`, `resume`: the thread waits; the system goes on to accept connections |

Owned by the thread of the test. What the broker consists of is imported when one is started.
"""

from __future__ import annotations

import math
import queue
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from odradek.kernel.errors import OdradekError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import trio

    from odradek.kernel.broker import BoundListener, Broker
    from odradek.kernel.network.server import NetworkServer

    from .killable_files import KillableFiles

START_TIMEOUT_S: Final = 30.0
END_TIMEOUT_S: Final = 5.0
"""How long a start that took too long may take to end."""

_Job: TypeAlias = "Callable[[], Awaitable[None]]"
_Outcome: TypeAlias = tuple[Any, BaseException | None]


class BrokerDiedError(OdradekError):
    """The broker of a test ended by itself; the cause says why.

    .. versionadded:: 0.1
    """


class BrokerThread:
    """Runs one broker on one thread; hands over what happened there."""

    def __init__(self, broker: Broker, clock: trio.abc.Clock | None = None) -> None:
        """Take a broker that was not run yet.

        Args:
            broker: What is run.
            clock: That of its run; None for trio's own.
        """
        self._broker = broker
        self._clock = clock
        self._is_ready = threading.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope: trio.CancelScope | None = None
        self._failure: BaseException | None = None
        self._is_killed = False
        self._is_given_up = False
        self._jobs: trio.MemorySendChannel[_Job] | None = None
        self._held_calls: queue.SimpleQueue[Callable[[], None] | None] | None = None
        self.listeners: tuple[BoundListener, ...] = ()
        self._thread = threading.Thread(target=self._run, name="odradek broker", daemon=True)

    def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            OdradekError: It cannot start: as `odradek serve` says it.
            TimeoutError: It takes too long; it was ended, unless it hangs in one step.
        """
        self._thread.start()
        if not self._is_ready.wait(START_TIMEOUT_S):
            self._give_up()
            raise TimeoutError(f"the broker did not start within {START_TIMEOUT_S} s")
        if isinstance(self._failure, OdradekError):  # a setting, a plugin, a directory
            raise self._failure
        self.check()

    def _give_up(self) -> None:
        """End a start, and wait for that: nobody else would, and its ports and directory may be wanted again."""
        self._is_given_up = True
        if self._token is not None:
            self._run_soon(self._cancel)
        self._thread.join(END_TIMEOUT_S)

    def _cancel(self) -> None:
        if self._scope is not None:
            self._scope.cancel()

    def _run(self) -> None:
        import trio

        try:
            trio.run(self._serve, clock=self._clock)
        except BaseException as error:  # handed to the test's thread, whatever it is
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            self._failure = None if self._is_killed else error
        finally:
            self._is_ready.set()

    async def _serve(self) -> None:
        import trio

        from odradek.kernel.network.sleeper import take_over_sleep

        take_over_sleep()
        self._token = trio.lowlevel.current_trio_token()
        self._jobs, jobs = trio.open_memory_channel[_Job](math.inf)
        with trio.CancelScope() as self._scope:
            if self._is_given_up:
                return
            async with trio.open_nursery() as nursery:
                self.listeners = await nursery.start(self._run_broker, nursery.cancel_scope)
                self._is_ready.set()
                async for job in jobs:
                    await job()

    async def _run_broker(self, rest: trio.CancelScope, *, task_status: trio.TaskStatus[Any]) -> None:
        await self._broker.run(task_status=task_status)
        rest.cancel()  # nobody carries anything out any more

    def check(self) -> None:
        """Do nothing unless it ended by itself.

        Raises:
            BrokerDiedError: It did.
        """
        if self._failure is not None:
            reason = str(self._failure) or type(self._failure).__name__
            raise BrokerDiedError(f"the broker of this test ended by itself: {reason}") from self._failure

    # ------------------------------------------------------------------------------------------------ from outside

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the broker's thread, between two of its steps, also while it is paused.

        Raises:
            BrokerDiedError: It ended by itself.
        """
        outcome: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()

        def run() -> None:
            try:
                outcome.put((function(), None))
            except BaseException as error:  # raised where it was asked for
                outcome.put((None, error))

        if self._held_calls is not None:
            self._held_calls.put(run)
        else:
            self._run_soon(run)
        return self._wait_for(outcome)

    def carry_out(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Run an asynchronous function in the broker's run, beside its tasks, and return what it returns; not paused.

        Raises:
            BrokerDiedError: It ended by itself.
        """
        outcome: queue.SimpleQueue[_Outcome] = queue.SimpleQueue()

        async def run() -> None:
            try:
                outcome.put((await function(), None))
            except Exception as error:  # raised where it was asked for
                outcome.put((None, error))

        assert self._jobs is not None, "only what was started is called"
        self._run_soon(partial(self._jobs.send_nowait, run))
        return self._wait_for(outcome)

    def _wait_for(self, outcome: queue.SimpleQueue[_Outcome]) -> Any:
        while True:
            try:
                result, failure = outcome.get(timeout=0.1)
            except queue.Empty:
                if not self._thread.is_alive() and outcome.empty():
                    self.check()
                    raise BrokerDiedError("the broker of this test has ended") from None
                continue
            if failure is not None:
                raise failure
            return result

    def _run_soon(self, function: Callable[[], None]) -> None:
        import trio

        assert self._token is not None, "only what was started is called"
        with suppress(trio.RunFinishedError):  # it ended by itself; `check` says why
            self._token.run_sync_soon(function)

    @property
    def is_paused(self) -> bool:
        """Whether its thread waits."""
        return self._held_calls is not None

    def pause(self) -> None:
        """Have its thread wait; return when it does. Nothing happens when it waits already."""
        if self._held_calls is not None:
            return
        calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        is_held = threading.Event()

        def hold() -> None:
            is_held.set()
            while (call := calls.get()) is not None:
                call()

        self._run_soon(hold)
        while not is_held.wait(0.1):
            if not self._thread.is_alive():
                self.check()
                return
        self._held_calls = calls

    def resume(self) -> None:
        """Let its thread go on; nothing happens when it does."""
        calls, self._held_calls = self._held_calls, None
        if calls is not None:
            calls.put(None)

    def drop_connections(self) -> None:
        """Close every connection at once."""
        self.call(lambda: self.network.close_connections("dropped by its test"))

    @property
    def network(self) -> NetworkServer:
        """Its connections; what is done to them is done by `call`, or by what is carried out."""
        assert self._broker.network is not None, "a broker that has started has a network"
        return self._broker.network

    def leader_of(self, topic: str, partition: int) -> int | None:
        """Return who leads a partition as far as the broker knows, -1 for nobody; None for no such partition."""

        def look() -> int | None:
            found = self._broker.parts.published.image.topics_by_name.get(topic)
            if found is None or not 0 <= partition < len(found.partitions):
                return None
            return found.partitions[partition].leader

        leader: int | None = self.call(look)
        return leader

    def stop(self, release: Callable[[], None]) -> None:
        """End it cleanly, and wait for that.

        Args:
            release: Called on its thread first.

        Raises:
            BrokerDiedError: It had ended by itself, or its stop failed.
        """

        def end() -> None:
            release()
            self._broker.stop()

        self.resume()
        self._run_soon(end)
        self._thread.join()
        self.check()

    def kill(self, files: KillableFiles) -> None:
        """End it as the system ends a process that is killed, and wait for that.

        Args:
            files: What it keeps goes through them.
        """

        def die() -> None:
            self._is_killed = True
            assert self._scope is not None
            self.network.close()
            self.network.close_connections("killed by its test")
            files.kill()
            self._scope.cancel()

        self.check()
        self.call(die)
        self.resume()
        self._thread.join()
