"""The scenario `delays`: mistakes that it finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.kernel.delay.ledger import DelayLedger
from odradek.lab.simulator.delays import DELAYS
from odradek.lab.simulator.runs import run_seed
from odradek.plugins.delay_wheel.waiting_index import WaitingIndex

EARLY_MS = 40


def deliver_early(monkeypatch: pytest.MonkeyPatch) -> None:
    due = WaitingIndex.due
    prepare = WaitingIndex.prepare
    next_due_ms = WaitingIndex.next_due_ms

    def next_due_early_ms(self: WaitingIndex) -> int | None:
        found = next_due_ms(self)
        return None if found is None else found - EARLY_MS

    monkeypatch.setattr(WaitingIndex, "due", lambda self, now_ms, count: due(self, now_ms + EARLY_MS, count))
    monkeypatch.setattr(WaitingIndex, "prepare", lambda self, now_ms: prepare(self, now_ms + EARLY_MS))
    monkeypatch.setattr(WaitingIndex, "next_due_ms", next_due_early_ms)


def take_an_abort_for_a_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    end = DelayLedger._end

    def commit(self: DelayLedger, producer_id: int, *, is_commit: bool) -> None:
        end(self, producer_id, is_commit=True)

    monkeypatch.setattr(DelayLedger, "_end", commit)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("sabotage", "rule", "seeds_max"),
    [
        (deliver_early, "early", 2),
        (take_an_abort_for_a_commit, "aborted", 4),
    ],
)
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], rule: str, seeds_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    failures = (run_seed(DELAYS, seed, {}).failure for seed in range(1, seeds_max + 1))
    assert any(failure and rule in failure for failure in failures)


def test_all_that_are_in_sync_do_not_lose_their_power_at_once() -> None:
    """As found: one stood still for so long that it is told of only after it goes on, and the next accident begins."""
    levels = {"odradek.delay.queue": "levels", "odradek.delay.levels": "20ms,100ms,1s,5s,15s"}

    assert run_seed(DELAYS, 13, levels).failure == ""
