"""The scenario `replication`: some seeds of it, and what each of its accidents finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.kernel.controller.broker_sessions import BrokerSessions
from odradek.lab.simulator import replication
from odradek.lab.simulator.files import Files
from odradek.lab.simulator.machine import HostClock
from odradek.lab.simulator.record_load import TOPIC
from odradek.lab.simulator.replication import REPLICATION, Accident
from odradek.lab.simulator.runs import run_seed
from odradek.plugins.election_isr.machine import IsrElection


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_acknowledged_is_lost_by_three_brokers(seed: int) -> None:
    outcome = run_seed(REPLICATION, seed, {})

    assert outcome.failure == ""
    assert outcome.coverage["agreements"] >= 2


def leave_out_syncs_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync in name only what the topic's partitions write."""
    fsync: Callable[[Files, int], None] = Files.fsync

    def fsync_others(self: Files, fd: int) -> None:
        if not self._open[fd][1].parent.name.startswith(TOPIC):
            fsync(self, fd)

    monkeypatch.setattr(Files, "fsync", fsync_others)


def commit_what_two_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the leader and one follower be enough, whoever else is in sync."""

    def count(self: IsrElection) -> None:
        ends = sorted([self._log_end_offset, *(follower.end for follower in self._counted)])
        self.high_watermark = max(self.high_watermark, ends[-2:][0])

    monkeypatch.setattr(IsrElection, "_count", count)


def count_those_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit by the in-sync set that the controller was asked for, before it has agreed."""
    recount = IsrElection._recount

    def recount_asked(self: IsrElection) -> None:
        recount(self)
        if self._asked is not None:
            self._counted = tuple(self._followers[number] for number in self._asked.isr if number in self._followers)
            self._outside = ()
            if self._has_enough:
                self._count()

    monkeypatch.setattr(IsrElection, "_recount", recount_asked)


def measure_sessions_by_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a jump of the wall clock for time that has passed."""
    monkeypatch.setattr(HostClock, "monotonic_ms", HostClock.now_ms)
    monkeypatch.setattr(BrokerSessions, "extend", lambda *_: None)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("accident", "sabotage", "found_last"),
    [
        (Accident.SEVERAL, leave_out_syncs_of_records, 1),
        (Accident.SEVERAL, commit_what_two_have, 4),
        (Accident.PAUSE, count_those_that_are_asked_for, 2),
        (Accident.CLOCKS, measure_sessions_by_the_wall_clock, 1),
    ],
)
def test_sabotage_is_found_by_an_accident_within_so_many_seeds(
    accident: Accident,
    sabotage: Callable[[pytest.MonkeyPatch], None],
    found_last: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replication, "ACCIDENTS", (accident,))
    monkeypatch.setattr(replication, "MIN_ISR", (2,))
    sabotage(monkeypatch)

    assert any(run_seed(REPLICATION, seed, {}).failure for seed in (found_last, *range(1, 21)))
