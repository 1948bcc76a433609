"""Shell: all runs of a comparison, in interleaved rounds, and what they come to."""

from __future__ import annotations

import gc
import random
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from odradek.kernel.errors import OdradekError

from .fault_run import FaultRun
from .one_run import OneRun, empty_folder
from .record_plan import RecordPlan
from .report import Row, row_of
from .schedule import interleaved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .faults import Cluster
    from .one_run import OnPhase, RunResult
    from .variations import Combination
    from .workload import Workload

FOLDER_PREFIX: Final = "odradek-compare-"


@attrs.frozen
class Step:
    """Where a comparison is.

    Attributes:
        number: The run, from 0.
        count: How many runs there are.
        round: The round, from 0.
        combination: Whose run.
        phase: What it does; empty when it is done.
        share: What share of the phase is done.
        result: What it came to, when it is done.
        failed: Why it was given up, when it was.
    """

    number: int
    count: int
    round: int
    combination: Combination
    phase: str = ""
    share: float = 0.0
    result: RunResult | None = None
    failed: str = ""


class OnStep(Protocol):
    """Hears where a comparison is."""

    def __call__(self, step: Step, /) -> None:
        """Take a step."""
        ...


@attrs.define
class _Record:
    """What is known of one combination so far."""

    combination: Combination
    rounds: list[dict[str, float | None]] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    failed: str = ""


class Comparison:
    """Runs combinations, and keeps what they come to. Life: `run`, once; `rows` at any time.

    Attributes:
        workload: What is done; `calibrate` changes how many records it has.
    """

    def __init__(
        self,
        *,
        workload: Workload,
        seed: int,
        combinations: Sequence[tuple[Combination, str]],
        folder: Path | None,
        config: Path | None,
        on_step: OnStep,
        cluster: Cluster | None = None,
    ) -> None:
        """Prepare; nothing is started.

        Args:
            workload: What is done.
            seed: What its records follow from.
            combinations: Each with the reason why it is not run; empty for those that are.
            folder: Where brokers keep their data, in a folder that is removed at the end; the system's place when None.
            config: A configuration file that brokers read first, or None.
            on_step: Hears how it goes.
            cluster: What each run has, if it is more than one broker.
        """
        self.workload = workload
        self._cluster = cluster
        self._seed = seed
        self._records = [_Record(combination, failed=reason) for combination, reason in combinations]
        self._folder = folder
        self._config = config
        self._on_step = on_step

    @property
    def rows(self) -> tuple[Row, ...]:
        """What is known by now, in the order of the combinations."""
        return tuple(row_of(one.combination, one.rounds, one.notes, one.failed) for one in self._records)

    async def run(self, rounds: int, seconds: float | None) -> None:
        """Run everything.

        Args:
            rounds: How often.
            seconds: Have so many records as the first combination takes in this time; None for the workload's number.

        Raises:
            OSError: The folder cannot be used.

        A combination that fails is not run again; the others go on. Cancelled, what was measured stays in
        `rows`, and the folder is removed.
        """
        with tempfile.TemporaryDirectory(prefix=FOLDER_PREFIX, dir=self._folder, ignore_cleanup_errors=True) as name:
            if seconds is not None:
                await self._calibrate(Path(name), seconds)
            plan = RecordPlan(self.workload, random.Random(self._seed))
            runs = interleaved([record for record in self._records if not record.failed], rounds)
            for number, (round_number, record) in enumerate(runs):
                if not record.failed:
                    await self._run_one(
                        record, plan, Path(name), Step(number, len(runs), round_number, record.combination)
                    )

    async def _run_one(self, record: _Record, plan: RecordPlan, folder: Path, step: Step) -> None:
        def on_phase(phase: str, share: float) -> None:
            self._on_step(attrs.evolve(step, phase=phase, share=share))

        gc.collect()  # what the last run left is no concern of this one
        one_run = self._prepare(record.combination, plan, folder, f"run-{step.number + 1}", on_phase)
        try:
            result = await one_run.run()
        except (OdradekError, OSError, ExceptionGroup) as error:
            record.failed = _one_line(error)
            self._on_step(attrs.evolve(step, failed=record.failed))
            return
        record.rounds.append(result.figures)
        record.notes += result.notes
        self._on_step(attrs.evolve(step, result=result))

    def _prepare(
        self, combination: Combination, plan: RecordPlan, folder: Path, name: str, on_phase: OnPhase
    ) -> OneRun | FaultRun:
        own, name = empty_folder(folder / "run"), f"{folder.name}/{name}"
        if self._cluster is None:
            return OneRun(combination, plan, name, own, self._config, on_phase)
        return FaultRun(combination, self._cluster, plan, name, own, self._config, on_phase)

    async def _calibrate(self, folder: Path, seconds: float) -> None:
        """Find out how many records the first combination that works takes in a time."""
        plan = RecordPlan(self.workload, random.Random(self._seed))
        for number, record in enumerate(self._records, 1):
            if record.failed:
                continue
            self._on_step(Step(0, 0, 0, record.combination, "find out how many records"))
            one_run = self._prepare(record.combination, plan, folder, f"trial-{number}", lambda *_: None)
            try:
                count = await one_run.calibrate(seconds)
            except (OdradekError, OSError, ExceptionGroup) as error:
                record.failed = _one_line(error)
                continue
            self.workload = attrs.evolve(self.workload, records=max(count, 1))
            return


def _one_line(error: BaseException) -> str:
    """Say in one line what went wrong.

    Raises:
        BaseException: `error`, where some of it is a bug of ours: its traceback is what helps.
    """
    if isinstance(error, BaseExceptionGroup):
        if error.split((OdradekError, OSError))[1] is not None:
            raise error
        return "; ".join(dict.fromkeys(_one_line(inner) for inner in error.exceptions))
    return " ".join(str(error).split()) or type(error).__name__
