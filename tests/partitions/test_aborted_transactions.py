"""Aborted transactions by the offsets that they reach into: like a walk over all, without one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.kernel.partitions.aborted_transactions import AbortedTransactions
from odradek.kernel.partitions.producer_table import ProducerStateTable
from odradek.kernel.partitions.transaction_index import AbortedTransaction


class Offset(int):
    """An offset that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Offset.compared += 1
        return int(self) < int(other)

    def __ge__(self, other: int) -> bool:
        Offset.compared += 1
        return int(self) >= int(other)


def transaction(first_offset: int, last_offset: int, last_stable_offset: int = 0) -> AbortedTransaction:
    return AbortedTransaction(1, first_offset, last_offset, last_stable_offset)


def reach(aborted: list[AbortedTransaction], start_offset: int, end_offset: int) -> list[AbortedTransaction]:
    return [each for each in aborted if each.last_offset >= start_offset and each.first_offset < end_offset]


spans = st.lists(st.integers(1, 60), max_size=700)
"""How many offsets below its marker each transaction began."""


@given(spans, st.data())
def test_ranges_reach_what_a_walk_over_all_finds(lengths: list[int], data: st.DataObject) -> None:
    aborted = [transaction(2 * at + 100 - length, 2 * at + 100) for at, length in enumerate(lengths)]
    begun = [each.first_offset for each in aborted]
    stable = [min([each.last_offset + 1, *begun[at + 1 :]]) for at, each in enumerate(aborted)]
    aborted = [each._replace(last_stable_offset=offset) for each, offset in zip(aborted, stable, strict=True)]
    kept = AbortedTransactions()
    for each in aborted:
        kept.append(each)
    offsets = st.integers(30, 120 + 2 * len(lengths))
    for _ in range(5):
        forgotten = data.draw(st.integers(0, 100 + len(lengths)))
        kept.forget_below(forgotten)
        aborted = [each for each in aborted if each.last_offset >= forgotten]
        start, end = data.draw(offsets), data.draw(offsets)

        assert kept.reaching_into(start, end) == reach(aborted, start, end)
        assert list(kept.all()) == aborted
        assert len(kept) == len(aborted)
    if aborted:  # all of them
        assert kept.reaching_into(0, aborted[-1].last_offset) == aborted


def test_what_is_appended_behind_what_was_forgotten_is_found() -> None:
    kept = AbortedTransactions(transaction(at - 1, at) for at in reversed(range(1, 601, 2)))
    kept.forget_below(599)
    kept.append(transaction(5, 700))

    assert kept.reaching_into(0, 10) == [transaction(5, 700)]
    assert kept.reaching_into(0, 599) == [transaction(598, 599), transaction(5, 700)]


@pytest.mark.parametrize(("start", "end", "found"), [(0, 2, 2), (30_000, 30_010, 7), (0, 40_001, 20_000)])
def test_behind_an_old_open_transaction_a_fetch_looks_at_no_more_than_it_is_told(
    start: int, end: int, found: int
) -> None:
    """Since offset 0 one is open, so no marker behind it says that whatever came later began later."""
    table = ProducerStateTable(1000)
    others = [transaction(Offset(2 * at + 1), 2 * at + 2) for at in range(19_999)]
    table.transactions.replace_aborted([*others, transaction(Offset(1), 300_000)])
    Offset.compared = 0

    assert len(table.transactions.aborted_between(start, end)) == found
    assert Offset.compared <= 150 + 2 * found
