"""Shell: producer and consumer for programs without trio, and what a blocking admin is made of: a thread for each.

    with BlockingProducer({"bootstrap.servers": "127.0.0.1:9092"}) as producer:
        print(producer.send("greetings", "hello").offset)
    with BlockingConsumer({"bootstrap.servers": "127.0.0.1:9092", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign_topics("greetings")
        for record in consumer:
            print(record.value)

Every call hands its work to that thread and waits: about 0.1 ms. `BlockingProducer.enqueue` hands over without waiting,
so that a loop of it is as fast as the producer itself. Callbacks run on the client's thread. The methods may be called
from any number of threads; the errors are those of `errors.py`.

*Interruption.* A call that a signal interrupts, as Ctrl-C does, is cancelled, and waits until it has come to its end;
what holds then is said at the awaiting form. A second signal does not wait. A call whose other form awaits nothing
(`subscribe`, `seek`, `assign`) is not waited for: it is done before the next one, or not at all.

.. versionadded:: 0.1
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import trio

from .consumer import Consumer
from .errors import ClientClosedError
from .producer import Producer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType
    from typing import Self

    from .admin import Admin

_log = logging.getLogger(__name__)

T = TypeVar("T")
C = TypeVar("C", bound="Producer | Consumer | Admin")


class Blocking(Generic[C]):
    """A client on a thread of its own; the thread lives exactly as long as the `with` block."""

    def __init__(self, client: C) -> None:
        self._client = client
        self._token: trio.lowlevel.TrioToken | None = None
        self._is_ready = threading.Event()
        self._is_alive = True
        self._is_over = threading.Event()
        self._stop: trio.Event | None = None
        self._abort: trio.CancelScope | None = None
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        name = f"odradek {type(self._client).__name__.lower()}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._is_ready.wait()
        if self._token is None:
            self._thread.join()
            assert self._failure is not None
            raise self._failure
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        token, thread, stop, abort = self._token, self._thread, self._stop, self._abort
        assert token is not None
        assert thread is not None
        assert stop is not None
        assert abort is not None
        try:
            if kind is None and self._is_alive:
                self._finish()
            self._end(token, thread, stop.set if kind is None else abort.cancel)
        except BaseException:  # interrupted: in peace no longer
            self._end(token, thread, abort.cancel)
            raise
        if self._failure is not None and kind is None:
            raise self._failure

    def _end(self, token: trio.lowlevel.TrioToken, thread: threading.Thread, how: Callable[[], None]) -> None:
        """Have the client's thread end, and wait until it has."""
        self._token = None
        with suppress(trio.RunFinishedError):  # it ended by itself; `_failure` says why
            token.run_sync_soon(how)
        self._is_over.wait()  # interrupted in join(), before Python 3.13, a thread counts as ended
        thread.join()

    def _finish(self) -> None:
        """Do what is left before a peaceful end."""

    def _run(self) -> None:
        try:
            trio.run(self._live)
        except BaseException as error:  # handed to the thread that opened the client, whatever it is
            self._failure = error
        finally:
            self._is_alive = False
            self._is_ready.set()
            try:
                self._ended()
            finally:
                self._is_over.set()

    def _ended(self) -> None:
        """Tell whoever waits for the client's thread that it has ended."""

    async def _live(self) -> None:
        self._stop = trio.Event()
        with trio.CancelScope() as self._abort:
            client = cast("AbstractAsyncContextManager[object]", self._client)
            async with client, trio.open_nursery() as nursery:
                await nursery.start(self._serve)
                self._token = trio.lowlevel.current_trio_token()
                self._is_ready.set()
                await self._stop.wait()
                nursery.cancel_scope.cancel()

    async def _serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Do what the client's thread has to do beside calls; runs until cancelled."""
        task_status.started()

    def _call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        """Run an async function on the client's thread and return what it returns; interrupted, it is cancelled."""
        return self._call_or_undo(partial(function, *args, **named), None)

    def _call_or_undo(self, function: Callable[[], Coroutine[Any, Any, T]], undo: Callable[[T], object] | None) -> T:
        """As `_call`; what it returned in the moment of an interruption is given to `undo` on the client's thread."""
        token = self._open_token()
        call = _Call(function, undo)
        try:
            return trio.from_thread.run(call.run, trio_token=token)
        except (trio.RunFinishedError, trio.Cancelled):
            raise ClientClosedError("the client was closed") from self._failure
        except BaseException:
            if not call.has_failed:
                with suppress(RuntimeError, trio.Cancelled):  # the client's thread has ended, or is this one
                    trio.from_thread.run(call.end, trio_token=token)
            raise

    def _call_sync(self, function: Callable[..., T], *args: Any, **named: Any) -> T:
        """Run a plain function on the client's thread and return what it returns.

        Interrupted, it is not waited for: handed over by then, it runs before whatever is called next, and nobody hears
        what it returns or raises; otherwise it never runs.
        """
        try:
            return trio.from_thread.run_sync(partial(function, *args, **named), trio_token=self._open_token())
        except trio.RunFinishedError:
            raise ClientClosedError("the client was closed") from self._failure

    def _open_token(self) -> trio.lowlevel.TrioToken:
        if self._token is None:
            raise ClientClosedError("the client is not open: use it inside its `with`")
        return self._token


class _Call(Generic[T]):
    """An async function that another thread waits for: it does not outlive the wait."""

    def __init__(self, function: Callable[[], Coroutine[Any, Any, T]], undo: Callable[[T], object] | None) -> None:
        self.has_failed = False
        self._function = function
        self._undo = undo
        self._scope = trio.CancelScope()
        self._results: list[T] = []
        self._has_begun = False
        self._is_over = trio.Event()

    async def run(self) -> T:
        """Run it."""
        self._has_begun = True
        try:
            with self._scope:
                self._results.append(await self._function())
                return self._results[0]
        except BaseException:
            self.has_failed = True
            raise
        finally:
            self._is_over.set()
        raise ClientClosedError("the call was interrupted")  # heard by nobody

    async def end(self) -> None:
        """Cancel it, wait until it is over, and undo what it has done all the same."""
        self._scope.cancel()
        await trio.lowlevel.cancel_shielded_checkpoint()  # it has begun by then, or never will
        if self._has_begun:
            await self._is_over.wait()
        if self._undo is not None:
            for result in self._results:
                self._undo(result)
