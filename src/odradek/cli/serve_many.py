"""Shell: `odradek serve --brokers N`: several brokers of one cluster, each a process, started and ended together.

The parent loads everything once and forks a process for each broker, so they begin quickly and share memory. It runs no
loop of its own: it waits for signals, starts again who died, and passes on that all are to end. A broker whose parent
is gone ends by itself.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import socket
import sys
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from odradek.kernel.config.settings import default_data_dir
from odradek.kernel.errors import ConfigError
from odradek.kernel.machine.clock import SystemClock

from . import innermost, report, say
from .cluster_plan import VOTERS_MAX, check_read, plan_brokers
from .options import EXIT_USAGE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from odradek.kernel.broker import BrokerOptions
    from odradek.kernel.machine.clock import Clock

PAUSE_S_MIN: Final = 0.5
PAUSE_S_MAX: Final = 30.0
STEADY_S: Final = 60.0
"""Who lived so long begins with the shortest pause again."""
MAY_HOLD_PORTS: Final = sys.platform == "linux"
"""Whether a socket may listen where another one is bound that does not, where both say SO_REUSEADDR."""
METADATA_LOG: Final = "__cluster_metadata-0"
FOUNDING: Final = "00000000000000000000-0000000000.checkpoint"
"""In the directory of a metadata log that several founded: `kernel/controller/founding_checkpoint.py`."""

Serve: TypeAlias = "Callable[[BrokerOptions, int, Callable[[], None]], int]"
"""Serves in a child until it is to end, or until the descriptor that it is given ends; returns the exit status.

