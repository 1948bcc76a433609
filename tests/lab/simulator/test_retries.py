"""The scenario `retry`: mistakes that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from odradek.kernel.retry.dead_reader import BEGIN, AbortedRange, DeadReader, Position
from odradek.lab.simulator.retries import RETRIES
from odradek.lab.simulator.runs import run_seed
from odradek.plugins.retry.levels import Levels


def give_back_early(monkeypatch: pytest.MonkeyPatch) -> None:
    delay_ms = Levels.delay_ms

    def half(self: Levels, attempt: int, drawn: float) -> int | None:
        found = delay_ms(self, attempt, drawn)
        return None if found is None else found // 2

    monkeypatch.setattr(Levels, "delay_ms", half)


def take_what_was_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = DeadReader.__init__

    def begin_without(self: DeadReader, position: Position, aborted: Iterable[AbortedRange]) -> None:
        begin(self, position, ())

    monkeypatch.setattr(DeadReader, "__init__", begin_without)


def forget_what_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each new leader of the dead letters begin anew."""
    monkeypatch.setattr("odradek.kernel.partitions.dead_letter_taking.position_in", lambda _last_note, _topic_id: BEGIN)


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("sabotage", "rule", "seeds"),
    [
        (give_back_early, "early", range(1, 3)),
        (take_what_was_aborted, "aborted", range(3, 5)),
        (forget_what_was_taken, "once", range(8, 11)),  # somebody else has to lead the dead letters
    ],
)
def test_sabotage_is_found_within_so_many_seeds(
    sabotage: Callable[[pytest.MonkeyPatch], None], rule: str, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    failures = (run_seed(RETRIES, seed, {}).failure for seed in seeds)
    assert any(failure and rule in failure for failure in failures)
