"""Shell: trio's scheduling, made to depend on a seed alone.

trio runs what is runnable in batches, and turns every other batch round, so that nobody relies on an order. What of
that and of trio's other bookkeeping could differ between two runs of one seed, and what is done about it:

| in trio | what differs | here |
| --- | --- | --- |
| order of a batch | a random reversal | the switch: sorted by age of task, then shuffled by our source |
| tasks of one `Event`, of a cancelled scope | kept in sets, by address | they run in the same batch, which is sorted |
| deadlines of one moment | expire in the order of addresses | as above: what they wake is sorted |
| where trio's own clock begins | random | the clock is ours |
| worker threads, signals, sockets | the machine | none: `threads.py`, `network.py` |
| runs in other threads | they draw from the same source | each thread draws from its own |

The switch, `_ALLOW_DETERMINISTIC_SCHEDULING`, and the source, `_r`, are private to trio; so is where it keeps who can
run, by which a pass is spared in which nobody would, and what asks the system which sockets are ready.
`tests/lab/simulator/test_scheduling.py` fails when a version of trio has them no more, or when they no longer do what
is said here: on the newest version in the gate, on the oldest that is allowed by `tox -e trio-oldest`.

A task that stands still is taken out of its batch before that is shuffled, and put into the next one when it goes on.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from .logs import living

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from .machine import Process

MODULE: Final = "trio._core._run"
SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
SOURCE: Final = "_r"
CONTEXT: Final = "GLOBAL_RUN_CONTEXT"


class _Turns:
    """Who gets a turn in a run, and in which order.

    Attributes:
        source: Decides about the order.
    """

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self._standing: dict[Process, list[Any]] = {}
        self._freed: list[Any] = []

    def stand_still(self, process: Process) -> None:
        """Give the tasks of a process no turn from now on."""
        self._standing.setdefault(process, [])

    def go_on(self, process: Process) -> None:
        """Let them go on, those first that had been about to."""
        self._freed += self._standing.pop(process, [])

    def shuffle(self, batch: list[Any]) -> None:
        """Make of what could run what runs now. trio calls it in each of its passes, with tasks sorted by age."""
        if self._standing or self._freed:
            ready, self._freed = [*batch, *self._freed], []
            batch.clear()
            for task in ready:
                self._standing.get(task.context.get(living), batch).append(task)
        if len(batch) > 1:
            self.source.shuffle(batch)

    @property
    def has_freed(self) -> bool:
        """Whether somebody goes on who stood still."""
        return bool(self._freed)


_turns: Final[ContextVar[_Turns | None]] = ContextVar("turns", default=None)
"""Those of who runs trio here; a thread begins without."""


class _SourceOfThread:
    """The source for runs of this thread; brokers of a test that live in other threads have the usual one."""

    def __init__(self, others: random.Random) -> None:
        self._others = others

    def shuffle(self, batch: list[Any]) -> None:
        """Order what runs in a pass."""
        turns = _turns.get()
        if turns is None:
            self._others.shuffle(batch)
        else:
            turns.shuffle(batch)

    def __getattr__(self, name: str) -> Any:
        turns = _turns.get()
        return getattr(self._others if turns is None else turns.source, name)


class _Unasked:
    """In place of what asks the system in each pass of trio which sockets are ready.

    Only one ever is: by which trio is woken for what `run_sync_soon` was given, and as it puts its own things away.
    """

    def __init__(self, asked: Any, calls: Any) -> None:
        self._asked = asked
        self._calls = calls

    def get_events(self, seconds: float) -> Any:
        """Return what is ready; see trio's."""
        return self._asked.get_events(seconds) if seconds or self._calls.size() else ()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._asked, name)


@contextmanager
def deterministic_scheduling(source: random.Random) -> Iterator[None]:
    """Have every trio run that begins in the block take its order of tasks from `source`.

    Raises:
        RuntimeError: This version of trio does not have what is needed.
    """
    run: Any = importlib.import_module(MODULE)
    missing = [name for name in (SWITCH, SOURCE, CONTEXT) if not hasattr(run, name)]
    if missing:
        raise RuntimeError(f"this version of trio cannot be simulated with: {MODULE} has no {', '.join(missing)}")
    before = {name: getattr(run, name) for name in (SWITCH, SOURCE)}
    setattr(run, SWITCH, True)
    setattr(run, SOURCE, _SourceOfThread(before[SOURCE]))
    token = _turns.set(_Turns(source))
    try:
        yield
    finally:
        _turns.reset(token)
        for name, value in before.items():
            setattr(run, name, value)


def stand_still(process: Process) -> None:
    """Give the tasks of a process no turn, as SIGSTOP does; what wakes them meanwhile they see when it goes on."""
    _turns_of_run().stand_still(process)


def go_on(process: Process) -> None:
    """Let the tasks of a process go on with trio's next pass."""
    _turns_of_run().go_on(process)


def runnable_now() -> Callable[[], bool]:
    """Return what says, from now on in this run, whether a pass of trio would do anything but look at deadlines."""
    run: Any = importlib.import_module(MODULE)
    runner, turns = getattr(run, CONTEXT).runner, _turns_of_run()
    ready, calls = runner.runq, runner.entry_queue
    return lambda: bool(ready) or turns.has_freed or calls.size() > 0


def ask_no_system() -> None:
    """Spare this run a system call a pass, for what no task in it waits for."""
    run: Any = importlib.import_module(MODULE)
    runner = getattr(run, CONTEXT).runner
    runner.io_manager = _Unasked(runner.io_manager, runner.entry_queue)


def _turns_of_run() -> _Turns:
    turns = _turns.get()
    assert turns is not None, "only who runs in a world stands still"
    return turns
