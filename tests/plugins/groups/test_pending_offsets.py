"""Offsets of open transactions, many transactions and groups at a time."""

from __future__ import annotations

from odradek.kernel.api import ErrorCode, ProducerIdentity

from .driven import DrivenGroups

UNSTABLE = {"t": {0: ErrorCode.UNSTABLE_OFFSET_COMMIT}}


def test_an_open_transaction_holds_back_its_own_groups_only() -> None:
    driven = DrivenGroups()
    producers = [ProducerIdentity(number, 0) for number in range(5)]
    for number, producer in enumerate(producers):
        for group in ("g", f"g{number}"):
            driven.commit({"t": {0: number}}, group=group)
            driven.commit({"t": {0: 10 + number}}, group=group, producer=producer)
    for producer in producers[:-1]:
        driven.harness.end_transaction(producer, is_commit=producer.producer_id % 2 == 0)

    assert driven.fetch(requires_stable=True) == UNSTABLE
    assert driven.fetch(requires_stable=True, group="g4") == UNSTABLE
    assert [driven.fetch(requires_stable=True, group=f"g{number}") for number in range(4)] == [
        {"t": {0: 10}},
        {"t": {0: 1}},
        {"t": {0: 12}},
        {"t": {0: 3}},
    ]

    driven.harness.end_transaction(producers[-1], is_commit=False)

    assert driven.fetch(requires_stable=True) == {"t": {0: 4}}


def test_what_is_deleted_while_its_transaction_is_open_is_not_committed_with_it() -> None:
    driven = DrivenGroups({"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 60_000})
    producer = ProducerIdentity(7, 0)
    driven.commit({"t": {0: 1}}, producer=producer)
    driven.commit({"u": {0: 1}}, group="other", producer=producer)
    driven.harness.run(lambda shard, _: shard.offsets.delete("g", [("t", [0])]))
    driven.harness.advance(200_000)

    # The group has nothing left, open or not, and goes; the other waits for its transaction, however long that takes.
    assert list(driven.shard.context.groups) == ["other"]

    driven.harness.end_transaction(producer, is_commit=True)
    driven.harness.reload()

    assert driven.fetch() == {}
    assert driven.fetch(group="other") == {"u": {0: 1}}


def test_a_group_is_deleted_with_what_its_open_transactions_would_commit() -> None:
    driven = DrivenGroups()
    producers = [ProducerIdentity(number, 0) for number in (9, 3)]
    for producer in producers:
        driven.commit({"t": {producer.producer_id % 4: 1}}, producer=producer)
    driven.harness.run(lambda shard, _: shard.delete_groups(["g"]))
    for producer in producers:
        driven.harness.end_transaction(producer, is_commit=True)
    driven.harness.reload()

    assert driven.fetch() == {}
    assert not driven.shard.context.groups
