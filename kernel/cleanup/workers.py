"""Shell: who does a compaction: a process of its own, or, where a log cannot leave this one, a thread.

Python code on a thread would hold the interpreter lock while the reactor waits for it; in another process the work
costs clients nothing but a core (`docs/decisions/0014-compaction-in-a-process.md`). A process lives for one job: what
it took of memory is given back with it, and a crash of it is a failed job.

    broker                                       worker
    stdin:  the job, pickled                     reads it; goes on reading: the end of the pipe is the end of the broker
    stdout: steps, pickled, one by one           `compact`; the last step is `CompactionDone` or `WorkerFailure`
"""

from __future__ import annotations

import pickle
import signal
from typing import TYPE_CHECKING, Final, Protocol

from ..classes import frozen
from ..errors import CorruptionError, OdradekError, StorageError
from ..machine.throttle import Throttle
from .compaction_job import CompactionDone, GroupRewritten, SegmentLooked, compact

if TYPE_CHECKING:
    from ..machine.machine import Machine
    from ..machine.processes import Processes
    from .compaction_job import CompactionJob, Step


BROKER_GONE: Final = 3
"""The exit status of a worker whose broker is no more."""
_MODULE: Final = "odradek.kernel.cleanup.worker_process"
_IMPORT_FAILURES: Final = ("ImportError", "ModuleNotFoundError", "SyntaxError", "AttributeError", "NameError")


class WorkerDiedError(OdradekError):
    """A worker ended without an answer: it was killed, or had no memory left."""


class UncleanableError(OdradekError):
    """A worker met what it cannot compact: a damaged batch, a policy that fails. Trying again would not help."""


@frozen
class WorkerFailure:
    """How a job ended that failed.

    Attributes:
        reason: One line.
        is_lasting: Whether trying again would not help; otherwise the disk refused, or a segment was gone.
    """

    reason: str
    is_lasting: bool


class Worker(Protocol):
    """Does one job. Life: `next_step` until it gives `CompactionDone` or raises, then `close`.

    Attributes:
        ends_at_close: Whether nothing of it goes on after `close`, also if somebody is in `next_step`.
    """

    ends_at_close: bool

    def next_step(self) -> Step:
        """Wait for the next step; for a thread.

        Raises:
            OSError: The disk failed, or a segment was deleted.
            UncleanableError: The log cannot be compacted.
            WorkerDiedError: There will be no more steps.
        """
        ...

    def close(self) -> None:
        """End it now, wherever it is."""
        ...


class ThreadWorker:
    """Works where `next_step` is called, and nobody can end a thread."""

    ends_at_close = False

    def __init__(self, job: CompactionJob, machine: Machine) -> None:
        throttle = Throttle(lambda: job.bytes_per_second, machine.timer, machine.threads.new_event())
        self._steps = compact(job, throttle)

    def next_step(self) -> Step:
        """See `Worker.next_step`."""
        try:
            return next(self._steps)
        except OSError:
            raise
        except Exception as error:
            raise (OSError if may_pass(error) else UncleanableError)(describe(error)) from error

    def close(self) -> None:
        """See `Worker.close`."""


class ProcessWorker:
    """Works in a process of its own."""

    ends_at_close = True

    def __init__(self, job: CompactionJob, processes: Processes) -> None:
        self._process = processes.start(_MODULE)
        self._job: CompactionJob | None = job

    def next_step(self) -> Step:
        """See `Worker.next_step`."""
        try:
            if self._job is not None:
                pickle.dump(self._job, self._process.stdin)
                self._process.stdin.flush()
                self._job = None
            step = pickle.load(self._process.stdout)  # from a process that this one started
        except (EOFError, OSError, pickle.UnpicklingError, ValueError) as error:
            raise WorkerDiedError(death_notice(*self._process.last_words())) from error
        if isinstance(step, WorkerFailure):
            raise UncleanableError(step.reason) if step.is_lasting else OSError(step.reason)
        assert isinstance(step, GroupRewritten | SegmentLooked | CompactionDone)
        return step

    def close(self) -> None:
        """See `Worker.close`."""
        self._process.kill()


def start_worker(job: CompactionJob, machine: Machine) -> Worker:
    """Start a worker that fits a job, and the machine."""
    if machine.processes is not None and job.rewrite.is_portable:
        return ProcessWorker(job, machine.processes)
    return ThreadWorker(job, machine)


def death_notice(status: int, last_words: str) -> str:
    """Return why a worker died, as far as its exit status and its last line tell.

    Args:
        status: Negative for a signal.
        last_words: The last line of its standard error; may be empty.
    """
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        why = f"the worker was ended by signal {name}"
        if -status == signal.SIGKILL:
            why += ", as a system does that has no memory left"
    elif status == BROKER_GONE:
        why = "the worker found the broker's end of its pipe closed"
    else:
        why = f"the worker died, exit status {status}"
    if last_words.startswith(_IMPORT_FAILURES):
        last_words += "; was the package changed under the running broker? Start it again"
    return f"{why}: {last_words}" if last_words else why


def may_pass(error: Exception) -> bool:
    """Say whether trying again may help: a disk, a storage that was busy, memory; not damage, nor a bug."""
    return isinstance(error, OSError | MemoryError | StorageError) and not isinstance(error, CorruptionError)


def describe(error: Exception) -> str:
    """Return an error as one line: what was raised, and, where that is not foreseen, in which module and line."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    traceback = error.__traceback__
    if traceback is None or isinstance(error, OSError | StorageError):
        return text
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return f"{text} ({traceback.tb_frame.f_globals.get('__name__')}, line {traceback.tb_lineno})"
