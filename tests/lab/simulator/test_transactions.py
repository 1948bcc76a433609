"""The scenario `transactions`, and its rules: each is broken by something, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import pytest

from odradek.kernel.contracts.coordinator import CoordinatorResult
from odradek.kernel.contracts.transactions import TransactionMarker
from odradek.kernel.errors import ErrorCode
from odradek.kernel.partitions.marker_writer import LocalMarkerWriter
from odradek.kernel.types import TopicPartition
from odradek.lab.simulator.oracle import PromiseBrokenError
from odradek.lab.simulator.runs import run_seed
from odradek.lab.simulator.transaction_oracle import Fate, Transaction, TransactionOracle
from odradek.lab.simulator.transactions import TRANSACTIONS
from odradek.plugins.transactions.shard import TransactionShard


class Told:
    """Two transactions of two records each: what an oracle was told of them."""

    def __init__(self, first: Fate = Fate.COMMITTED, second: Fate = Fate.COMMITTED) -> None:
        self.oracle = TransactionOracle()
        self.values: list[str] = []
        for number, fate in enumerate((first, second)):
            transaction = Transaction("p", number)
            self.oracle.begun(transaction)
            self.values += [self.oracle.sent(transaction, 0) for _ in range(2)]
            self.oracle.ended(transaction, fate)

    def check(self, *places: int) -> None:
        """Check a log that has these of the values."""
        self.oracle.check({0: [(offset, self.values[place]) for offset, place in enumerate(places)]})


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        (Fate.COMMITTED, Fate.COMMITTED, (0, 1, 2, 3)),
        (Fate.COMMITTED, Fate.ABORTED, (0, 1)),
        (Fate.UNKNOWN, Fate.COMMITTED, (0, 1, 2, 3)),
        (Fate.UNKNOWN, Fate.COMMITTED, (2, 3)),
        (Fate.ABORTED, Fate.UNKNOWN, ()),
    ],
)
def test_a_log_that_keeps_every_promise(first: Fate, second: Fate, places: tuple[int, ...]) -> None:
    Told(first, second).check(*places)


@pytest.mark.parametrize(
    ("rule", "first", "places"),
    [
        ("whole", Fate.COMMITTED, (2, 3)),
        ("whole", Fate.COMMITTED, (0, 2, 3)),
        ("whole", Fate.UNKNOWN, (0, 2, 3)),
        ("aborted", Fate.ABORTED, (0, 1, 2, 3)),
        ("once", Fate.COMMITTED, (0, 1, 1, 2, 3)),
        ("order", Fate.COMMITTED, (2, 3, 0, 1)),
        ("order", Fate.COMMITTED, (1, 0, 2, 3)),
    ],
)
def test_a_log_breaks_a_rule(rule: str, first: Fate, places: tuple[int, ...]) -> None:
    with pytest.raises(PromiseBrokenError, match=f"^{rule}: "):
        Told(first).check(*places)


def test_nothing_aborted_is_delivered() -> None:
    told = Told(Fate.ABORTED)

    with pytest.raises(PromiseBrokenError, match=r"^aborted: "):
        told.oracle.delivered(0, 0, told.values[0])


def test_what_was_delivered_does_not_change_or_vanish() -> None:
    told = Told(Fate.UNKNOWN)
    told.oracle.delivered(0, 0, told.values[0])

    with pytest.raises(PromiseBrokenError, match=r"^change: "):
        told.oracle.delivered(0, 0, told.values[1])
    with pytest.raises(PromiseBrokenError, match=r"^change: "):
        told.check(2, 3)


def test_nothing_is_delivered_that_nobody_sent_there() -> None:
    told = Told()

    with pytest.raises(PromiseBrokenError, match=r"^origin: "):
        told.oracle.delivered(0, 0, "stranger/0/0")
    with pytest.raises(PromiseBrokenError, match=r"^origin: "):
        told.oracle.delivered(1, 0, told.values[0])


Done = Callable[[Mapping[TopicPartition, ErrorCode]], None]


def lose_markers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Say of every fifth marker that it was written."""
    write = LocalMarkerWriter.write
    calls = 0

    def write_or_lose(self: LocalMarkerWriter, marker: TransactionMarker, done: Done) -> None:
        nonlocal calls
        calls += 1
        if calls % 5 == 0:
            done(dict.fromkeys(marker.partitions, ErrorCode.NONE))
        else:
            write(self, marker, done)

    monkeypatch.setattr(LocalMarkerWriter, "write", write_or_lose)


def commit_what_is_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the marker of a commit whatever was decided."""
    write = LocalMarkerWriter.write

    def write_commit(self: LocalMarkerWriter, marker: TransactionMarker, done: Done) -> None:
        write(self, attrs.evolve(marker, is_commit=True), done)

    monkeypatch.setattr(LocalMarkerWriter, "write", write_commit)


def never_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave transactions open whose producers have gone."""
    monkeypatch.setattr(
        TransactionShard, "abort_timed_out", lambda _shard, _now_ms: CoordinatorResult([], None, is_atomic=False)
    )


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("sabotage", "seeds_max"), [(lose_markers, 20), (commit_what_is_aborted, 20), (never_time_out, 20)]
)
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], seeds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(run_seed(TRANSACTIONS, seed, {}).failure for seed in range(1, seeds_max + 1))
