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

The switch, `_ALLOW_DETERMINISTIC_SCHEDULING`, and the source, `_r`, are private to trio.
`tests/lab/simulator/test_scheduling.py` fails when a version of trio has them no more, or when they no longer do what
is said here: on the newest version in the gate, on the oldest that is allowed by `tox -e trio-oldest`.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MODULE: Final = "trio._core._run"
SWITCH: Final = "_ALLOW_DETERMINISTIC_SCHEDULING"
SOURCE: Final = "_r"


_source: Final[ContextVar[random.Random | None]] = ContextVar("source", default=None)
"""The source of who runs trio here; a thread begins without one."""


class _SourceOfThread:
    """The source for runs of this thread; brokers of a test that live in other threads have the usual one."""

    def __init__(self, others: random.Random) -> None:
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return getattr(_source.get() or self._others, name)


@contextmanager
def deterministic_scheduling(source: random.Random) -> Iterator[None]:
    """Have every trio run that begins in the block take its order of tasks from `source`.

    Raises:
        RuntimeError: This version of trio does not have what is needed.
    """
    run: Any = importlib.import_module(MODULE)
    missing = [name for name in (SWITCH, SOURCE) if not hasattr(run, name)]
    if missing:
        raise RuntimeError(f"this version of trio cannot be simulated with: {MODULE} has no {', '.join(missing)}")
    before = {name: getattr(run, name) for name in (SWITCH, SOURCE)}
    setattr(run, SWITCH, True)
    setattr(run, SOURCE, _SourceOfThread(before[SOURCE]))
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)
        for name, value in before.items():
            setattr(run, name, value)
