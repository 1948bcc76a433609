"""How long a transaction may be open: its time-out, by a clock that does not jump."""

from __future__ import annotations

import attrs
import pytest

from odradek.kernel.api import TopicPartition
from odradek.plugins.transactions.states import TransactionState

from .driven import SETTINGS, DrivenShard

HOUR_MS = 3_600_000
TIMEOUT_MS = 60_000


def with_open_transaction() -> DrivenShard:
    """Return a shard in which `a` has just begun a transaction."""
    driven = DrivenShard()
    driven.add("a", driven.init("a", timeout_ms=TIMEOUT_MS).response.producer, TopicPartition("t", 0))
    return driven


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
def test_a_transaction_is_open_for_its_time_out_when_the_wall_clock_jumps(jump_ms: int) -> None:
    driven = with_open_transaction()
    driven.harness.now_ms += jump_ms
    driven.harness.advance(TIMEOUT_MS)
    assert driven.metadata("a").state is TransactionState.ONGOING
    driven.harness.advance(SETTINGS.abort_interval_ms)

    assert driven.metadata("a").state is TransactionState.PREPARE_ABORT


def test_after_a_restart_the_time_that_a_transaction_was_open_counts() -> None:
    driven = with_open_transaction()
    driven.harness.advance(TIMEOUT_MS - 10_000)
    driven.harness.reload()
    driven.harness.advance(10_000)
    assert driven.metadata("a").state is TransactionState.ONGOING
    driven.harness.advance(SETTINGS.abort_interval_ms)

    assert driven.metadata("a").state is TransactionState.PREPARE_ABORT


def test_a_transaction_of_the_future_has_its_whole_time_after_a_restart() -> None:
    driven = with_open_transaction()
    driven.harness.now_ms -= HOUR_MS
    driven.harness.reload()
    driven.harness.advance(TIMEOUT_MS)
    assert driven.metadata("a").state is TransactionState.ONGOING
    driven.harness.advance(SETTINGS.abort_interval_ms)

    assert driven.metadata("a").state is TransactionState.PREPARE_ABORT


@pytest.mark.parametrize(("timeout_ms", "is_open"), [(2**31 - 1, True), (2**31 - 2, False)])
def test_a_transaction_that_an_outside_coordinator_ends_never_runs_out(timeout_ms: int, is_open: bool) -> None:
    driven = DrivenShard(settings=attrs.evolve(SETTINGS, timeout_ms_max=2**31 - 1, abort_interval_ms=2**31))
    driven.add("a", driven.init("a", timeout_ms=timeout_ms).response.producer, TopicPartition("t", 0))
    driven.harness.advance(2**31)

    assert (driven.metadata("a").state is TransactionState.ONGOING) is is_open
