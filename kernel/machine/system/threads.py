"""Shell: this process's threads: trio's worker threads, and one that watches a run."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, NoReturn, TypeVar, TypeVarTuple, Unpack

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import FrameType

    from ..threads import Silence

A = TypeVarTuple("A")
Item = TypeVar("Item")
T = TypeVar("T")


class SystemThreads:
    """trio's own worker threads, and a thread that watches."""

    run_sync = staticmethod(trio.to_thread.run_sync)
    new_event = staticmethod(threading.Event)

    def map(self, function: Callable[[Item], T], items: Iterable[Item], *, count: int) -> list[T]:
        """See `Threads.map`."""
        from concurrent.futures import ThreadPoolExecutor  # for a broker's end, not its start

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(function, items))

    async def watch_run(self, on_silence: Callable[[Silence], None], *, pause_s: float, limit_s: float) -> NoReturn:
        """See `Threads.watch_run`; the thread ends soon after."""
        stopped = threading.Event()
        watch = _Watch(trio.lowlevel.current_trio_token(), threading.get_ident(), stopped, on_silence)
        start_daemon(watch.run, pause_s, limit_s, name="watch of the run")
        try:
            await trio.sleep_forever()
        finally:
            stopped.set()


class _Watch:
    """What the watching thread knows. `_answered` is of the question asked last."""

    def __init__(
        self,
        token: trio.lowlevel.TrioToken,
        thread_id: int,
        stopped: threading.Event,
        on_silence: Callable[[Silence], None],
    ) -> None:
        self._token = token
        self._thread_id = thread_id
        self._stopped = stopped
        self._on_silence = on_silence
        self._answered = threading.Event()

    def run(self, pause_s: float, limit_s: float) -> None:
        while not self._stopped.wait(pause_s):
            self._answered = threading.Event()
            try:
                self._token.run_sync_soon(self._answered.set)
            except trio.RunFinishedError:
                return
            if not self.wait(limit_s):
                self._on_silence(self)
            while not self.wait(pause_s) and not self._stopped.is_set():
                continue

    def frame(self) -> FrameType | None:
        return sys._current_frames().get(self._thread_id)  # noqa: SLF001 - documented, for debuggers and the like

    def wait(self, seconds: float) -> bool:
        return self._answered.wait(seconds)


def start_daemon(function: Callable[[Unpack[A]], object], *args: *A, name: str) -> None:
    """Run a function on a thread of its own, which the process's end does not wait for."""
    threading.Thread(target=function, args=args, name=name, daemon=True).start()
