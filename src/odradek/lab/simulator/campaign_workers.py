"""Shell: a long campaign: a file that is added to, and processes that run seeds beside each other.

The caller's process runs none itself. So a seed that ends its process, or never ends, is a result like another.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Final

import odradek
from odradek.kernel.machine.files import OsFiles
from odradek.kernel.machine.system.machine import real_machine

from .campaign_results import HEADER, Result, read_results
from .runs import Outcome, run_seed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess
    from types import TracebackType

    from .campaign_results import Job, Progress

    RunSeed = Callable[[str, Mapping[str, str], int], Outcome]

SEEDS_PER_PROCESS: Final = 500
"""After so many a new process goes on: what one run left in memory does not grow for days."""
SEED_S_MAX: Final = 900
"""A seed that takes longer has not ended by itself; most take a second or two."""
LOCK_SUFFIX: Final = ".lock"
CODE_SUFFIXES: Final = (".py", ".so", ".pyd")

_processes = multiprocessing.get_context("spawn")


def code_hash() -> str:
    """Return a hash of our code as it lies on the disk: with the same one a seed's run is the same."""
    root = Path(odradek.__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for folder, folders, names in os.walk(root, followlinks=True):
        folders.sort()
        for path in sorted(Path(folder, name) for name in names if name.endswith(CODE_SUFFIXES)):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
            digest.update(hashlib.blake2b(path.read_bytes()).digest())
    return digest.hexdigest()


class CampaignFile:
    """A campaign's file, open to be added to. Another process that opens it meanwhile is refused.

    Attributes:
        results: What it said when it was opened.
    """

    def __init__(self, path: Path) -> None:
        """Open it, or make it; what a crash left of a last line is taken away.

        Raises:
            OSError: It cannot be opened; BlockingIOError if another campaign has it.
            ValueError: It is the file of something else; it is left as it is.
        """
        self._lock = OsFiles().lock(path.with_name(f"{path.name}{LOCK_SUFFIX}"))
        try:
            # Only this writes it, in ASCII: a byte is a character.
            text = path.read_text(encoding="ascii") if path.exists() else ""
            self.results, length = read_results(text)
            self._file = path.open("ab")
        except (OSError, ValueError):
            self._lock.release()
            raise
        self._file.truncate(length)
        if not length:
            self._write(HEADER)

    def add(self, result: Result) -> None:
        """Add a result; afterwards it is on the disk."""
        self._write(result.as_line)

    def _write(self, line: str) -> None:
        self._file.write(line.encode("ascii"))
        self._file.flush()
        os.fsync(self._file.fileno())

    def __enter__(self) -> CampaignFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()


def run_campaign(
    progress: Progress,
    code: str,
    *,
    processes_count: int,
    seconds_max: float,
    on_result: Callable[[Result], None],
    seed_s_max: float = SEED_S_MAX,
    run: RunSeed | None = None,
) -> None:
    """Run what is left of a campaign.

    Args:
        progress: Says what is next, and is told of each result.
        code: What results say of the code.
        processes_count: In how many processes, >= 1.
        seconds_max: After so many no seed is begun; those underway are run to their ends.
        on_result: Told of each result, before the next seed begins there.
        seed_s_max: A seed that takes longer has failed.
        run: Runs a seed; other processes find it by the name of its module. None for what a scenario is run by.
    """
    timer = real_machine().timer
    began = timer()

    def next_job() -> Job | None:
        return progress.next_job() if timer() - began < seconds_max else None

    workers = [Worker(code, timer, seed_s_max, run or run_named) for _ in range(processes_count)]
    try:
        for worker in workers:
            worker.begin(next_job())
        while busy := {worker.connection: worker for worker in workers if worker.is_busy}:
            # One who has nothing to say is looked at as well: its time may be over.
            wait(busy, timeout=max(0.0, min(worker.left_s for worker in busy.values())))
            for worker in busy.values():
                result = worker.result()
                if result is not None:
                    progress.add(result)
                    on_result(result)
                    worker.begin(next_job())
    finally:
        for worker in workers:
            worker.end()


class Worker:
    """A process that runs one seed after the other. It is started when there is one, and ended by its owner."""

    def __init__(self, code: str, timer: Callable[[], float], seed_s_max: float, run: RunSeed) -> None:
        self._code = code
        self._run = run
        self._timer = timer
        self._seed_s_max = seed_s_max
        self._job: Job | None = None
        self._began = 0.0
        self._seeds_count = 0
        self._process: BaseProcess | None = None
        self.connection: Connection

    @property
    def is_busy(self) -> bool:
        """Whether it runs a seed."""
        return self._job is not None

    @property
    def left_s(self) -> float:
        """How long its seed may still take."""
        return self._began + self._seed_s_max - self._timer()

    def begin(self, job: Job | None) -> None:
        """Have it run a seed; None ends it."""
        self._job = job
        if job is None or self._seeds_count >= SEEDS_PER_PROCESS:
            self.end()
        if job is None:
            return
        if self._process is None:
            self._start()
        self._seeds_count += 1
        self._began = self._timer()
        variation, seed = job
        with suppress(OSError):  # it is dead already, which `result` says
            self.connection.send((variation.scenario, dict(variation.settings), seed))

    def result(self) -> Result | None:
        """Return what came of the seed; None as long as it runs."""
        if self.connection.poll():
            try:
                outcome: Outcome = self.connection.recv()
            except (EOFError, OSError):
                assert self._process is not None, "who is busy has a process"
                self._process.join()
                return self._failed(f"the process that ran it ended: {ending_of(self._process.exitcode)}")
            return self._result(outcome)
        if self.left_s <= 0:
            return self._failed(f"it did not end within {self._seed_s_max:g} s")
        return None

    def end(self) -> None:
        """End its process, whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
        self._process, self._seeds_count = None, 0

    def _start(self) -> None:
        self.connection, its_end = _processes.Pipe()
        self._process = process = _processes.Process(target=run_seeds, args=(its_end, self._run), daemon=True)
        process.start()
        its_end.close()  # so that nothing but the process has it, whose death is then seen

    def _failed(self, failure: str) -> Result:
        self.end()
        assert self._job is not None, "only who is busy is asked"
        return self._result(Outcome(self._job[1], failure, (), "", 0.0, self._timer() - self._began, {}))

    def _result(self, outcome: Outcome) -> Result:
        assert self._job is not None, "only who is busy is asked"
        variation, seed = self._job
        return Result(
            variation,
            seed,
            self._code,
            outcome.trace_hash,
            outcome.failure,
            outcome.details,
            outcome.simulated_s,
            outcome.wall_s,
            outcome.coverage,
        )


def ending_of(exit_code: int | None) -> str:
    """Say how a process ended."""
    if exit_code is not None and exit_code < 0:
        return f"by {signal.Signals(-exit_code).name}"
    return f"exit status {exit_code}"


def run_seeds(connection: Connection, run: RunSeed) -> None:
    """Run the seeds that somebody sends, until he is gone: what such a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; who started this one ends it
    with suppress(EOFError, OSError):
        while True:
            connection.send(run(*connection.recv()))


def run_named(scenario: str, settings: Mapping[str, str], seed: int) -> Outcome:
    """Run one seed of the scenario of a name."""
    from .campaign import SCENARIOS

    return run_seed(SCENARIOS[scenario], seed, settings)
