"""Shell: what the demo's chapters share: the stage, the broker, the data set, and reading it all back."""

from __future__ import annotations

import io
import time
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Final

import attrs

from ..running import run_interruptible
from . import client_work
from .data import checksum, keys_out_of_order

if TYPE_CHECKING:
    from pathlib import Path

    from .broker_process import BrokerProcess
    from .data import DemoRecord
    from .group_work import GroupRun
    from .stage import Stage
    from .transaction_work import Moment

TOPIC: Final = "clock-changes"
PARTITIONS: Final = 4


@attrs.define
class Scene:
    """One run of the demo; each chapter finds here what those before it left.

    Attributes:
        stage: Where it is shown.
        broker: The broker's process.
        data_dir: Where it keeps its logs.
        now_s: Seconds since the Unix epoch: changes of clocks after this are left out.
        bootstrap: Where the broker serves; empty until it does.
        records: The data set, in the order in which it is produced.
        by_partition: The same, by the partition that the key chooses.
        checksums: Of each of those.
        group_run: What the group did; None before its chapter.
        last_moment: The results of the transactions as they were last seen; None before their chapter.
    """

    stage: Stage
    broker: BrokerProcess
    data_dir: Path
    now_s: int
    bootstrap: str = ""
    records: list[DemoRecord] = attrs.field(factory=list)
    by_partition: dict[int, list[DemoRecord]] = attrs.field(factory=dict)
    checksums: dict[int, str] = attrs.field(factory=dict)
    group_run: GroupRun | None = None
    last_moment: Moment | None = None

    def start_broker(self) -> float:
        """Start the broker, and return how many seconds that took."""
        began = time.perf_counter()
        self.bootstrap = self.broker.start()
        return time.perf_counter() - began

    def told(self, *command: str) -> str:
        """Return what a command of `odradek` prints."""
        from .. import main

        said = io.StringIO()
        with redirect_stdout(said):
            main([*command, "--bootstrap", self.bootstrap])
        return said.getvalue()

    def read_and_check(self, what: str) -> None:
        """Read the whole topic, and check that it is what was produced."""
        stage = self.stage
        began = time.perf_counter()
        with stage.progress("consuming", len(self.records)) as on_progress:
            read = run_interruptible(client_work.consume, self.bootstrap, TOPIC, on_progress)
        took_s = time.perf_counter() - began
        count = sum(map(len, read.values()))
        stage.check(
            f"{count:,} records {what} in {took_s:.2f} s: none lost, none twice",
            holds=count == len(self.records),
            detail=f"{len(self.records):,} were produced",
        )
        wrong = keys_out_of_order(read)
        stage.check("every zone's history is in one partition and in order", holds=not wrong, detail=", ".join(wrong))
        checksums = {number: checksum(records) for number, records in read.items()}
        stage.check(
            f"what came back has the SHA-256 of what was sent ({checksums[0][:10]}... for partition 0)",
            holds=checksums == self.checksums,
            detail=f"{checksums} and not {self.checksums}",
        )
