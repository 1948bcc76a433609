"""What was acknowledged, and what became of it."""

from __future__ import annotations

import random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.lab.compare.builtin_workloads import BUILTIN
from odradek.lab.compare.ledger import Allowance, Kept, Ledger, Reading
from odradek.lab.compare.record_plan import RecordPlan
from odradek.lab.compare.workload import Workload

SMALL = Workload("small", records=40, paced_records=4, keys=7, key_skew=1.0, tombstones=0.2, value_bytes=20)
NOTHING = Allowance()
COMPACT = Allowance(compacts=True)


def plan_of(workload: Workload, seed: int) -> RecordPlan:
    return RecordPlan(workload, random.Random(seed))


def full_ledger(workload: Workload = SMALL) -> Ledger:
    """Return a ledger in which every record was acknowledged, at the offset that its order gives it."""
    ledger = Ledger(plan_of(workload, 1))
    ends = dict.fromkeys(range(workload.partitions), 0)
    for index in range(workload.records_all):
        partition = ledger.plan.record(index).partition
        ledger.acknowledge(index, partition, ends[partition])
        ends[partition] += 1
    return ledger


def twice_at_one_place() -> Ledger:
    """Return a ledger of four records in one partition, the last of them at the offset of the one before."""
    ledger = Ledger(plan_of(Workload("one", records=4, paced_records=0, partitions=1), 1))
    for index, offset in enumerate((0, 1, 2, 2)):
        ledger.acknowledge(index, 0, offset)
    return ledger


def read(ledger: Ledger, without: set[int] = frozenset()) -> Reading:  # type: ignore[assignment]
    reading = Reading(ledger)
    for partition, offset, index in ledger.places():
        if index not in without:
            record = ledger.plan.record(index)
            reading.take(partition, offset, record.key, record.value)
    return reading


def test_what_comes_back_as_it_was_sent_is_there() -> None:
    kept = read(full_ledger()).result(NOTHING, {})

    assert kept == Kept(44, 44, 0, 0, 0)
    assert kept.is_right


def test_what_does_not_come_back_is_lost() -> None:
    kept = read(full_ledger(), {3, 5}).result(NOTHING, {})

    assert kept == Kept(44, 42, 0, 2, 0)
    assert not kept.is_right


@pytest.mark.parametrize("allowance", [NOTHING, COMPACT, Allowance(expires=True), Allowance(anything=True)])
def test_what_another_record_took_the_place_of_is_lost_whatever_may_be_removed(allowance: Allowance) -> None:
    """No policy gives an offset twice: the first of the two was acknowledged, and is gone."""
    ledger = twice_at_one_place()

    kept = read(ledger).result(allowance, {})

    assert kept == Kept(4, 3, 0, 1, 0)
    assert not kept.is_right


def test_an_aborted_record_is_not_lost_where_another_one_took_its_place() -> None:
    ledger = twice_at_one_place()
    ledger.abort({2})

    assert read(ledger).result(NOTHING, {}) == Kept(3, 3, 0, 0, 0)


def test_below_the_log_start_offset_nothing_is_lost_where_retention_has_a_limit() -> None:
    ledger = full_ledger()
    gone = {index for partition, offset, index in ledger.places() if (partition, offset) in {(0, 0), (0, 1), (1, 0)}}
    reading = read(ledger, gone)

    assert reading.result(Allowance(expires=True), {0: 2}) == Kept(44, 41, 2, 1, 0)
    assert reading.result(NOTHING, {0: 2}).lost == 3


@given(st.sets(st.integers(0, 43)))
def test_compaction_may_take_what_was_replaced_and_tombstones_and_nothing_else(gone: set[int]) -> None:
    ledger = full_ledger()
    plan = ledger.plan
    latest = {plan.record(index).key: index for index in range(44)}  # a key has one partition
    taken_wrongly = {index for index in gone if index in latest.values() and plan.record(index).value is not None}
    kept = read(ledger, gone).result(COMPACT, {})

    assert kept == Kept(44, 44 - len(gone), len(gone - taken_wrongly), len(taken_wrongly), 0)


def test_what_a_policy_of_a_plugin_takes_is_not_judged() -> None:
    assert read(full_ledger(), {1, 2}).result(Allowance(anything=True), {}) == Kept(44, 42, 2, 0, 0)


ALL_OF_SMALL = set(range(44))
FAR_ENDS = dict.fromkeys(range(SMALL.partitions), 44)
NO_ENDS = dict.fromkeys(range(SMALL.partitions), 0)


@pytest.mark.parametrize("allowance", [NOTHING, COMPACT, Allowance(expires=True), Allowance(anything=True)])
def test_what_a_log_that_ends_before_it_has_lost_no_policy_has_removed(allowance: Allowance) -> None:
    ledger = full_ledger()
    after = read(ledger, ALL_OF_SMALL)

    assert after.gone_since(read(ledger), allowance, {}, NO_ENDS) == 44
    # What a policy had removed before the end went back was not lost by that.
    assert after.gone_since(read(ledger, {0, 1, 2}), allowance, {}, NO_ENDS) == 41


