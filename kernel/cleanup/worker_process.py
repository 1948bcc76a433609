"""Shell: the process that does one compaction: a job from the standard input, steps to the standard output."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, BinaryIO

from ..machine.system.machine import real_machine
from ..machine.system.threads import start_daemon
from ..machine.throttle import Throttle
from .compaction_job import compact
from .workers import BROKER_GONE, WorkerFailure, describe, may_pass

if TYPE_CHECKING:
    from .compaction_job import CompactionJob

NICENESS = 5
"""The broker goes first where the cores are few."""


def main() -> None:
    """Do one job. A failure is the last step."""
    source, target = sys.stdin.buffer, _own_output()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    job: CompactionJob = pickle.load(source)  # from the broker that started this process
    start_daemon(_end_with_the_broker, source, name="end with the broker")
    machine = real_machine()
    throttle = Throttle(lambda: job.bytes_per_second, machine.timer, machine.threads.new_event())
    try:
        for step in compact(job, throttle):
            pickle.dump(step, target)
            target.flush()
    except Exception as error:  # whatever it is, the broker is to hear it
        pickle.dump(WorkerFailure(describe(error), is_lasting=not may_pass(error)), target)
        target.flush()


def _own_output() -> BinaryIO:
    """Return the way to the broker, and lead everything else that is printed to the standard error."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return target


def _end_with_the_broker(source: BinaryIO) -> None:
    """Wait for the end of the pipe: a worker must not write where the next broker, or its worker, does."""
    source.read()
    os._exit(BROKER_GONE)


if __name__ == "__main__":
    main()