Once it is ready it calls what it is given last.
"""


@attrs.define
class Child:
    """One broker: its process, if it has one, and when it is started again.

    Attributes:
        node_id: Its number.
        options: What it is started with.
        turn: When it is told to end; `BrokerPlan.turn`.
        pid: Its process, 0 for none.
        began_s: When that began.
        pause_s: How long it rests before it is started again.
        due_s: When that is.
        is_told: Whether it was told to end.
    """

    node_id: int
    options: BrokerOptions
    turn: int = 0
    pid: int = 0
    began_s: float = 0.0
    pause_s: float = PAUSE_S_MIN
    due_s: float = 0.0
    is_told: bool = False


class Fleet:
    """All brokers of one command. Life: made, `run` once. Belongs to the main thread, which has no trio run."""

    def __init__(self, children: Iterable[Child], serve: Serve, *, clock: Clock) -> None:
        """Make one that has not begun.

        Args:
            children: The brokers.
            serve: Serves one of them, in its process.
            clock: Times pauses.
        """
        self._clock = clock
        self._children = list(children)
        self._serve = serve
        self._is_ending = False
        self._status = 0
        self._watched, self._held = os.pipe()
        # Whether a process of a broker was ever ready, by number: shared memory, in which the children say it.
        self._has_served = mmap.mmap(-1, max(child.node_id for child in self._children) + 1)

    def run(self, stop_signals: Iterable[int]) -> int:
        """Keep all brokers alive until a signal ends them; return the exit status."""
        stops = set(stop_signals)
        awaited = {signal.SIGCHLD, *stops}
        signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
        for child in self._children:
            self._start(child)
        while any(child.pid for child in self._children) or not self._is_ending:
            received = signal.sigtimedwait(awaited, self._patience_s())
            if received is not None and received.si_signo in stops:
                self._end(signal.Signals(received.si_signo))
            self._bury()
            self._start_again()
        return self._status

    def _patience_s(self) -> float:
        due = [child.due_s for child in self._children if not child.pid]
        return STEADY_S if self._is_ending or not due else max(0.0, min(due) - self._clock.monotonic_ms() / 1000)

    def _start(self, child: Child) -> None:
        sys.stdout.flush()
        child.began_s = self._clock.monotonic_ms() / 1000
        try:
            child.pid = os.fork()
        except OSError as error:  # no process or memory is left for it: the others live on, and there may be some later
            pause_s = self._rest(child)
            say(f"broker {child.node_id} cannot be started: {error.strerror}; it is tried again in {pause_s:.1f} s")
            return
        if child.pid:
            return
        status = 1
        try:
            os.close(self._held)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.setpgid(0, 0)  # Ctrl-C goes to the parent alone, which ends its children in order
            status = self._serve(child.options, self._watched, lambda: self._note_ready(child))
            sys.stdout.flush()
        except BaseException as error:  # nobody is left to tell it: this process ends here
            status = _tell(error)
        finally:
            os._exit(status)

    def _note_ready(self, child: Child) -> None:
        self._has_served[child.node_id] = True

    def _bury(self) -> None:
        for child in self._children:
            if child.pid and (ended := os.waitpid(child.pid, os.WNOHANG))[0]:
                child.pid = 0
                self._ended(child, os.waitstatus_to_exitcode(ended[1]))
        if self._is_ending:
            self._end_next()

    def _ended(self, child: Child, status: int) -> None:
        if self._is_ending:
            self._status = self._status or (1 if status else 0)
            return
        if status == EXIT_USAGE and not self._has_served[child.node_id]:
            # As it is set it has never served, and never will.
            self._status = status
            self._end(signal.SIGTERM)
            return
        pause_s = self._rest(child)
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        say(f"broker {child.node_id} ended {how}; it is started again in {pause_s:.1f} s")

    def _rest(self, child: Child) -> float:
        """Have a broker start again later; return in how many seconds."""
        now_s = self._clock.monotonic_ms() / 1000
        pause_s = PAUSE_S_MIN if now_s - child.began_s >= STEADY_S else child.pause_s
        child.pause_s = min(PAUSE_S_MAX, pause_s * 2)
        child.due_s = now_s + pause_s
        return pause_s

    def _start_again(self) -> None:
        now_s = self._clock.monotonic_ms() / 1000
        for child in self._children:
            if not (self._is_ending or child.pid) and child.due_s <= now_s:
                self._start(child)

    def _end(self, number: signal.Signals) -> None:
        """Have all end in their turns: who keeps metadata last, as it moves leaders; at once if asked again."""
        is_again, self._is_ending = self._is_ending, True
        if not is_again:
            self._end_next()
            say(f"stopping {len(self._children)} brokers ({number.name}); again: without waiting for clients")
            return
        for child in self._children:
            if child.pid:
                os.kill(child.pid, signal.SIGTERM)

    def _end_next(self) -> None:
        living = [child for child in self._children if child.pid]
        turn = min((child.turn for child in living), default=0)
        for child in living:
            if child.turn == turn and not child.is_told:
                child.is_told = True
                os.kill(child.pid, signal.SIGTERM)


def _tell(error: BaseException) -> int:
    """Tell why a broker ended, as of one that is alone; return the exit status."""
    cause = innermost(error)
    try:
        return report(cause)
    except BaseException:
        traceback.print_exception(error)
        return 1


def run_many(
    arguments: argparse.Namespace,
    read_options: Callable[..., BrokerOptions],
    serve: Serve,
    stop_signals: Iterable[int],
) -> int:
    """Serve as several brokers until a signal ends them; return the exit status.

    Args:
        arguments: Of `odradek serve`.
        read_options: Reads a broker's options: listeners, data directory and settings.
        serve: Serves one broker in a child.
        stop_signals: What ends all.

    Raises:
        ConfigError: Something is set that each broker has for itself, or this system cannot fork.
    """
    if not hasattr(os, "fork"):
        raise ConfigError("this system cannot fork", where="--brokers", hint="start each by `odradek serve`")
    data_dir = arguments.data_dir or default_data_dir(os.environ, Path.home())
    with ExitStack() as held:
        plans = plan_brokers(
            arguments.brokers,
            listen=arguments.listen,
            data_dir=data_dir,
            options=arguments.options,
            free_port=lambda host: free_port(host, held),
            voters=min(arguments.brokers, VOTERS_MAX) if may_found(data_dir, arguments.brokers) else 1,
        )
        if not MAY_HOLD_PORTS:
            held.close()
        children = [Child(each.node_id, read_options(each.options, Path(each.data_dir)), each.turn) for each in plans]
        check_read(children[0].options.config)
        gc.freeze()  # pages that no collection touches stay shared
        return Fleet(children, serve, clock=SystemClock()).run(stop_signals)


def may_found(data_dir: Path, brokers: int) -> bool:
    """Return whether several brokers keep the metadata of a cluster: of one that they founded, or are to found.

    One whose metadata the first broker has kept alone so far goes on so: the others' copies are no votes.

    Args:
        data_dir: Below which each broker has its directory.
        brokers: How many there are.
    """
    logs = [data_dir / str(number) / METADATA_LOG for number in range(1, brokers + 1)]
    return any((log / FOUNDING).exists() for log in logs) or not any(log.exists() for log in logs)


def free_port(host: str, held: ExitStack) -> int:
    """Return a port that nobody has, and hold it: nobody else is given it before its broker listens, or between two."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    holder = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host.strip("[]"), 0))
    port: int = holder.getsockname()[1]
    return port