def test_what_a_policy_removes_meanwhile_is_not_lost() -> None:
    ledger = full_ledger()
    replaced = next(index for index in range(44) if ledger.plan.record(index).value is None)
    after, before = read(ledger, {replaced}), read(ledger)

    assert after.gone_since(before, COMPACT, {}, FAR_ENDS) == 0
    assert after.gone_since(before, NOTHING, {}, FAR_ENDS) == 1
    assert after.gone_since(before, Allowance(expires=True), FAR_ENDS, FAR_ENDS) == 0


@pytest.mark.parametrize("change", ["key", "value", "partition", "offset", "twice"])
def test_what_comes_back_otherwise_is_wrong(change: str) -> None:
    ledger = full_ledger()
    reading = read(ledger)
    partition, offset, index = next(iter(ledger.places()))
    record = ledger.plan.record(index)
    places = {"partition": (9, offset), "offset": (partition, 10_000)}
    key = b"other" if change == "key" else record.key
    value = b"other" if change == "value" else record.value
    reading.take(*places.get(change, (partition, offset)), key, value)

    assert reading.result(NOTHING, {}).wrong == 1


def test_records_of_aborted_transactions_do_not_count_and_must_not_come() -> None:
    ledger = full_ledger()
    ledger.abort({1, 2})
    reading = read(ledger)

    assert reading.result(NOTHING, {}) == Kept(42, 42, 0, 0, 0)
    partition, offset = next((one, other) for one, other, index in full_ledger().places() if index == 1)
    reading.take(partition, offset, *ledger.plan.record(1)[1:])
    assert reading.result(NOTHING, {}).wrong == 1


def test_an_aborted_record_replaces_nothing() -> None:
    ledger = full_ledger()
    latest = {ledger.plan.record(index).key: index for index in range(44)}
    last = max(latest.values())
    ledger.abort({last})
    earlier = max(index for index in range(last) if ledger.plan.record(index).key == ledger.plan.record(last).key)
    was_tombstone = ledger.plan.record(earlier).value is None

    assert read(ledger, {earlier}).result(COMPACT, {}).lost == (0 if was_tombstone else 1)


def test_an_acknowledgement_without_an_offset_is_counted_apart() -> None:
    ledger = Ledger(plan_of(SMALL, 1))
    ledger.acknowledge(0, 0, -1)

    assert (ledger.unknown, ledger.acknowledged) == (1, 0)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ({}, NOTHING),
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, NOTHING),
        ({"retention.bytes": "5"}, Allowance(expires=True)),
        ({"cleanup.policy": "compact", "retention.bytes": "5"}, COMPACT),
        ({"cleanup.policy": "compact, delete", "retention.ms": "5"}, Allowance(expires=True, compacts=True)),
        ({"cleanup.policy": "ttl"}, Allowance(anything=True)),
        (
            {"cleanup.policy": "compact", "odradek.compaction.strategy": "header"},
            Allowance(compacts=True, anything=True),
        ),
    ],
)
def test_what_may_be_gone_follows_from_the_topic(topic: dict[str, str], expected: Allowance) -> None:
    assert Allowance.of(topic) == expected


@pytest.mark.parametrize("name", BUILTIN)
def test_the_same_seed_gives_the_same_records(name: str) -> None:
    workload = attrs.evolve(BUILTIN[name], records=300, keys=min(BUILTIN[name].keys, 50))
    one, same, other = plan_of(workload, 1), plan_of(workload, 1), plan_of(workload, 2)
    records = [one.record(index) for index in range(workload.records_all)]

    assert records == [same.record(index) for index in range(workload.records_all)]
    assert records != [other.record(index) for index in range(workload.records_all)]
    assert all(record.value is None or len(record.value) == workload.value_bytes for record in records)
    assert len({record.value for record in records if record.value}) == sum(
        record.value is not None for record in records
    )
    assert {record.partition for record in records} == set(range(workload.partitions))


def test_records_of_a_key_are_in_one_partition() -> None:
    plan = plan_of(SMALL, 1)
    places = {(record.key, record.partition) for record in map(plan.record, range(SMALL.records_all))}

    assert len(places) == len({key for key, _ in places})


def test_hot_keys_are_chosen_more_often() -> None:
    plan = plan_of(attrs.evolve(SMALL, records=2_000), 1)
    keys = [plan.record(index).key for index in range(2_000)]

    assert keys.count(b"key-00000000") > 3 * keys.count(b"key-00000006")


def test_paced_records_are_no_tombstones() -> None:
    plan = plan_of(attrs.evolve(SMALL, tombstones=1.0), 1)

    assert [plan.record(index).value is None for index in range(38, 43)] == [True, True, False, False, False]


def test_transactions_share_the_records_out() -> None:
    plan = plan_of(attrs.evolve(SMALL, transaction_records=15, aborted=1.0), 1)
    covered = [index for number in range(plan.transactions_count) for index in plan.transaction(number)]

    assert covered == list(range(40))
    assert all(plan.is_aborted(number) for number in range(plan.transactions_count))
